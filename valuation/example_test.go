package valuation_test

import (
	"context"
	"fmt"

	"grange/game"
	"grange/money"
	"grange/valuation"
	"grange/valuation/games"
)

// Three members, one of whom holds a left glove and two a right one; only
// pairs are worth something.
func Example() {
	gloves := &valuation.Game{
		Members: 3, Names: []string{"ann", "ben", "cleo"},
		Utility: valuation.UtilityFunc(func(_ context.Context, c valuation.Coalition) (float64, error) {
			if c.Has(0) && c.Size() > 1 {
				return 1, nil
			}
			return 0, nil
		}),
	}
	table, err := valuation.Tabulation{}.Table(context.Background(), gloves)
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := valuation.Shapley(table)
	if err != nil {
		fmt.Println(err)
		return
	}
	shares := game.Shares(values, game.Clip)
	cents, err := money.Split(10000, shares)
	fmt.Printf("%.4f\n%d %v\n", values, cents, err)
	// Output:
	// [0.6667 0.1667 0.1667]
	// [6667 1667 1666] <nil>
}

func ExampleEstimates() {
	runway := games.Airport([]float64{1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597}).Game()
	r, err := valuation.Estimates(context.Background(), runway, valuation.Adjusted{}, valuation.Settings{
		Seed: 1,
		Stop: valuation.Any(valuation.RelativeError(0.005), valuation.Evaluations(4000)),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	low, high := r.Interval(15)
	fmt.Printf("%v: the last pays %.0f to %.0f\n", r.Status, low, high)
	// Output: satisfied: the last pays 944 to 962
}

func ExampleNucleolus() {
	savings := games.Savings([]float64{1, 2, 4})
	values, err := valuation.Nucleolus(savings.Table())
	fmt.Printf("%.4f %v\n", values, err)
	// Output: [0.5000 1.2500 1.2500] <nil>
}

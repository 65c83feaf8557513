package valuation_test

import (
	"math"
	"testing"

	"grange/valuation"
	"grange/valuation/games"
)

// estimators are all the estimators, by name.
var estimators = []valuation.Method{
	valuation.Permutation{},
	valuation.Permutation{Antithetic: true},
	valuation.Permutation{Truncation: 0.01},
	valuation.Permutation{Antithetic: true, Truncation: 0.01},
	valuation.Stratified{},
	valuation.Owen{},
	valuation.Owen{Plain: true},
	valuation.Kernel{},
	valuation.SVARM{},
	valuation.Adjusted{},
	valuation.Adjusted{Degree: 2},
}

// sampled are closed-form games with many more coalitions than the tests value.
func sampled() []*games.Closed {
	needs := make([]float64, 10)
	worth := make([]float64, 11)
	brings := make([]float64, 10)
	for i := range needs {
		needs[i] = 1 + float64(i*i)/20
		worth[i+1] = math.Sqrt(float64(i+1)) + 0.3*float64((i*5)%3)
		brings[i] = float64((i*7)%5) - 1
	}
	return []*games.Closed{
		games.Airport(needs),
		games.Gloves(4, 6),
		games.Voting([]int{9, 8, 7, 6, 5, 5, 4, 4, 3, 3}, 27),
		games.Additive(brings),
		games.Symmetric(worth),
	}
}

// Over 200 seeds, the 95% intervals must hold the exact value 90 to 99 times
// in a hundred, and no estimate may be further than four standard errors off,
// save for the few in ten thousand that chance allows a normal distribution.
// Where a method has no error at all, its values must be exact instead.
func TestIntervalsCover(t *testing.T) {
	const seeds, budget = 200, 500
	for _, g := range sampled() {
		for _, method := range estimators {
			t.Run(g.Name+"/"+method.Name(), func(t *testing.T) {
				t.Parallel()
				covered, beyond, exact, total := 0, 0, 0, 0
				for seed := range uint64(seeds) {
					r, err := valuation.Estimates(t.Context(), g.Game(), method, valuation.Settings{Seed: seed, Stop: valuation.Evaluations(budget)})
					if err != nil {
						t.Fatal(err)
					}
					for n, want := range g.Shapley {
						total++
						off := math.Abs(r.Values[n] - want)
						switch {
						case off <= 1e-12 && r.Errors[n] <= 1e-12:
							exact++
							continue
						case off <= r.Spread[n]:
							covered++
						}
						if off > 4*r.Errors[n] {
							beyond++
						}
					}
				}
				rate := float64(covered) / float64(total-exact)
				t.Logf("%s %s: covered %.3f, beyond %.5f, exact %.3f", g.Name, method.Name(), rate, float64(beyond)/float64(total), float64(exact)/float64(total))
				if exact < total && !(rate >= 0.9 && rate <= 0.99) {
					t.Errorf("the intervals cover %.1f%%", 100*rate)
				}
			})
		}
	}
}

package valuation_test

import (
	"math"
	"testing"

	"grange/internal/raced"
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
// in a hundred, and at most one estimate in four hundred may be further than
// four standard errors off (of 2,000: with few samples tails are heavier than
// the normal ones, which would allow one in 16,000).
// Where a method has no error at all, its values must be exact instead.
func TestIntervalsCover(t *testing.T) {
	const budget = 500
	seeds, least, most := raced.Cases(200), 0.9, 0.99
	if raced.Enabled { // a tenth of the seeds tell less
		least, most = 0.8, 1
	}
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
				if exact < total && !(rate >= least && rate <= most) {
					t.Errorf("the intervals cover %.1f%%", 100*rate)
				}
				if 400*beyond > total {
					t.Errorf("%d of %d estimates are more than four standard errors off", beyond, total)
				}
			})
		}
	}
}

// In a training whoever comes first brings nearly everything, and with twenty
// orders of ten members one in eight never comes first. The error must say so.
func TestFirstComersAreNotMissed(t *testing.T) {
	worth := []float64{0, 0.65, 0.7, 0.73, 0.75, 0.765, 0.775, 0.78, 0.785, 0.788, 0.79}
	g := games.Symmetric(worth)
	for _, method := range []valuation.Method{valuation.Permutation{}, valuation.Permutation{Truncation: 0.01}, valuation.Owen{Plain: true}} {
		beyond, total := 0, 0
		for seed := range uint64(raced.Cases(200)) {
			r, err := valuation.Estimates(t.Context(), g.Game(), method, valuation.Settings{Seed: seed, Stop: valuation.Evaluations(200)})
			if err != nil {
				t.Fatal(err)
			}
			for n, want := range g.Shapley {
				total++
				if math.Abs(r.Values[n]-want) > 4*r.Errors[n] {
					beyond++
				}
			}
		}
		if 400*beyond > total {
			t.Errorf("%s: %d of %d estimates are more than four standard errors off", method.Name(), beyond, total)
		}
	}
}

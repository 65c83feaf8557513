package mechanism

import (
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grange/curve"
	"grange/game"
)

// hospitals is the SPEC's curve.
func paperAccuracy() game.Accuracy {
	c := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}}
	return game.Accuracy{Clean: c, Gamma: 0.92, Untrained: c.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded}
}

func accuracies() map[string]game.Accuracy {
	power := curve.Power{A: 0.95, B: 6, C: 30, D: 0.6}
	exponential := curve.Exponential{A: 0.9, B: 0.8, C: 0.0004}
	withUntrained := paperAccuracy()
	withUntrained.Untrained = 0.05
	return map[string]game.Accuracy{
		"loglinear":   paperAccuracy(),
		"untrained":   withUntrained,
		"power":       {Clean: power, Gamma: 0.5, Untrained: power.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded},
		"exponential": {Clean: exponential, Gamma: 0.7, Untrained: exponential.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded},
	}
}

// inOrder goes through forms by name, so that every run draws the same games.
func inOrder(forms map[string]game.Accuracy) iter.Seq2[string, game.Accuracy] {
	return func(yield func(string, game.Accuracy) bool) {
		for _, name := range slices.Sorted(maps.Keys(forms)) {
			if !yield(name, forms[name]) {
				return
			}
		}
	}
}

func randomHoldings(rng *rand.Rand, n int, most float64) []holding {
	held := make([]holding, n)
	for i := range held {
		held[i] = holding{points: math.Ceil(math.Exp(rng.Float64() * math.Log(most))), noise: 0.6 * rng.Float64()}
		if rng.IntN(4) == 0 {
			held[i].noise = 0
		}
	}
	return held
}

func TestQuadratureAgreesWithEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, accuracy := range inOrder(accuracies()) {
		for _, n := range []int{1, 2, 3, 5, 9, 14, 20} {
			for _, most := range []float64{20, 1e4, 1e6, 1e9} {
				held := randomHoldings(rng, n, most)
				mixture, err := mixtureOf(&accuracy, held)
				if err != nil {
					t.Fatal(err)
				}
				want := enumerateShapley(&accuracy, held)
				got, bound := integrateShapley(&accuracy, mixture, held)
				// Half a million terms added up one by one are not exact either.
				worst, rounding := 0.0, 0.0
				for i := range want {
					worst = max(worst, math.Abs(got[i]-want[i]))
					rounding = max(rounding, 1e-13*math.Abs(want[i]))
				}
				if !(worst <= bound+rounding) || bound > 1e-8 {
					t.Errorf("%s, n=%d, most=%g: error %.3g, stated bound %.3g", name, n, most, worst, bound)
				}
			}
		}
	}
}

package valuation_test

import (
	"math"
	"testing"

	"grange/valuation"
	"grange/valuation/games"
)

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for n := range got {
		if !(math.Abs(got[n]-want[n]) <= tolerance) {
			t.Errorf("%s: member %d gets %.17g, want %.17g", what, n, got[n], want[n])
		}
	}
}

func TestShapleyOfClosedGames(t *testing.T) {
	for _, g := range games.All() {
		got, err := valuation.Shapley(g.Table())
		if err != nil {
			t.Fatal(err)
		}
		near(t, g.Name, got, g.Shapley, 1e-12)
	}
}

func TestNucleolusOfClosedGames(t *testing.T) {
	for _, g := range games.All() {
		got, err := valuation.Nucleolus(g.Table())
		if err != nil {
			t.Errorf("%s: %v", g.Name, err)
			continue
		}
		if g.Nucleolus != nil {
			near(t, g.Name, got, g.Nucleolus, 1e-12)
		}
	}
}

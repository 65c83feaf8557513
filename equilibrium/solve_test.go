package equilibrium

import (
	"context"
	"errors"
	"slices"
	"testing"

	"grange/curve"
	"grange/game"
	"grange/mechanism"
)

// TestStatesIndexError: enumerated Shapley values are exact, integrated ones
// say how exact.
func TestStatesIndexError(t *testing.T) {
	for _, members := range []int{5, 25} {
		noise, privacy := make([]float64, members), make([]float64, members)
		for n := range noise {
			noise[n], privacy[n] = float64(n%4)/20, 0.3+float64(n%3)/10
		}
		g := hospitals(300, 15000, noise, privacy)
		r, err := Solve(context.Background(), g, mechanism.SV{}, Settings{MaxIterations: 3})
		if err != nil {
			t.Fatal(err)
		}
		if exact := members <= mechanism.EnumerationLimit; exact != (r.IndexError == 0) || r.IndexError > 1e-8 {
			t.Errorf("%d members: error bound %g", members, r.IndexError)
		}
	}
}

// TestVariants: other orders and simultaneous moves end in equilibria too, or
// say that they do not.
func TestVariants(t *testing.T) {
	g := hospitals(2000, 3000, []float64{0.1, 0.1, 0, 0, 0.2}, []float64{0.4, 0.4, 0.4, 0.4, 0.4})
	for _, word := range []string{"file", "reverse", "random:7"} {
		order, err := ParseOrder(word, len(g.Members))
		if err != nil {
			t.Fatal(err)
		}
		sorted := slices.Clone(order)
		slices.Sort(sorted)
		if !slices.Equal(sorted, FileOrder(5)) {
			t.Errorf("%s is no order of all members: %v", word, order)
		}
		for _, simultaneous := range []bool{false, true} {
			for _, m := range mechanism.All() {
				r, err := Solve(context.Background(), g, m, Settings{Order: order, Simultaneous: simultaneous, MaxIterations: 200})
				if err != nil {
					t.Fatal(err)
				}
				if r.Status == Converged && !r.Certificate.Certified {
					t.Errorf("%s, %s, simultaneous %v: converged but not certified", word, m.Name(), simultaneous)
				}
				if r.Status == Cycle && r.CycleLength < 1 {
					t.Errorf("%s, %s: a cycle of length %d", word, m.Name(), r.CycleLength)
				}
			}
		}
	}
	for _, word := range []string{"", "backwards", "random:", "random:x"} {
		if _, err := ParseOrder(word, 3); err == nil {
			t.Errorf("order %q is accepted", word)
		}
	}
}

func TestNotFiniteNamesTheProfile(t *testing.T) {
	g := hospitals(50, 100, []float64{0, 0}, []float64{0.1, 0.1})
	g.Accuracy.Clean = curve.LogLinear{Alpha: [5]float64{0.1, 1, -20, 0, 0}} // no logarithm below S = 20
	g.Accuracy.Untrained = 0.1
	for _, m := range mechanism.All() {
		if _, err := Solve(context.Background(), g, m, Settings{}); !errors.Is(err, ErrNotFinite) {
			t.Errorf("%s: error %v", m.Name(), err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	g := hospitals(50, 100, []float64{0, 0}, []float64{0.1, 0.1})
	if _, err := Solve(ctx, g, mechanism.LP{}, Settings{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if _, err := Solve(context.Background(), g, mechanism.LP{}, Settings{Start: game.Profile{1, 99}}); err == nil {
		t.Error("a start outside the box is accepted")
	}
}

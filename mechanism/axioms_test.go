package mechanism

import (
	"math"
	"math/rand/v2"
	"testing"

	"grange/curve"
	"grange/game"
)

// TestShapleyAxioms checks efficiency, symmetry, the null player and
// additivity, for enumeration and for quadrature.
func TestShapleyAxioms(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-10 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for name, accuracy := range inOrder(accuracies()) {
		for _, n := range []int{2, 7, 25, 40} { // 25 and 40 by quadrature
			g, s := randomGame(rng, accuracy, n, 10000)
			s[0] = 0                        // a null player
			g.Members[n-1] = g.Members[n/2] // two of a kind
			s[n-1] = s[n/2]
			values, bound, err := SV{}.Values(g, s)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, v := range values {
				sum += v
			}
			near(name+" efficiency", sum, g.AccuracyAt(s)-accuracy.Untrained)
			near(name+" null player", values[0], 0)
			near(name+" symmetry", values[n-1], values[n/2])
			if (bound == 0) != (n-1 <= EnumerationLimit) {
				t.Errorf("%s: error bound %g for %d contributing members", name, bound, n-1)
			}

			// Additivity: the value of clean and noise together is the sum of
			// the values of each alone.
			noiseless, noise := *g, *g
			noiseless.Accuracy.Gamma = 0
			noise.Accuracy.Clean = curve.Exponential{A: 0, B: 0, C: 1}
			noise.Accuracy.Untrained = 0
			a, _, err := SV{}.Values(&noiseless, s)
			if err != nil {
				t.Fatal(err)
			}
			b, _, err := SV{}.Values(&noise, s)
			if err != nil {
				t.Fatal(err)
			}
			for i := range values {
				near(name+" additivity", a[i]+b[i], values[i])
			}
		}
	}
}

// TestShapleyOfSquare has a closed form: with clean(S) = S², the value of a
// member is s_n·S, since every pair splits its cross term.
func TestShapleyOfSquare(t *testing.T) {
	g := &game.Game{Accuracy: game.Accuracy{Clean: curve.Func(func(s float64) float64 { return s * s }), Floor: -game.Unbounded, Ceiling: game.Unbounded}}
	s := game.Profile{3, 1, 4, 1, 5, 9, 2, 6}
	total := int64(0)
	for _, x := range s {
		total += x
		g.Members = append(g.Members, game.Member{Capacity: 10})
	}
	values, _, err := SV{}.Values(g, s)
	if err != nil {
		t.Fatal(err)
	}
	for n, x := range s {
		if want := float64(x * total); math.Abs(values[n]-want) > 1e-10*want {
			t.Errorf("member %d: %v, want %v", n, values[n], want)
		}
	}
}

func TestShapleyRefusesWhatItCannotCompute(t *testing.T) {
	expression := paperAccuracy()
	expression.Formula = func(total, wrongShare float64) float64 { return 0.5 }
	clamped := paperAccuracy()
	clamped.Ceiling = 0.3
	for name, accuracy := range map[string]game.Accuracy{"expression": expression, "clamped": clamped} {
		g := &game.Game{Accuracy: accuracy}
		var s game.Profile
		for range EnumerationLimit + 1 {
			g.Members = append(g.Members, game.Member{Capacity: 1000})
			s = append(s, 500)
		}
		if _, err := (SV{}).Indices(g, s); err == nil {
			t.Errorf("%s: no error for %d members", name, len(s))
		}
	}
}

func TestByName(t *testing.T) {
	for _, name := range Names() {
		if m, err := ByName(name); err != nil || m.Name() != name {
			t.Errorf("ByName(%q) = %v, %v", name, m, err)
		}
	}
	if _, err := ByName("XX"); err == nil {
		t.Error("ByName knows XX")
	}
}

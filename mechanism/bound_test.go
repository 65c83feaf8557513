package mechanism

import (
	"math"
	"math/rand/v2"
	"testing"

	"grange/game"
	"grange/interval"
)

// randomGame draws members around one of the accuracies.
func randomGame(rng *rand.Rand, accuracy game.Accuracy, members int, capacity int64) (*game.Game, game.Profile) {
	g := &game.Game{Accuracy: accuracy, Minimum: 1, Negative: game.Negative(rng.IntN(2)), Profit: game.PowerProfit{Slope: 1000, Exponent: 2}, Cost: game.PowerCost{}}
	s := make(game.Profile, members)
	for n := range s {
		m := game.Member{Capacity: 1 + rng.Int64N(capacity)}
		if rng.IntN(3) > 0 {
			m.Noise = 0.6 * rng.Float64()
		}
		g.Members = append(g.Members, m)
		s[n] = 1 + rng.Int64N(m.Capacity)
	}
	return g, s
}

// TestDeviationsMatchDefinition compares every fast deviation with indices
// computed from the definition.
func TestDeviationsMatchDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for name, accuracy := range inOrder(accuracies()) {
		for range 60 {
			g, s := randomGame(rng, accuracy, 1+rng.IntN(6), 5000)
			g.Minimum = 0
			if rng.IntN(2) == 0 {
				s[rng.IntN(len(s))] = 0
			}
			n := rng.IntN(len(s))
			rest := game.NewState(g, s).Without(n)
			for _, m := range All() {
				fast, err := Deviate(m, g, s, n, rest)
				if err != nil {
					t.Fatal(err)
				}
				slow := Plain(m, g, s, n)
				for _, x := range []int64{0, 1, 2, g.Members[n].Capacity / 2, g.Members[n].Capacity} {
					if got, want := fast.Share(x), slow.Share(x); math.Abs(got-want) > 1e-9*(1+math.Abs(want)) && game.Finite(want) {
						t.Errorf("%s %s: share of %d at %d is %v, by definition %v (profile %v)", name, m.Name(), n, x, got, want, s)
					}
				}
			}
		}
	}
}

// TestMixtureDeviationMatchesEnumeration compares the quadrature with the
// enumeration of coalitions, for games small enough for both.
func TestMixtureDeviationMatchesEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for name, accuracy := range inOrder(accuracies()) {
		for range 20 {
			g, s := randomGame(rng, accuracy, 2+rng.IntN(9), 1_000_000)
			n := rng.IntN(len(s))
			fast, slow := bothShapley(t, g, s, n)
			for range 8 {
				x := 1 + rng.Int64N(g.Members[n].Capacity)
				if got, want := fast.Share(x), slow.Share(x); math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
					t.Errorf("%s: share at %d is %v by quadrature, %v by enumeration (%v)", name, x, got, want, g.Negative)
				}
			}
		}
	}
}

func bothShapley(t *testing.T, g *game.Game, s game.Profile, n int) (mixture, coalitions BoundedDeviation) {
	t.Helper()
	var others, all []holding
	for i, x := range s {
		h := holding{points: float64(x), noise: g.Members[i].Noise}
		all = append(all, h)
		if i != n {
			others = append(others, h)
		}
	}
	rest := game.NewState(g, s).Without(n)
	form, err := mixtureOf(&g.Accuracy, all)
	if err != nil {
		t.Fatal(err)
	}
	definition := newPlain(SV{}, g, s, n)
	return newMixtureDeviation(g, form, others, n, rest, definition), newCoalitionDeviation(g, others, n, definition)
}

// TestBoundsEncloseShares is what the branch and bound rests on: on random
// intervals, every share, every difference quotient and every second
// difference lies in the enclosure.
func TestBoundsEncloseShares(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	clamped := paperAccuracy()
	clamped.Floor, clamped.Ceiling = 0.15, 0.5
	forms := accuracies()
	forms["clamped"] = clamped
	for name, accuracy := range inOrder(forms) {
		for range 40 {
			g, s := randomGame(rng, accuracy, 2+rng.IntN(5), 20000)
			n := rng.IntN(len(s))
			rest := game.NewState(g, s).Without(n)
			for _, m := range All() {
				d, err := Deviate(m, g, s, n, rest)
				if err != nil {
					t.Fatal(err)
				}
				checkEnclosure(t, rng, name+" "+m.Name(), d.(BoundedDeviation), g.Members[n].Capacity)
			}
			if name != "clamped" {
				mixture, _ := bothShapley(t, g, s, n)
				checkEnclosure(t, rng, name+" SV by quadrature", mixture, g.Members[n].Capacity)
			}
		}
	}
}

func checkEnclosure(t *testing.T, rng *rand.Rand, name string, d BoundedDeviation, capacity int64) {
	t.Helper()
	for range 6 {
		lo := 1 + rng.Int64N(capacity)
		hi := lo + rng.Int64N(capacity-lo+1)/(1+rng.Int64N(20))
		jet := d.Bound(lo, hi)
		for range 5 {
			a := lo + rng.Int64N(hi-lo+1)
			b := lo + rng.Int64N(hi-lo+1)
			fa, fb := d.Share(a), d.Share(b)
			slack := 1e-11 * (1 + math.Abs(fa) + math.Abs(fb))
			inside(t, name, "share", jet.Value, fa, slack, lo, hi)
			if a != b {
				inside(t, name, "slope", jet.Slope, (fb-fa)/float64(b-a), slack, lo, hi)
			}
			if half := (hi - lo) / 2; half > 0 {
				h := 1 + rng.Int64N(half)
				middle := lo + h + rng.Int64N(hi-lo-2*h+1)
				second := d.Share(middle+h) - 2*d.Share(middle) + d.Share(middle-h)
				inside(t, name, "second difference", jet.Second, second/float64(h*h), 4*slack, lo, hi)
			}
		}
	}
}

func inside(t *testing.T, name, what string, i interval.Interval, x, slack float64, lo, hi int64) {
	t.Helper()
	if game.Finite(x) && !(x >= i.Lo-slack && x <= i.Hi+slack) {
		t.Errorf("%s: %s %v outside [%v, %v] on [%d, %d]", name, what, x, i.Lo, i.Hi, lo, hi)
	}
}

package theory

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grange/curve"
	"grange/equilibrium"
	"grange/game"
	"grange/internal/raced"
	"grange/mechanism"
)

// randomGame draws a game; about half of them are tame enough for the
// assumptions to hold under some mechanism.
func randomGame(rng *rand.Rand) *game.Game {
	capacity := 200 + rng.Int64N(1800)
	scale := float64(capacity) * (0.3 + 2*rng.Float64())
	accuracy := game.Accuracy{Floor: -game.Unbounded, Ceiling: game.Unbounded}
	if rng.IntN(2) == 0 {
		accuracy.Gamma = rng.Float64()
	}
	switch rng.IntN(3) {
	case 0:
		accuracy.Clean = curve.LogLinear{Alpha: [5]float64{0.1 + 0.2*rng.Float64(), 10 * rng.Float64() / scale, 1, 0, 0.1}}
	case 1:
		accuracy.Clean = curve.Power{A: 0.9, B: 0.8 * math.Pow(scale/5, 0.5), C: scale / 5, D: 0.5}
	case 2:
		accuracy.Clean = curve.Exponential{A: 0.9, B: 0.8, C: (0.3 + 2*rng.Float64()) / scale}
	}
	accuracy.Untrained = accuracy.Clean.At(0)
	g := &game.Game{Accuracy: accuracy, Minimum: 1, Cost: game.PowerCost{Exponent: []float64{1, 2}[rng.IntN(2)]}}
	beta := float64(capacity) * math.Exp(2*rng.Float64())
	switch rng.IntN(3) {
	case 0:
		g.Profit = game.LinearProfit{Slope: beta}
	case 1:
		g.Profit = game.PowerProfit{Slope: beta, Exponent: 0.5}
	case 2:
		g.Profit = game.PowerProfit{Slope: beta, Exponent: 2}
	}
	noisy := rng.IntN(2) == 0
	for n := range 2 + rng.IntN(4) {
		m := game.Member{Name: string(rune('a' + n)), Capacity: capacity/2 + rng.Int64N(capacity/2)}
		m.Privacy = beta / math.Pow(float64(capacity), g.Cost.(game.PowerCost).Exponent) * (0.02 + 0.4*rng.Float64())
		if noisy {
			m.Noise = 0.4 * rng.Float64()
		}
		g.Members = append(g.Members, m)
	}
	return g
}

// tally counts comparisons in which a member's equilibrium contribution moved
// the way a theorem says, and those in which it did not.
type tally struct{ held, failed int }

func (t *tally) count(ok bool) {
	if ok {
		t.held++
	} else {
		t.failed++
	}
}

// TestTheorems changes one member's privacy, data or noise in random games and
// compares its equilibrium contribution. Where Check finds that the theorem
// applies it must move as the theorem says; elsewhere the frequency is only
// reported.
func TestTheorems(t *testing.T) {
	games := raced.Cases(1600)
	rng := rand.New(rand.NewPCG(7, 8))
	var privacy, data, noise [2]tally // 0: theorem applies, 1: it does not
	for i := range games {
		g := randomGame(rng)
		m := mechanism.All()[i%4]
		report, err := Check(context.Background(), g, []mechanism.Mechanism{m}, Settings{Points: 300, Seed: uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		// One start for both games: where it lies decides between equilibria
		// that differ by a single point.
		start := equilibrium.StartAt(g, 0.1)
		before, ok := contributions(t, g, m, start)
		if !ok {
			continue
		}
		n := rng.IntN(len(g.Members))
		compare := func(theorem int, counts *[2]tally, change func(*game.Member), up bool) {
			other := *g
			other.Members = slices.Clone(g.Members)
			change(&other.Members[n])
			after, ok := contributions(t, &other, m, start)
			if !ok {
				return
			}
			held := after[n] <= before[n]
			if up {
				held = after[n] >= before[n]
			}
			applies := report.Theorems[theorem-1].Applies
			if applies {
				// The assumptions must hold in the changed game as well.
				again, err := Check(context.Background(), &other, []mechanism.Mechanism{m}, Settings{Points: 300, Seed: uint64(i)})
				if err != nil {
					t.Fatal(err)
				}
				applies = again.Theorems[theorem-1].Applies
			}
			if applies {
				counts[0].count(held)
				if !held {
					t.Errorf("game %d %s: Theorem %d applies, but the contribution of member %d went from %d to %d (profile %v to %v)",
						i, m.Name(), theorem, n, before[n], after[n], before, after)
				}
			} else {
				counts[1].count(held)
			}
		}
		compare(2, &privacy, func(m *game.Member) { m.Privacy *= 1.2 }, false)
		compare(2, &data, func(m *game.Member) { m.Capacity += m.Capacity / 5 }, true)
		compare(3, &noise, func(m *game.Member) { m.Noise += 0.1 }, false)
	}
	t.Logf("Theorem 2, privacy: applies %+v, does not %+v", privacy[0], privacy[1])
	t.Logf("Theorem 2, data:    applies %+v, does not %+v", data[0], data[1])
	t.Logf("Theorem 3, noise:   applies %+v, does not %+v", noise[0], noise[1])
	for _, tested := range []tally{privacy[0], data[0], noise[0]} {
		if tested.held == 0 {
			t.Error("a theorem never applied: the random games test nothing")
		}
	}
}

func contributions(t *testing.T, g *game.Game, m mechanism.Mechanism, start game.Profile) (game.Profile, bool) {
	t.Helper()
	r, err := equilibrium.Solve(context.Background(), g, m, equilibrium.Settings{Start: start, MaxIterations: 300})
	if err != nil {
		t.Fatal(err)
	}
	return r.Contributions, r.Status == equilibrium.Converged
}

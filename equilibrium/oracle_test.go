package equilibrium

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grange/curve"
	"grange/game"
	"grange/internal/raced"
	"grange/mechanism"
)

func hospitals(d int64, beta float64, noise, privacy []float64) *game.Game {
	c := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}}
	g := &game.Game{
		Accuracy: game.Accuracy{Clean: c, Gamma: 0.92, Untrained: c.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded},
		Profit:   game.PowerProfit{Slope: beta, Exponent: 2},
		Cost:     game.PowerCost{Exponent: 1},
		Minimum:  1,
	}
	for n := range noise {
		g.Members = append(g.Members, game.Member{Name: string(rune('a' + n)), Capacity: d, Noise: noise[n], Privacy: privacy[n]})
	}
	return g
}

// oracle is Algorithm 1 with every integer tried from the definition.
func oracle(g *game.Game, m mechanism.Mechanism, start game.Profile, limit int) (game.Profile, int, bool) {
	s := slices.Clone(start)
	for iteration := 1; iteration <= limit; iteration++ {
		moved := false
		for n := range s {
			x, _ := oracleResponse(g, m, s, n)
			moved = moved || x != s[n]
			s[n] = x
		}
		if !moved {
			return s, iteration, true
		}
	}
	return s, limit, false
}

// allFinite reports whether every share that the oracle meets is finite, and
// not only by rounding: indices that are not clipped can add up to nothing.
func allFinite(g *game.Game, m mechanism.Mechanism, start game.Profile, limit int) bool {
	s := slices.Clone(start)
	for range limit {
		for n := range s {
			at := slices.Clone(s)
			for at[n] = g.Minimum; at[n] <= g.Members[n].Capacity; at[n]++ {
				indices, err := m.Indices(g, at)
				if err != nil || !(math.Abs(game.Shares(indices, g.Negative)[n]) < 1e12) {
					return false
				}
			}
			s[n], _ = oracleResponse(g, m, s, n)
		}
	}
	return true
}

func oracleResponse(g *game.Game, m mechanism.Mechanism, s game.Profile, n int) (int64, float64) {
	at := slices.Clone(s)
	best, value := int64(-1), math.Inf(-1)
	for x := g.Minimum; x <= g.Members[n].Capacity; x++ {
		at[n] = x
		indices, err := m.Indices(g, at)
		if err != nil {
			panic(err)
		}
		u := game.Shares(indices, g.Negative)[n]*g.Profit.At(g.AccuracyAt(at)) - g.CostOf(n, x)
		if u > value {
			best, value = x, u
		}
	}
	return best, value
}

// randomGame draws a small game: every form of accuracy, profit and cost,
// clipped and raw indices, minimum 0 and 1, clamps and plateaus.
func randomGame(rng *rand.Rand) *game.Game {
	capacity := 5 + rng.Int64N(116)
	scale := float64(capacity) * (0.2 + 3*rng.Float64())
	accuracy := game.Accuracy{Floor: -game.Unbounded, Ceiling: game.Unbounded, Gamma: rng.Float64()}
	switch rng.IntN(4) {
	case 0:
		// The linear term is small, or makes the curve turn within reach.
		fall := []float64{0.02, 0.02, 0.3, 1}[rng.IntN(4)]
		accuracy.Clean = curve.LogLinear{Alpha: [5]float64{0.05 + 0.3*rng.Float64(), 10 * rng.Float64() / scale, 0.5 + rng.Float64(), -fall * rng.Float64() / scale, 0.2 * rng.Float64()}}
	case 1:
		accuracy.Clean = curve.Power{A: 0.7 + 0.3*rng.Float64(), B: 0.5 + rng.Float64(), C: 1 + rng.Float64(), D: 0.2 + rng.Float64()}
	case 2:
		accuracy.Clean = curve.Exponential{A: 0.7 + 0.3*rng.Float64(), B: 0.7, C: (0.3 + 4*rng.Float64()) / scale}
	case 3:
		gain := 0.3 + 0.6*rng.Float64()
		accuracy.Clean = curve.Func(func(s float64) float64 { return gain * s / (s + scale) })
	}
	accuracy.Untrained = accuracy.Clean.At(0)
	if rng.IntN(3) == 0 {
		accuracy.Untrained = 0.3 * rng.Float64()
	}
	switch rng.IntN(10) {
	case 0, 1:
		accuracy.Floor, accuracy.Ceiling = 0.05, 0.3+0.6*rng.Float64()
	case 2: // coalitions at chance level, where nobody's data make a difference
		accuracy.Floor = accuracy.Untrained
	case 3:
		accuracy.Ceiling = accuracy.Untrained
	}
	g := &game.Game{Accuracy: accuracy, Minimum: rng.Int64N(2), Negative: game.Negative(rng.IntN(4) / 3)}
	beta := math.Exp(3 + 5*rng.Float64())
	switch rng.IntN(3) {
	case 0:
		g.Profit = game.LinearProfit{Slope: beta, Base: 10 * rng.Float64()}
	case 1:
		g.Profit = game.PowerProfit{Slope: beta, Exponent: 2}
	case 2:
		g.Profit = game.PowerProfit{Slope: beta, Exponent: 0.5 + 3*rng.Float64(), Base: rng.Float64()}
	}
	g.Cost = game.PowerCost{Exponent: []float64{1, 1, 2, 0.7, 1.6}[rng.IntN(5)]}
	typical := beta / (float64(capacity) * math.Pow(float64(capacity), g.Cost.(game.PowerCost).Exponent-1))
	for n := range 2 + rng.IntN(6) {
		m := game.Member{Name: string(rune('a' + n)), Capacity: max(2, capacity-rng.Int64N(capacity)), Privacy: typical * rng.Float64() * 0.5}
		if rng.IntN(3) > 0 {
			m.Noise = 0.6 * rng.Float64()
		}
		if rng.IntN(12) == 0 {
			m.Privacy = 0
		}
		g.Members = append(g.Members, m)
	}
	return g
}

// TestMatchesOracle runs 1,000 random games under every mechanism, by bounds
// and by trying every integer from the definition. Where a payoff is not
// finite, Solve must say so.
func TestMatchesOracle(t *testing.T) {
	const passes = 60
	games := raced.Cases(1000)
	rng := rand.New(rand.NewPCG(20, 26))
	for i := range games {
		g := randomGame(rng)
		for _, m := range mechanism.All() {
			start := StartAt(g, 0.1)
			got, err := Solve(context.Background(), g, m, Settings{MaxIterations: passes})
			if err != nil {
				if !errors.Is(err, ErrNotFinite) || allFinite(g, m, start, passes) {
					t.Fatalf("game %d %s: %v", i, m.Name(), err)
				}
				continue
			}
			want, iterations, converged := oracle(g, m, start, got.Iterations)
			if !slices.Equal(got.Contributions, want) || (got.Status == Converged) != converged || got.Iterations != iterations {
				t.Errorf("game %d %s: %s after %d at %v, oracle %v after %d at %v\n%+v", i, m.Name(), got.Status, got.Iterations, got.Contributions, converged, iterations, want, *g)
				continue
			}
			// The converse need not hold: with ties, members can go round among
			// payoffs that are equally good.
			if got.Status == Converged && !got.Certificate.Certified {
				t.Errorf("game %d %s: %s but certified %v with regret %g", i, m.Name(), got.Status, got.Certificate.Certified, got.Certificate.Regret)
			}
			worst := 0.0
			for n, u := range got.Payoffs {
				_, best := oracleResponse(g, m, want, n)
				worst = max(worst, best-u)
			}
			if math.Abs(worst-got.Certificate.Regret) > 1e-9*(1+worst) {
				t.Errorf("game %d %s: regret %g, by enumeration %g", i, m.Name(), got.Certificate.Regret, worst)
			}
		}
	}
}

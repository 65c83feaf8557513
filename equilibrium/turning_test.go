package equilibrium

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"grange/curve"
	"grange/game"
	"grange/internal/raced"
	"grange/mechanism"
)

// member is a member of a game in which only data, noise and privacy matter.
func member(capacity int64, noise, privacy float64) game.Member {
	return game.Member{Name: "m", Capacity: capacity, Noise: noise, Privacy: privacy}
}

// TestKnownEquilibria solves games whose equilibria were found by code that
// shares nothing with this package: numpy, every integer tried. In each the
// payoff has a shape that is easy to get wrong.
func TestKnownEquilibria(t *testing.T) {
	// The paper's curve rises up to 83,441 points and falls from there.
	turning := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}}
	flat := curve.Exponential{A: 0.3, C: 1}
	level := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, 0, 0.7}}
	ceiled := curve.Power{A: 0.9, B: 0.5, C: 1, D: 0.5}
	pole := curve.Power{A: 0.9, B: 5, C: -300.5, D: 1}
	unbounded := func(c game.Curve) game.Accuracy {
		return game.Accuracy{Clean: c, Gamma: 0.92, Untrained: c.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded}
	}
	chance, capped := unbounded(level), unbounded(ceiled)
	chance.Floor = chance.Untrained
	capped.Ceiling, capped.Gamma = capped.Untrained, 0.3
	quadratic := game.PowerProfit{Slope: 15000, Exponent: 2}
	thirteen := make([]game.Member, 13)
	ones := make(game.Profile, 13)
	for n := range thirteen {
		thirteen[n], ones[n] = member(100, 0, 0.1), 1
	}
	for _, c := range []struct {
		name      string
		game      game.Game
		mechanism mechanism.Mechanism
		start     game.Profile
		want      game.Profile
		first     float64 // payoff of the first member
	}{
		{
			"one member beyond the peak",
			game.Game{Accuracy: unbounded(turning), Members: []game.Member{member(200000, 0, 1e-4)}, Minimum: 1},
			mechanism.EG{}, game.Profile{60000}, game.Profile{83282}, 10711.42600,
		},
		{
			"three members around the peak",
			game.Game{Accuracy: unbounded(turning), Members: []game.Member{member(100000, 0.1, 0.001), member(30000, 0.1, 0), member(60000, 0.1, 0.03)}, Minimum: 1},
			mechanism.EG{}, nil, game.Profile{48385, 30000, 1}, 2786.97264,
		},
		{
			"leave-one-out around the peak",
			game.Game{Accuracy: unbounded(turning), Members: []game.Member{member(100000, 0, 0), member(40000, 0, 0)}, Minimum: 1},
			mechanism.LOO{}, game.Profile{10000, 40000}, game.Profile{83440, 2}, 10719.76218,
		},
		{
			"every coalition at the floor",
			game.Game{Accuracy: chance, Members: []game.Member{member(50, 0.3, 20), member(100, 0.3, 5), member(50, 0.4, 5), member(200, 0.3, 20), member(100, 0.5, 5)}},
			mechanism.SV{}, nil, game.Profile{0, 0, 0, 0, 0}, 1470,
		},
		{
			"most coalitions at the ceiling",
			game.Game{
				Accuracy: capped, Members: []game.Member{member(272, 0, 0.1), member(290, 0.3, 0.001), member(100, 0.3, 0.01), member(215, 0.6, 0.001)},
				Profit: game.LinearProfit{Slope: 15000, Base: -5}, Cost: game.PowerCost{Exponent: 0.5}, Minimum: 1,
			},
			mechanism.SV{}, nil, game.Profile{1, 1, 1, 2}, 1498.65,
		},
		{
			"data that change nothing, by quadrature",
			game.Game{Accuracy: unbounded(flat), Members: thirteen, Minimum: 1},
			mechanism.SV{}, nil, ones, 103.74615,
		},
		{
			"a pole within reach",
			game.Game{Accuracy: unbounded(pole), Members: []game.Member{member(400, 0, 0.001), member(400, 0, 0.001)}, Minimum: 1},
			mechanism.EG{}, nil, game.Profile{260, 40}, math.NaN(),
		},
	} {
		g := c.game
		if g.Profit == nil {
			g.Profit = quadratic
		}
		if g.Cost == nil {
			g.Cost = game.PowerCost{}
		}
		got, err := Solve(context.Background(), &g, c.mechanism, Settings{Start: c.start})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !slices.Equal(got.Contributions, c.want) || !got.Certificate.Certified {
			t.Errorf("%s: %v, certified %v with regret %g; want %v", c.name, got.Contributions, got.Certificate.Certified, got.Certificate.Regret, c.want)
		}
		if math.Abs(got.Payoffs[0]-c.first) > 1e-5 {
			t.Errorf("%s: the first member earns %.5f, want %.5f", c.name, got.Payoffs[0], c.first)
		}
		exhaustive, err := Certify(context.Background(), &g, c.mechanism, c.want, true)
		if err != nil || !exhaustive.Certified {
			t.Errorf("%s: trying every integer leaves a regret of %g, %v", c.name, exhaustive.Regret, err)
		}
	}
}

// TestTurningCurves compares bounds with every integer tried, in games at the
// scale of the paper, whose curve turns within reach.
func TestTurningCurves(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for i := range raced.Cases(6) {
		g := hospitals(0, 15000, make([]float64, 2+rng.IntN(2)), make([]float64, 3))
		for n := range g.Members {
			g.Members[n] = member(20000+rng.Int64N(60000), []float64{0, 0.1, 0.3}[rng.IntN(3)], []float64{0, 1e-4, 1e-3, 0.03}[rng.IntN(4)])
		}
		for _, m := range []mechanism.Mechanism{mechanism.EG{}, mechanism.LP{}, mechanism.LOO{}} {
			bounds, err := Solve(context.Background(), g, m, Settings{MaxIterations: 6})
			if err != nil {
				t.Fatal(err)
			}
			every, err := Solve(context.Background(), g, m, Settings{MaxIterations: 6, Exhaustive: true})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(bounds.Contributions, every.Contributions) {
				t.Errorf("game %d %s: %v by bounds, %v by trying every integer\n%+v", i, m.Name(), bounds.Contributions, every.Contributions, g.Members)
			}
		}
	}
}

// TestCertificateIsRelative: a game in which everything is worth a trillionth
// is certified as the same game is at full size.
func TestCertificateIsRelative(t *testing.T) {
	for _, unit := range []float64{1, 1e-12} {
		g := hospitals(10000, 15000*unit, []float64{0.1, 0}, []float64{0.4 * unit, 0.4 * unit})
		c, err := Certify(context.Background(), g, mechanism.LP{}, game.Profile{4334, 6299}, false)
		if err != nil {
			t.Fatal(err)
		}
		if c.Certified || c.Regret < 10*unit {
			t.Errorf("unit %g: certified %v with regret %g", unit, c.Certified, c.Regret)
		}
	}
}

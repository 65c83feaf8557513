package equilibrium

import (
	"fmt"
	"math"

	"grange/game"
	"grange/interval"
	"grange/mechanism"
)

// payoff is one member's payoff U_n as a function of its own contribution,
// everyone else's being fixed.
type payoff struct {
	game      *game.Game
	member    game.Member
	deviation mechanism.Deviation
	rest      game.Rest

	// What bounds need; unset where one of the parts cannot be bounded.
	bounded mechanism.BoundedDeviation
	profit  game.BoundedProfit
	cost    game.BoundedCost
}

func newPayoff(g *game.Game, m mechanism.Mechanism, s *game.State, n int) (*payoff, error) {
	rest := s.Without(n)
	deviation, err := mechanism.Deviate(m, g, s.Profile(), n, rest)
	if err != nil {
		return nil, err
	}
	p := &payoff{game: g, member: g.Members[n], deviation: deviation, rest: rest}
	bounded, ok := deviation.(mechanism.BoundedDeviation)
	profit, isProfit := g.Profit.(game.BoundedProfit)
	cost, isCost := g.Cost.(game.BoundedCost)
	if ok && isProfit && isCost && g.Accuracy.Smooth() {
		p.bounded, p.profit, p.cost = bounded, profit, cost
	}
	return p, nil
}

// at returns U_n when the member contributes x.
func (p *payoff) at(x int64) float64 {
	points := float64(x)
	accuracy := p.game.Accuracy.At(p.rest.Total+points, p.rest.Wrong+p.member.Noise*points)
	return p.deviation.Share(x)*p.game.Profit.At(accuracy) - p.member.Privacy*p.game.Cost.At(points)
}

// bound encloses U_n for x in [lo, hi], lo ≥ 1, and returns with it the size
// of the numbers U_n is the difference of, to which rounding is relative.
func (p *payoff) bound(lo, hi int64) (u interval.Jet, size float64) {
	a, b := float64(lo), float64(hi)
	reach := p.game.Accuracy.Reach(p.rest, p.member.Noise, a, b)
	earned := p.bounded.Bound(lo, hi).Mul(p.profit.Bound(reach.Bound()))
	paid := p.cost.Bound(a, b).Scale(p.member.Privacy)
	return earned.Sub(paid), max(earned.Value.Magnitude(), paid.Value.Magnitude())
}

// notFinite explains a payoff that is NaN or infinite.
func notFinite(g *game.Game, m mechanism.Mechanism, s game.Profile, n int, x int64, u float64) error {
	at := make(game.Profile, len(s))
	copy(at, s)
	at[n] = x
	accuracy := g.AccuracyAt(at)
	what, value := "payoff of "+g.Members[n].Name+" under "+m.Name(), u
	if !game.Finite(accuracy) {
		what, value = "accuracy", accuracy
	} else if profit := g.Profit.At(accuracy); !game.Finite(profit) {
		what, value = "profit", profit
	} else if cost := g.CostOf(n, x); !game.Finite(cost) {
		what, value = "privacy cost of "+g.Members[n].Name, cost
	} else if indices, err := m.Indices(g, at); err == nil {
		sum := 0.0
		for i, index := range indices {
			sum += index
			if !game.Finite(index) {
				what, value = "index of "+g.Members[i].Name+" under "+m.Name(), index
				break
			}
		}
		if g.Negative == game.Raw && math.Abs(sum) < 1e-12 {
			what += " (raw indices that add up to nothing cannot be shared by; with negative: clip they can)"
		}
	}
	return fmt.Errorf("%w: the %s is %v at the profile %s", ErrNotFinite, what, value, describe(at))
}

// describe prints a profile, the middle of a long one left out.
func describe(s game.Profile) string {
	const most = 24
	if len(s) <= most {
		return fmt.Sprint([]int64(s))
	}
	head := fmt.Sprint([]int64(s[:most]))
	return fmt.Sprintf("%s … %d more]", head[:len(head)-1], len(s)-most)
}

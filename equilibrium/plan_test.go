package equilibrium

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"grange/game"
	"grange/internal/raced"
)

// bestWelfare tries every profile.
func bestWelfare(g *game.Game) float64 {
	s := make(game.Profile, len(g.Members))
	for n := range s {
		s[n] = g.Minimum
	}
	best := math.Inf(-1)
	for {
		best = max(best, g.Welfare(s))
		n := 0
		for ; n < len(s); n++ {
			if s[n]++; s[n] <= g.Members[n].Capacity {
				break
			}
			s[n] = g.Minimum
		}
		if n == len(s) {
			return best
		}
	}
}

func TestPlanAgainstEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	games := raced.Cases(300)
	optimal, proven := 0, 0
	for i := range games {
		g := randomGame(rng)
		g.Members = g.Members[:min(3, len(g.Members))]
		for n := range g.Members {
			g.Members[n].Capacity = 2 + rng.Int64N(24)
		}
		best := bestWelfare(g)
		plan, err := Plan(context.Background(), g)
		if err != nil {
			t.Fatalf("game %d: %v", i, err)
		}
		slack := 1e-9 * (1 + math.Abs(best))
		if plan.Welfare > best+slack || plan.Bound < best-slack {
			t.Errorf("game %d: plan %g, bound %g, best of all profiles %g", i, plan.Welfare, plan.Bound, best)
		}
		if plan.Welfare >= best-slack {
			optimal++
		}
		if plan.Bound-best <= 0.01*math.Abs(best) {
			proven++
		}
	}
	t.Logf("%d of %d plans optimal, %d bounds within 1%%", optimal, games, proven)
	if optimal < games*95/100 {
		t.Errorf("only %d of %d plans are optimal", optimal, games)
	}
}

package equilibrium

import (
	"context"
	"iter"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"grange/game"
	"grange/mechanism"
)

// Certify states the largest regret of any member at s over all its integer
// deviations. It starts from the profile alone: nothing the dynamics computed
// is used. It rules deviations out by the same enclosures as the dynamics do,
// and does not take their word for it: payoffs at a sample of deviations that
// no enclosure chose are computed too, and the best one counts. Members are
// examined in parallel and the outcome does not depend on how many at a time.
// With exhaustive it evaluates every deviation from the definition of the
// mechanism, all indices anew each time, instead of bounding: slow, and free of
// every shortcut.
func Certify(ctx context.Context, g *game.Game, m mechanism.Mechanism, s game.Profile, exhaustive bool) (Certificate, error) {
	if err := g.Contains(s); err != nil {
		return Certificate{}, err
	}
	type finding struct {
		best   int64
		regret float64
		size   float64 // of the numbers its payoffs are differences of
	}
	found := make([]finding, len(s))
	state := game.NewState(g, s)
	equal := math.Abs(g.Profit.At(g.AccuracyAt(s))) / float64(len(s))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for n := range s {
		group.Go(func() error {
			best, value, current, err := regret(ctx, g, m, state, n, exhaustive)
			found[n] = finding{best, value - current, max(equal, math.Abs(current), g.CostOf(n, s[n]))}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Certificate{}, err
	}
	c := Certificate{Member: -1, Method: "bounds", Certified: true}
	if exhaustive || !boundable(g, m, state) {
		c.Method = "enumeration"
	}
	for n, f := range found {
		c.Deviations += g.Members[n].Capacity - g.Minimum
		if f.regret > c.Regret {
			c.Regret, c.Member, c.Deviation = f.regret, n, f.best
		}
		c.Certified = c.Certified && f.regret <= tolerated*f.size
	}
	return c, nil
}

// regret returns member n's best deviation from s, what it would earn, and
// what it earns at s.
func regret(ctx context.Context, g *game.Game, m mechanism.Mechanism, s *game.State, n int, exhaustive bool) (best int64, value, current float64, err error) {
	if exhaustive {
		return enumerateRegret(ctx, g, m, s.Profile(), n)
	}
	best, value, err = bestResponse(ctx, g, m, s, n, false)
	if err != nil {
		return 0, 0, 0, err
	}
	p, err := newPayoff(g, m, s, n)
	if err != nil {
		return 0, 0, 0, err
	}
	for x := range sample(g.Minimum, g.Members[n].Capacity) {
		if u := p.at(x); u > value {
			best, value = x, u
		}
	}
	return best, value, p.at(s.Profile()[n]), nil
}

const (
	tolerated = 1e-10 // regret that counts as rounding, relative to the payoffs
	sampled   = 32    // deviations evaluated whatever the enclosures say
)

// sample goes through deviations spread over [lo, hi], half of them evenly and
// half by ratio.
func sample(lo, hi int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		if hi-lo < sampled {
			for x := lo; x <= hi; x++ {
				if !yield(x) {
					return
				}
			}
			return
		}
		for k := range int64(sampled) {
			part := (float64(k) + 0.5) / sampled
			x := lo + int64(part*float64(hi-lo))
			if k%2 == 1 {
				x = lo + int64(math.Pow(float64(hi-lo), part))
			}
			if !yield(x) {
				return
			}
		}
	}
}

// enumerateRegret is regret by definition.
func enumerateRegret(ctx context.Context, g *game.Game, m mechanism.Mechanism, s game.Profile, n int) (best int64, value, current float64, err error) {
	deviation := mechanism.Plain(m, g, s, n)
	at := make(game.Profile, len(s))
	copy(at, s)
	payoff := func(x int64) float64 {
		at[n] = x
		return deviation.Share(x)*g.Profit.At(g.AccuracyAt(at)) - g.CostOf(n, x)
	}
	best, value, current = s[n], math.Inf(-1), payoff(s[n])
	for x := g.Minimum; x <= g.Members[n].Capacity; x++ {
		u := payoff(x)
		if !game.Finite(u) {
			return 0, 0, 0, notFinite(g, m, s, n, x, u)
		}
		if u > value {
			best, value = x, u
		}
		if x%patience == 0 && ctx.Err() != nil {
			return 0, 0, 0, ctx.Err()
		}
	}
	return best, value, current, nil
}

// boundable reports whether deviations from s are bounded rather than tried.
func boundable(g *game.Game, m mechanism.Mechanism, s *game.State) bool {
	p, err := newPayoff(g, m, s, 0)
	return err == nil && p.bounded != nil
}

package equilibrium

import (
	"cmp"
	"context"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"grange/game"
	"grange/mechanism"
)

// Exploration is what many runs of the dynamics found.
type Exploration struct {
	Equilibria []Found // distinct ones, largest welfare first
	Cycles     int     // runs that went round
	Limits     int     // runs that hit the iteration limit
}

// Found is one equilibrium and how many runs ended there.
type Found struct {
	Result *Result
	Count  int
}

// Explore runs the dynamics from starts starting points and orders and
// collects the distinct equilibria. The first run is the one settings ask for;
// the second and third start from nobody giving and everybody giving all; the
// others start and take turns at random. Same seed, same answer, for any
// number of processors.
func Explore(ctx context.Context, g *game.Game, m mechanism.Mechanism, settings Settings, starts int, seed uint64) (*Exploration, error) {
	settings = settings.withDefaults(g)
	settings.Trace, settings.Progress = false, nil
	results := make([]*Result, starts)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range results {
		group.Go(func() error {
			var err error
			results[i], err = Solve(ctx, g, m, settings.variant(g, i, seed))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := &Exploration{}
	at := map[string]int{}
	for _, r := range results {
		switch r.Status {
		case Cycle:
			found.Cycles++
			continue
		case IterationLimit:
			found.Limits++
			continue
		}
		print := fingerprint(r.Contributions)
		key := string(print[:])
		if i, ok := at[key]; ok {
			found.Equilibria[i].Count++
			continue
		}
		at[key] = len(found.Equilibria)
		found.Equilibria = append(found.Equilibria, Found{Result: r, Count: 1})
	}
	slices.SortStableFunc(found.Equilibria, func(a, b Found) int {
		return cmp.Compare(b.Result.Welfare, a.Result.Welfare)
	})
	return found, nil
}

// variant returns the settings of run i.
func (s Settings) variant(g *game.Game, i int, seed uint64) Settings {
	switch i {
	case 0:
		return s
	case 1:
		s.Start = StartAt(g, 0)
		return s
	case 2:
		s.Start = StartAt(g, 1)
		return s
	}
	rng := rand.New(rand.NewPCG(seed, uint64(i)))
	s.Order = slices.Clone(s.Order)
	Shuffle(s.Order, rng)
	s.Start = make(game.Profile, len(g.Members))
	for n, member := range g.Members {
		s.Start[n] = g.Minimum + rng.Int64N(member.Capacity-g.Minimum+1)
	}
	return s
}

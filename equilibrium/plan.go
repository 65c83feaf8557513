package equilibrium

import (
	"cmp"
	"context"
	"math"
	"slices"

	"grange/game"
	"grange/interval"
	"grange/mechanism"
)

// Optimum is what a planner who decides for all members would do: the profile of
// largest welfare found, and a proven bound on any profile's welfare. Welfare
// does not depend on the mechanism, which only moves money between members.
type Optimum struct {
	Contributions game.Profile
	Accuracy      float64
	Profit        float64
	Welfare       float64
	// Bound is an upper bound on the welfare of every profile, +Inf where the
	// game has parts that cannot be bounded. When it equals Welfare the optimum is
	// proven optimal; the gap is what is not known.
	Bound float64
}

// planPasses bounds the passes of coordinate ascent from one start.
const planPasses = 40

// Plan searches for the profile of largest welfare. It starts from
// profiles that a Lagrangian suggests (fill up the members in the order of
// cost plus a price on wrong labels, for a range of prices) and improves each
// by exact moves of one member at a time.
func Plan(ctx context.Context, g *game.Game) (*Optimum, error) {
	best := &Optimum{Welfare: math.Inf(-1)}
	consider := func(s game.Profile) {
		if w := g.Welfare(s); w > best.Welfare {
			best.Welfare, best.Contributions = w, slices.Clone(s)
		}
	}
	for _, price := range prices(g) {
		s, err := fill(ctx, g, price)
		if err != nil {
			return nil, err
		}
		consider(s)
	}
	consider(StartAt(g, 0))
	consider(StartAt(g, 1))
	s, err := ascend(ctx, g, best.Contributions)
	if err != nil {
		return nil, err
	}
	consider(s)
	if s, err = ascend(ctx, g, StartAt(g, 0.5)); err != nil {
		return nil, err
	}
	consider(s)
	best.Accuracy = g.AccuracyAt(best.Contributions)
	best.Profit = g.Profit.At(best.Accuracy)
	best.Bound, err = welfareBound(ctx, g, best)
	return best, err
}

// whole is the mechanism of a planner: one member's objective is the welfare.
type whole struct{}

func (whole) Name() string { return "planner" }

func (whole) Indices(g *game.Game, s game.Profile) ([]float64, error) {
	return mechanism.EG{}.Indices(g, s)
}

func (whole) Deviate(*game.Game, game.Profile, int, game.Rest) (mechanism.Deviation, error) {
	return fullShare{}, nil
}

type fullShare struct{}

func (fullShare) Share(int64) float64             { return 1 }
func (fullShare) Bound(int64, int64) interval.Jet { return interval.Constant(1) }

// ascend moves one member at a time to where welfare is largest.
func ascend(ctx context.Context, g *game.Game, start game.Profile) (game.Profile, error) {
	state := game.NewState(g, start)
	settings := Settings{}.withDefaults(g)
	for range planPasses {
		moved, err := pass(ctx, g, whole{}, state, settings)
		if err != nil || moved == 0 {
			return state.Profile(), err
		}
	}
	return state.Profile(), nil
}

// prices returns a range of prices on a wrongly labelled point.
func prices(g *game.Game) []float64 {
	noisy := false
	dearest := 0.0
	for n, m := range g.Members {
		noisy = noisy || m.Noise > 0
		dearest = max(dearest, perPoint(g, n))
	}
	if !noisy || g.Accuracy.Gamma == 0 {
		return []float64{0}
	}
	list := []float64{0}
	for p := 0.02; p < 200; p *= 2 {
		list = append(list, p*max(dearest, 1e-9))
	}
	return list
}

// perPoint returns a member's cost per point when it gives all.
func perPoint(g *game.Game, n int) float64 {
	capacity := g.Members[n].Capacity
	return g.CostOf(n, capacity) / float64(max(capacity, 1))
}

// fill takes members in the order of cost plus price·noise per point, gives
// each one all it has, and stops where welfare is largest; the last member
// gives what is best given the others.
func fill(ctx context.Context, g *game.Game, price float64) (game.Profile, error) {
	order := FileOrder(len(g.Members))
	rank := make([]float64, len(order))
	for n := range rank {
		rank[n] = perPoint(g, n) + price*g.Members[n].Noise
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	state := game.NewState(g, StartAt(g, 0))
	best, value := slices.Clone(state.Profile()), g.Welfare(state.Profile())
	base := 0.0 // cost of the others as they stand
	for n, x := range state.Profile() {
		base += g.CostOf(n, x)
	}
	for _, n := range order {
		x, u, err := bestResponse(ctx, g, whole{}, state, n, false)
		if err != nil {
			return nil, err
		}
		base -= g.CostOf(n, state.Profile()[n])
		if w := u - base; w > value {
			value = w
			best = slices.Clone(state.Profile())
			best[n] = x
		}
		state.Set(n, g.Members[n].Capacity)
		base += g.CostOf(n, g.Members[n].Capacity)
	}
	return best, nil
}

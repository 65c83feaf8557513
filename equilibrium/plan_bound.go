package equilibrium

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"
	"sort"

	"grange/game"
	"grange/interval"
)

// The bound on welfare W = Π(A) − Σ C_n relaxes the game to two numbers, the
// total S and the wrong share R. Costs are replaced by straight lines below
// them; the least cost of a total S at price λ on a wrong point,
//
//	c_λ(S) = min Σ (b_n + λ·ε_n)·s_n  with Σ s_n = S,
//
// fills members in order of b_n + λ·ε_n; and by weak duality every profile with
// totals (S, R) costs at least c_λ(S) − λ·R·S, for each λ ≥ 0. Branch and bound
// over boxes of (S, R), best first, tightens the bound until it is within
// boundGap of the plan or the budget is spent. It is valid at every moment.

const (
	boundGap    = 1e-6
	boundBudget = 20000 // boxes
)

// filling is c_λ: piecewise linear, as cumulative sums in filling order.
type filling struct {
	price       float64
	total, cost []float64 // cumulative, total[0] = the least total
}

func (f *filling) at(total float64) float64 {
	i := sort.SearchFloat64s(f.total, total)
	switch {
	case i == 0:
		return f.cost[0]
	case i == len(f.total):
		return f.cost[i-1]
	}
	span := f.total[i] - f.total[i-1]
	return f.cost[i-1] + (f.cost[i]-f.cost[i-1])*(total-f.total[i-1])/span
}

// box is a range of totals and wrong shares with a bound on its welfare.
type box struct{ s0, s1, r0, r1, bound float64 }

type boxes []box

func (b boxes) Len() int           { return len(b) }
func (b boxes) Less(i, j int) bool { return b[i].bound > b[j].bound }
func (b boxes) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *boxes) Push(x any)        { *b = append(*b, x.(box)) }
func (b *boxes) Pop() any {
	old := *b
	last := old[len(old)-1]
	*b = old[:len(old)-1]
	return last
}

// welfareBound returns an upper bound on the welfare of every profile.
func welfareBound(ctx context.Context, g *game.Game, plan *Optimum) (float64, error) {
	profit, ok := g.Profit.(game.BoundedProfit)
	cost, isPower := g.Cost.(game.PowerCost)
	if !ok || !isPower || !g.Accuracy.Smooth() {
		return math.Inf(1), nil
	}
	relax := newRelaxation(g, profit, cost, plan.Contributions)
	known := plan.Welfare
	if g.Minimum == 0 { // the untrained model lies outside every box
		known = max(known, g.Welfare(make(game.Profile, len(g.Members))))
	}
	queue := &boxes{relax.bounded(box{s0: max(1, relax.least), s1: relax.most, r0: 0, r1: relax.noisiest})}
	enough := known + boundGap*max(1, math.Abs(known))
	for range boundBudget {
		top := (*queue)[0]
		if top.bound <= enough {
			break
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		heap.Pop(queue)
		for _, half := range relax.halves(top) {
			heap.Push(queue, relax.bounded(half))
		}
	}
	return max(known, (*queue)[0].bound), nil
}

// relaxation is the game in totals only.
type relaxation struct {
	game        *game.Game
	profit      game.BoundedProfit
	fillings    []filling
	least, most float64 // totals
	noisiest    float64
}

func newRelaxation(g *game.Game, profit game.BoundedProfit, cost game.PowerCost, s game.Profile) *relaxation {
	r := &relaxation{game: g, profit: profit}
	slope := make([]float64, len(g.Members))
	constant := 0.0
	for n, m := range g.Members {
		a, b := underneath(cost, float64(g.Minimum), float64(m.Capacity), float64(s[n]))
		constant += m.Privacy * a
		slope[n] = m.Privacy * b
		r.least += float64(g.Minimum)
		r.most += float64(m.Capacity)
		r.noisiest = max(r.noisiest, m.Noise)
	}
	for _, price := range prices(g) {
		order := FileOrder(len(slope))
		rank := func(n int) float64 { return slope[n] + price*g.Members[n].Noise }
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank(a), rank(b)) })
		f := filling{price: price}
		total, spent := r.least, constant
		for n := range slope {
			spent += rank(n) * float64(g.Minimum)
		}
		f.total, f.cost = append(f.total, total), append(f.cost, spent)
		for _, n := range order {
			room := float64(g.Members[n].Capacity - g.Minimum)
			if room == 0 {
				continue
			}
			total += room
			spent += rank(n) * room
			f.total, f.cost = append(f.total, total), append(f.cost, spent)
		}
		r.fillings = append(r.fillings, f)
	}
	return r
}

// underneath returns a line a + b·x below the cost on [lo, hi]: the chord of a
// concave cost, the tangent at x of a convex one.
func underneath(cost game.PowerCost, lo, hi, x float64) (a, b float64) {
	k := cost.Exponent
	switch {
	case k == 0 || k == 1:
		return 0, 1
	case k < 1:
		if hi > lo {
			b = (cost.At(hi) - cost.At(lo)) / (hi - lo)
		}
		return cost.At(lo) - b*lo, b
	}
	b = k * math.Pow(x, k-1)
	return cost.At(x) - b*x, b
}

// bounded fills in the box's bound.
func (r *relaxation) bounded(b box) box {
	a := &r.game.Accuracy
	reach := a.Reach(game.Rest{}, 0, b.s0, b.s1)
	accuracy := reach.Clean().Sub(interval.Jet{Value: interval.Of(a.Gamma*b.r0, a.Gamma*b.r1)}).Clamp(a.Floor, a.Ceiling)
	earned := r.profit.Bound(accuracy).Value.Hi
	paid := math.Inf(-1)
	for i := range r.fillings {
		f := &r.fillings[i]
		paid = max(paid, f.least(b))
	}
	b.bound = earned - paid
	return b
}

// least returns the least of c_λ(S) − λ·r1·S over the box: c_λ is convex, since
// members are filled cheapest first, so it lies at an end or at the corner
// where the slope passes λ·r1.
func (f *filling) least(b box) float64 {
	at := func(total float64) float64 { return f.at(total) - f.price*b.r1*total }
	least := min(at(b.s0), at(b.s1))
	corner := sort.Search(len(f.total)-1, func(i int) bool {
		return f.cost[i+1]-f.cost[i] >= f.price*b.r1*(f.total[i+1]-f.total[i])
	})
	if total := f.total[corner]; total > b.s0 && total < b.s1 {
		least = min(least, at(total))
	}
	return least
}

// halves splits a box across the side that matters more.
func (r *relaxation) halves(b box) [2]box {
	clean := r.game.Accuracy.Reach(game.Rest{}, 0, b.s0, b.s1)
	v := clean.Clean().Value
	wide := (v.Hi - v.Lo) + (b.s1-b.s0)/(r.most+1)
	tall := math.Abs(r.game.Accuracy.Gamma)*(b.r1-b.r0) + (b.r1 - b.r0)
	left, right := b, b
	if tall > wide {
		middle := (b.r0 + b.r1) / 2
		left.r1, right.r0 = middle, middle
		return [2]box{left, right}
	}
	middle := (b.s0 + b.s1) / 2
	if b.s1 > 16*b.s0 {
		middle = math.Sqrt(b.s0 * b.s1)
	}
	left.s1, right.s0 = middle, middle
	return [2]box{left, right}
}

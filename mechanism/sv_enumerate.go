package mechanism

import (
	"math"
	"math/bits"

	"grange/game"
	"grange/interval"
)

// enumerateShapley returns the Shapley value of every holder of data, from
// the accuracy of all 2^N coalitions.
func enumerateShapley(a *game.Accuracy, held []holding) []float64 {
	n := len(held)
	total, wrong := coalitionSums(held)
	accuracy := make([]float64, len(total))
	for c := range accuracy {
		accuracy[c] = a.At(total[c], wrong[c])
	}
	weight := coalitionWeights(n)
	values := make([]float64, n)
	for c, with := range accuracy {
		if c == 0 {
			continue
		}
		w := weight[bits.OnesCount(uint(c))-1]
		for rest := uint(c); rest != 0; rest &= rest - 1 {
			bit := rest & -rest
			values[bits.TrailingZeros(rest)] += w * (with - accuracy[uint(c)&^bit])
		}
	}
	return values
}

// coalitionSums returns S and Σ ε·s of every coalition, indexed by bit set.
func coalitionSums(held []holding) (total, wrong []float64) {
	total = make([]float64, 1<<len(held))
	wrong = make([]float64, 1<<len(held))
	for i, h := range held {
		bit := 1 << i
		for c := range bit {
			total[bit|c] = total[c] + h.points
			wrong[bit|c] = wrong[c] + h.noise*h.points
		}
	}
	return total, wrong
}

// coalitionWeights returns, for a coalition of k others among n players, the
// weight 1/(n·C(n−1, k)) of a marginal contribution to it.
func coalitionWeights(n int) []float64 {
	weight := make([]float64, n)
	binomial := 1.0
	for k := range weight {
		weight[k] = 1 / (float64(n) * binomial)
		binomial = binomial * float64(n-1-k) / float64(k+1)
	}
	return weight
}

// coalitionDeviation follows one member's Shapley share by enumerating the
// coalitions of the others. Those without the member keep their accuracy.
type coalitionDeviation struct {
	game       *game.Game
	others     []holding
	noise      float64
	equal      float64
	definition *plain    // answers for a contribution of zero
	total      []float64 // per coalition of others
	wrong      []float64
	accuracy   []float64
	weight     []float64
	joined     []float64 // scratch: accuracy with the member
	reach      []game.Reach
	fixed      []float64 // per other: the part of its value that x does not change
	suspects   []int     // others whose value may be negative
}

func newCoalitionDeviation(g *game.Game, others []holding, n int, definition *plain) *coalitionDeviation {
	d := &coalitionDeviation{
		game: g, others: others, noise: g.Members[n].Noise, equal: 1 / float64(len(g.Members)), definition: definition,
		weight: coalitionWeights(len(others) + 1),
		fixed:  make([]float64, len(others)),
	}
	d.total, d.wrong = coalitionSums(others)
	most := d.total[len(d.total)-1] + float64(g.Members[n].Capacity)
	for i, h := range others {
		if g.Accuracy.Smooth() && !harmless(&g.Accuracy, h, most) {
			d.suspects = append(d.suspects, i)
		}
	}
	d.accuracy = make([]float64, len(d.total))
	d.joined = make([]float64, len(d.total))
	d.reach = make([]game.Reach, len(d.total))
	for c := range d.accuracy {
		d.accuracy[c] = g.Accuracy.At(d.total[c], d.wrong[c])
		size := bits.OnesCount(uint(c))
		for rest := uint(c); rest != 0; rest &= rest - 1 {
			bit := rest & -rest
			d.fixed[bits.TrailingZeros(rest)] += d.weight[size-1] * (d.accuracy[c] - d.accuracy[uint(c)&^bit])
		}
	}
	return d
}

func (d *coalitionDeviation) Share(x int64) float64 {
	if x == 0 {
		return d.definition.Share(0)
	}
	points := float64(x)
	own := 0.0
	for c := range d.joined {
		d.joined[c] = d.game.Accuracy.At(d.total[c]+points, d.wrong[c]+d.noise*points)
		own += d.weight[bits.OnesCount(uint(c))] * (d.joined[c] - d.accuracy[c])
	}
	shared := sharer{negative: d.game.Negative}
	shared.add(own)
	for i := range d.others {
		shared.add(d.fixed[i] + d.gained(i))
	}
	return shared.share(own, d.equal)
}

// gained returns the part of another member's value that comes from
// coalitions the deviating member has joined.
func (d *coalitionDeviation) gained(i int) float64 {
	sum := 0.0
	bit := 1 << i
	for c := range d.joined {
		if c&bit != 0 {
			sum += d.weight[bits.OnesCount(uint(c))] * (d.joined[c] - d.joined[c&^bit])
		}
	}
	return sum
}

// Bound uses that the values add up to A(N) − A(∅): only negative ones, which
// are clipped away, have to be added back to get the sum of the indices.
func (d *coalitionDeviation) Bound(lo, hi int64) interval.Jet {
	accuracy := &d.game.Accuracy
	if !accuracy.Smooth() {
		return interval.Unknown
	}
	a, b := float64(lo), float64(hi)
	own := interval.Jet{}
	for c := range d.reach {
		d.reach[c] = accuracy.Reach(game.Rest{Total: d.total[c], Wrong: d.wrong[c]}, d.noise, a, b)
		gain := d.reach[c].Bound().Shift(-d.accuracy[c])
		own = own.Add(gain.Scale(d.weight[bits.OnesCount(uint(c))]))
	}
	sum := d.reach[len(d.reach)-1].Bound().Shift(-accuracy.Untrained)
	if d.game.Negative == game.Raw {
		return quotient(accuracy, own, sum)
	}
	sum = sum.Add(own.Scale(-1).PositivePart())
	positive := own.Value.Hi > 0 || len(d.suspects) < len(d.others)
	for _, i := range d.suspects {
		value := d.valueBound(i)
		positive = positive || value.Value.Hi > 0
		sum = sum.Add(value.Scale(-1).PositivePart())
	}
	if !positive { // all indices are clipped: an equal split
		return interval.Constant(d.equal)
	}
	return clipped(accuracy, own, sum, d.equal)
}

// clipped encloses the share of a value own where the clipped values add up to
// sum. Where both are zero to the bit, as when every coalition is at the floor,
// nobody's data make a difference, and the profit is split equally.
func clipped(a *game.Accuracy, own, sum interval.Jet, equal float64) interval.Jet {
	zero := interval.Point(0)
	if own.Value == zero && sum.Value == zero {
		return interval.Constant(equal)
	}
	return quotient(a, own.PositivePart(), sum)
}

// quotient encloses own/sum for values that add up to A(N) − A(∅) or more.
func quotient(a *game.Accuracy, own, sum interval.Jet) interval.Jet {
	least := sum.Value.Nearest()
	if indistinct(least, largest(a, least)) {
		return interval.Unknown
	}
	return own.Div(sum)
}

// largest is the size of the accuracies that values with this sum are
// differences of.
func largest(a *game.Accuracy, sum float64) float64 {
	return max(math.Abs(a.Untrained), math.Abs(a.Untrained+sum))
}

// valueBound encloses another member's value, from the reaches Bound left.
func (d *coalitionDeviation) valueBound(i int) interval.Jet {
	h := d.others[i]
	bit := 1 << i
	value := interval.Constant(d.fixed[i])
	for c := range d.reach {
		if c&bit == 0 {
			gain := game.Gain(&d.reach[c|bit], &d.reach[c], h.points, h.noise)
			value = value.Add(gain.Scale(d.weight[bits.OnesCount(uint(c))+1]))
		}
	}
	return value
}

// harmless reports whether a holding can only raise the accuracy of any
// coalition with up to total points, so that its Shapley value cannot be
// negative: even if all other labels are right, what it adds to clean(S)
// outweighs its wrong labels, γ·noise·points/(S + points). The gain is monotone
// in S, so each of a chain of intervals is settled at its ends.
func harmless(a *game.Accuracy, h holding, total float64) bool {
	if a.Gamma < 0 || !(a.At(h.points, h.noise*h.points) >= a.Untrained) {
		return false
	}
	const ratio = 1.25
	gain := func(s float64) float64 { return a.Clean.At(s+h.points) - a.Clean.At(s) }
	before := gain(1)
	for s := 1.0; s < total; {
		next := min(s*ratio, total)
		after := gain(next)
		if !(min(before, after) >= a.Gamma*h.noise*h.points/(s+h.points)) {
			return false
		}
		s, before = next, after
	}
	return true
}

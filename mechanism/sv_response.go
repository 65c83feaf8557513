package mechanism

import (
	"math"

	"grange/curve"
	"grange/game"
	"grange/interval"
)

// series is F(x) = constant + linear·x + Σ rise_k·(1 − e^(−t_k·x)) + x·Σ tilt_k·e^(−t_k·x):
// every Shapley value as a function of one member's contribution x, once the
// others are integrated out.
type series struct {
	constant, linear float64
	rise, tilt       []float64
}

func newSeries(nodes int) *series {
	return &series{rise: make([]float64, nodes), tilt: make([]float64, nodes)}
}

// mixtureDeviation follows one member's Shapley share by quadrature.
type mixtureDeviation struct {
	game       *game.Game
	grid       *grid
	rest       game.Rest
	noise      float64
	equal      float64
	definition *plain // answers for a contribution of zero, and where rounding decides
	own        *series
	negative   *series   // the sum of the values that are negative everywhere
	suspects   []*series // values that may change sign
	positive   bool      // somebody else's value is positive everywhere
}

// newMixtureDeviation integrates the others out, once for all contributions of
// member n.
func newMixtureDeviation(g *game.Game, mixture curve.Mixture, others []holding, n int, rest game.Rest, definition *plain) *mixtureDeviation {
	member := g.Members[n]
	d := &mixtureDeviation{game: g, rest: rest, noise: member.Noise, equal: 1 / float64(len(g.Members)), definition: definition}
	most := rest.Total + float64(member.Capacity)
	d.grid = newGrid(&g.Accuracy, mixture, len(others)+1, 1, most, responseStep)
	var watched []int
	d.positive = g.Negative == game.Raw
	if g.Negative == game.Clip {
		for m, h := range others {
			if !harmless(&g.Accuracy, h, most) {
				watched = append(watched, m)
			} else {
				d.positive = true
			}
		}
	}
	values := d.integrate(others, watched)
	for _, value := range values {
		bound := d.bound(value, 1, float64(member.Capacity)).Value
		switch {
		case bound.Lo > 0:
			d.positive = true
		case bound.Hi <= 0:
			if d.negative == nil {
				d.negative = newSeries(len(d.grid.nodes))
			}
			d.negative.add(value)
		default:
			d.suspects = append(d.suspects, value)
		}
	}
	return d
}

// integrate fills d.own and returns the values of the watched members. With
// e = e^(−tx) and the products P and H over the others but m,
//
//	E over C of m's marginal = clean·z_m·P(1−q+qe) − noise·(spoilt_m·P(1−q+qe) − z_m·(P·H·(1−q+qe) + ε_n·x·q·e·P)).
func (d *mixtureDeviation) integrate(others []holding, watched []int) []*series {
	g := d.grid
	members := float64(len(others) + 1)
	d.own = newSeries(len(g.nodes))
	d.own.constant, d.own.linear = g.linking/members, g.linear
	values := make([]*series, len(watched))
	for i, m := range watched {
		values[i] = newSeries(len(g.nodes))
		values[i].constant = g.linking/members + g.linear*others[m].points
	}
	z := make([]float64, len(others))
	spoilt := make([]float64, len(others))
	inverse := make([]float64, len(others))
	out, outH := make([]float64, len(watched)), make([]float64, len(watched)) // ∫ (1−q)·P, ∫ (1−q)·P·H
	in, inH := make([]float64, len(watched)), make([]float64, len(watched))   // ∫ q·P, ∫ q·P·H
	for k, node := range g.nodes {
		decay := 0.0
		for m, h := range others {
			z[m] = -math.Expm1(-node.t * h.points)
			spoilt[m] = h.noise * h.points * (1 - z[m])
			decay += z[m]
		}
		clear(out)
		clear(outH)
		clear(in)
		clear(inH)
		var all, allH float64 // ∫ P, ∫ P·H
		for i, q := range g.q {
			if q*decay > decayed {
				continue
			}
			product, h := products(q, z, spoilt, inverse)
			p := product * g.dq[i]
			all += p
			allH += p * h
			for j, m := range watched {
				r := inverse[m]
				pm, hm := p*r, h-q*spoilt[m]*r
				out[j] += (1 - q) * pm
				in[j] += q * pm
				outH[j] += (1 - q) * pm * hm
				inH[j] += q * pm * hm
			}
		}
		d.own.rise[k] = node.clean*all + node.noise*allH
		d.own.tilt[k] = -node.noise * d.noise * all
		for j, m := range watched {
			free := node.clean*z[m]*out[j] - node.noise*(spoilt[m]*out[j]-z[m]*outH[j])
			met := node.clean*z[m]*in[j] - node.noise*(spoilt[m]*in[j]-z[m]*inH[j])
			values[j].constant += free + met
			values[j].rise[k] = -met
			values[j].tilt[k] = node.noise * z[m] * d.noise * in[j]
		}
	}
	return values
}

func (s *series) add(o *series) {
	s.constant += o.constant
	s.linear += o.linear
	for k := range s.rise {
		s.rise[k] += o.rise[k]
		s.tilt[k] += o.tilt[k]
	}
}

func (d *mixtureDeviation) at(s *series, x float64) float64 {
	sum, tilt := 0.0, 0.0
	for k, node := range d.grid.nodes {
		e := math.Expm1(-node.t * x)
		sum -= s.rise[k] * e
		tilt += s.tilt[k] * (e + 1)
	}
	return s.constant + s.linear*x + sum + x*tilt
}

func (d *mixtureDeviation) Share(x int64) float64 {
	if x == 0 {
		return d.definition.Share(0)
	}
	points := float64(x)
	own := d.at(d.own, points)
	sum := d.game.Accuracy.At(d.rest.Total+points, d.rest.Wrong+d.noise*points) - d.game.Accuracy.Untrained
	if d.game.Negative == game.Raw {
		if indistinct(sum, largest(&d.game.Accuracy, sum)) {
			return d.definition.Share(x)
		}
		return own / sum
	}
	positive := d.positive || own > 0
	if d.negative != nil {
		sum -= d.at(d.negative, points)
	}
	for _, s := range d.suspects {
		value := d.at(s, points)
		positive = positive || value > 0
		sum -= min(0, value)
	}
	sum -= min(0, own)
	switch {
	case !positive: // all indices are clipped: an equal split
		return d.equal
	case indistinct(sum, largest(&d.game.Accuracy, sum)):
		return d.definition.Share(x)
	}
	return max(0, own) / sum
}

func (d *mixtureDeviation) Bound(lo, hi int64) interval.Jet {
	a, b := float64(lo), float64(hi)
	own := d.bound(d.own, a, b)
	whole := d.game.Accuracy.Reach(d.rest, d.noise, a, b)
	sum := whole.Bound().Shift(-d.game.Accuracy.Untrained)
	if d.game.Negative == game.Raw {
		return quotient(&d.game.Accuracy, own, sum)
	}
	if d.negative != nil {
		sum = sum.Sub(d.bound(d.negative, a, b))
	}
	positive := d.positive || own.Value.Hi > 0
	for _, s := range d.suspects {
		value := d.bound(s, a, b)
		positive = positive || value.Value.Hi > 0
		sum = sum.Add(value.Scale(-1).PositivePart())
	}
	sum = sum.Add(own.Scale(-1).PositivePart())
	if !positive {
		return interval.Constant(d.equal)
	}
	return clipped(&d.game.Accuracy, own, sum, d.equal)
}

// bound encloses a series term by term. With y = t·x, the functions 1 − e^(−y)
// and its derivatives are monotone; y·e^(−y), (1 − y)·e^(−y) and (y − 2)·e^(−y)
// turn once, at y = 1, 2 and 3.
func (d *mixtureDeviation) bound(s *series, lo, hi float64) interval.Jet {
	var low, high [3]float64
	add := func(order int, k, a, b float64) {
		if k*a > k*b {
			a, b = b, a
		}
		low[order] += k * a
		high[order] += k * b
	}
	for k, node := range d.grid.nodes {
		t := node.t
		y0, y1 := t*lo, t*hi
		e0, e1 := math.Exp(-y0), math.Exp(-y1)
		rise := s.rise[k]
		add(0, -rise, math.Expm1(-y0), math.Expm1(-y1))
		add(1, rise*t, e0, e1)
		add(2, -rise*t*t, e0, e1)
		if tilt := s.tilt[k]; tilt != 0 {
			turning(add, 0, tilt/t, y0*e0, y1*e1, y0, y1, 1, 1/math.E)
			turning(add, 1, tilt, (1-y0)*e0, (1-y1)*e1, y0, y1, 2, -1/(math.E*math.E))
			turning(add, 2, tilt*t, (y0-2)*e0, (y1-2)*e1, y0, y1, 3, 1/(math.E*math.E*math.E))
		}
	}
	return interval.Jet{
		Value:  interval.Of(s.constant+low[0]+min(s.linear*lo, s.linear*hi), s.constant+high[0]+max(s.linear*lo, s.linear*hi)),
		Slope:  interval.Of(s.linear+low[1], s.linear+high[1]),
		Second: interval.Of(low[2], high[2]),
	}
}

// turning adds k times a function that runs from f0 at y0 to f1 at y1 and
// turns once, with value peak at y = at.
func turning(add func(order int, k, a, b float64), order int, k, f0, f1, y0, y1, at, peak float64) {
	lo, hi := min(f0, f1), max(f0, f1)
	if y0 < at && at < y1 {
		lo, hi = min(lo, peak), max(hi, peak)
	}
	add(order, k, lo, hi)
}

package mechanism

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"

	"grange/curve"
	"grange/game"
)

// The Shapley value of member n is ∫₀¹ E[A(C ∪ n) − A(C)] dq, where every
// other member is in C independently with probability q. A mixture of
// exponentials e^(−tS) turns the expectation into products,
//
//	E[e^(−tS(C))] = Π (1 − q·z_m),  z_m = 1 − e^(−t·s_m),
//
// so that with P = Π over the others and H = Σ ε_m·s_m·q·e^(−t·s_m)/(1 − q·z_m)
//
//	E[Δ e^(−tS)] = −z_n·P
//	E[ΔR]        = ∫ P·(ε_n·s_n·e^(−t·s_n) − z_n·H) dt.
//
// Both integrals are taken on one grid, shared by all members: Gauss–Legendre
// in q, the trapezoidal rule in ln t. docs/shapley.md derives this and its
// error.

const (
	indexStep    = 0.2  // spacing in ln t where indices are computed
	responseStep = 0.25 // and where candidates are compared
	smallest     = 1e-7 // t·S below which the integrand is a power of t
	decayed      = 45   // e^(−decayed) is nothing
	panelNodes   = 16
	roundOff     = 1e-14 // of sums like these, relative to their size
)

// node is one point of the grid in t with its weights for the clean curve and
// for the wrong share.
type node struct{ t, clean, noise float64 }

// grid is where the two integrals are evaluated.
type grid struct {
	nodes   []node
	steps   int // how many nodes belong to the trapezoidal rule
	q, dq   []float64
	linear  float64
	linking float64 // clean(0) − A(∅), which a coalition's first member gains
}

// newGrid lays out the nodes for coalitions of up to members holders with at
// least least and in all at most total points.
func newGrid(a *game.Accuracy, mixture curve.Mixture, members int, least, total, step float64) *grid {
	g := &grid{linear: mixture.Linear, linking: a.Clean.At(0) - a.Untrained}
	g.q, g.dq = probabilities(members)
	component := mixture.Component
	lowest, highest := 1/total, 0.0
	if component.Density != nil {
		lowest = min(lowest, component.Cutoff)
		highest = component.Cutoff
	}
	if a.Gamma != 0 {
		highest = max(highest, 1/least)
	}
	if highest > 0 {
		from, to := math.Log(lowest*smallest), math.Log(highest*decayed)
		count := 2 * int(math.Ceil((to-from)/step/2))
		for i := 0; i <= count; i++ {
			t := math.Exp(from + float64(i)*step)
			width := step * t
			n := node{t: t, noise: a.Gamma * width}
			if component.Density != nil {
				n.clean = width * component.Density(t)
			}
			if i == 0 {
				// What lies below the first node is a geometric series.
				n.clean /= -math.Expm1(-step * max(component.Order, 1))
				n.noise /= -math.Expm1(-step)
			}
			g.nodes = append(g.nodes, n)
		}
	}
	g.steps = len(g.nodes)
	if component.Rate > 0 {
		g.nodes = append(g.nodes, node{t: component.Rate, clean: component.Weight})
	}
	return g
}

// probabilities returns the quadrature in q for a product of members factors.
// It is a polynomial of that degree in q, so that one Gauss–Legendre rule is
// exact for few members; for many it falls like e^(−members·q), and panels
// that double in width follow it.
func probabilities(members int) (q, weight []float64) {
	if members <= 12*panelNodes {
		count := members/2 + 1
		q, weight = make([]float64, count), make([]float64, count)
		quad.Legendre{}.FixedLocations(q, weight, 0, 1)
		return q, weight
	}
	x, w := make([]float64, panelNodes), make([]float64, panelNodes)
	for lo, hi := 0.0, 4/float64(members); lo < 1; lo, hi = hi, 2*hi {
		hi = min(hi, 1)
		quad.Legendre{}.FixedLocations(x, w, lo, hi)
		q, weight = append(q, x...), append(weight, w...)
	}
	return q, weight
}

// integrateShapley returns the Shapley value of every holder of data and a
// bound on the error: how much the values change when every second node is
// left out, plus by how much they fail to add up to A(N) − A(∅), plus rounding.
func integrateShapley(a *game.Accuracy, mixture curve.Mixture, held []holding) (values []float64, errorBound float64) {
	least, total, wrong := held[0].points, 0.0, 0.0
	for _, h := range held {
		least = min(least, h.points)
		total += h.points
		wrong += h.noise * h.points
	}
	g := newGrid(a, mixture, len(held), least, total, indexStep)
	values = make([]float64, len(held))
	even := make([]float64, len(held)) // twice the sum over every second node
	z := make([]float64, len(held))
	spoilt := make([]float64, len(held))
	inverse := make([]float64, len(held))
	own := make([]float64, len(held))
	for k, node := range g.nodes {
		decay := 0.0
		for m, h := range held {
			z[m] = -math.Expm1(-node.t * h.points)
			spoilt[m] = h.noise * h.points * (1 - z[m])
			decay += z[m]
			own[m] = 0
		}
		for i, q := range g.q {
			if q*decay > decayed { // the product is at most e^(−q·Σz)
				continue
			}
			product, h := products(q, z, spoilt, inverse)
			p := product * g.dq[i]
			for m, r := range inverse {
				lost := spoilt[m] - z[m]*(h-q*spoilt[m]*r)
				own[m] += p * r * (node.clean*z[m] - node.noise*lost)
			}
		}
		factor := g.alternate(k)
		for m, v := range own {
			values[m] += v
			even[m] += factor * v
		}
	}
	sum, size := 0.0, 0.0
	for m, h := range held {
		rest := g.linear*h.points + g.linking/float64(len(held))
		errorBound = max(errorBound, math.Abs(values[m]-even[m]))
		values[m] += rest
		sum += values[m]
		size += math.Abs(values[m])
	}
	whole := a.At(total, wrong) - a.Untrained
	return values, errorBound + math.Abs(sum-whole) + roundOff*size
}

// alternate returns the weight, relative to its own, that node k has in the
// trapezoidal rule of twice the step.
func (g *grid) alternate(k int) float64 {
	switch {
	case k >= g.steps: // a single exponential is no part of the rule
		return 1
	case k == 0:
		return 2 / (1 + math.Exp(-indexStep))
	}
	return 2 * float64((k+1)%2)
}

// products returns Π (1 − q·z_m) and Σ q·spoilt_m/(1 − q·z_m), and leaves the
// inverse factors in inverse.
func products(q float64, z, spoilt, inverse []float64) (product, h float64) {
	// Two chains each, so that the next step need not wait for the last.
	product = 1
	other := 1.0
	var h2 float64
	m := 0
	for ; m+1 < len(z); m += 2 {
		f0, f1 := 1-q*z[m], 1-q*z[m+1]
		r0, r1 := 1/f0, 1/f1
		inverse[m], inverse[m+1] = r0, r1
		product *= f0
		other *= f1
		h += spoilt[m] * r0
		h2 += spoilt[m+1] * r1
	}
	if m < len(z) {
		f := 1 - q*z[m]
		inverse[m] = 1 / f
		product *= f
		h += spoilt[m] * inverse[m]
	}
	return product * other, q * (h + h2)
}

package valuation

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Kernel fits an additive game to the sampled worths, by least squares with
// the Shapley kernel's weights (KernelSHAP; Lundberg & Lee 2017). Coalitions
// come in pairs with their complements (Covert & Lee 2021) and without
// repetition; sizes share the samples by their leverage, which is the same for
// every size (Musco & Witter 2025). The values add up to v(N) − v(∅). Its zero
// value works.
type Kernel struct{}

// Name returns "kernel".
func (Kernel) Name() string { return "kernel" }

// Begin starts an estimation.
func (Kernel) Begin(s Start) (Estimation, error) {
	return &kernel{newPairing(s, func(int) float64 { return 1 })}, nil
}

type kernel struct{ *pairing }

// weight is that of one sampled pair: the kernel's, times how many pairs of
// its class it stands for, up to a constant.
func (c *class) weight(n int) float64 {
	w := 1 / (float64(c.k*(n-c.k)) * float64(len(c.side)))
	if c.half {
		w /= 2
	}
	return w
}

// signs fills in ±1 for members in and outside s, less their mean, so that
// what all members get together does not matter.
func (c *class) signs(s Coalition, row []float64) {
	for i := range row {
		row[i] = 2 * c.lever(s, i, len(row))
	}
}

func (e *kernel) Estimate() Estimate {
	n := e.start.Members
	estimate := newEstimate(n)
	equal := (e.start.Whole - e.start.Empty) / float64(n)
	inverse, right, regular := e.normal(equal)
	solution := mat.NewVecDense(n, nil)
	solution.MulVec(inverse, mat.NewVecDense(n, right))
	scores := make([][]moments, len(e.classes))
	level := 0.0 // mean square of the residuals
	row, move := make([]float64, n), mat.NewVecDense(n, nil)
	for j, c := range e.classes {
		scores[j] = make([]moments, n)
		weight := c.weight(n)
		for t, s := range c.side {
			c.signs(s, row)
			x := mat.NewVecDense(n, row)
			move.MulVec(inverse, x)
			residual := c.excess(t, n, equal) - mat.Dot(x, solution)
			// A pair pulls the fit towards itself; its leverage tells how much.
			residual /= max(0.05, 1-weight*mat.Dot(x, move))
			level += residual * residual / float64(e.samples)
			for i := range n {
				scores[j][i].add(weight * move.AtVec(i) * residual)
			}
		}
	}
	for i := range n {
		variance, scatter := 0.0, 0.0
		for j, c := range e.classes {
			if c.complete() {
				continue
			}
			m := scores[j][i]
			part := c.open() * float64(m.count) * m.variance()
			variance += part
			scatter += part * part / float64(m.count-1)
		}
		if !regular || math.Sqrt(level) <= alike*e.largest() {
			variance = math.NaN()
		}
		estimate.set(i, equal+solution.AtVec(i), math.Sqrt(variance), variance*variance/scatter)
	}
	return estimate
}

// excess is the gap of a pair less what an equal split explains of it.
func (c *class) excess(t, n int, equal float64) float64 {
	return c.gap[t] - equal*float64(2*c.k-n)
}

// normal returns the inverse and the right side of the normal equations, and
// whether there were enough pairs for them.
func (e *kernel) normal(equal float64) (inverse *mat.Dense, right []float64, regular bool) {
	n := e.start.Members
	a := mat.NewSymDense(n, nil)
	right = make([]float64, n)
	row := make([]float64, n)
	for _, c := range e.classes {
		weight := c.weight(n)
		for t, s := range c.side {
			c.signs(s, row)
			a.SymRankOne(a, weight, mat.NewVecDense(n, row))
			y := c.excess(t, n, equal)
			for i, x := range row {
				right[i] += weight * x * y
			}
		}
	}
	// The rows add up to zero; fixing that direction does not move the rest.
	ones := mat.NewVecDense(n, nil)
	for i := range n {
		ones.SetVec(i, 1)
	}
	a.SymRankOne(a, 1/float64(n), ones)
	regular = e.samples > n
	var factor mat.Cholesky
	if !factor.Factorize(a) || factor.Cond() > 1e10 {
		for i := range n {
			a.SetSym(i, i, a.At(i, i)+1e-6*(1+mat.Trace(a)/float64(n)))
		}
		factor.Factorize(a)
		regular = false
	}
	var sym mat.SymDense
	if err := factor.InverseTo(&sym); err != nil {
		regular = false
	}
	return mat.DenseCopyOf(&sym), right, regular
}

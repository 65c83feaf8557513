package nn

import (
	"math"

	"grange/model"
)

// normOp is a batch normalisation, with the addition and the rectifier that
// follow it, if any.
type normOp struct {
	layer         model.Layer
	input, output int
	skip          int  // the layer added to the result; noSkip if none
	handOver      bool // the output's slope becomes the skip's
	rectified     bool

	mean, inverse []float64 // of the batch: mean and 1/σ per channel
	a, b, c       []float32 // per-channel factors for the kernels
}

// noSkip stands for no layer; it differs from model.Input.
const noSkip = -2

// statRows is how many rows are summed in single precision before they are
// added to the double-precision total.
const statRows = 256

func newNormOp(l model.Layer) *normOp {
	c := l.In.Channels
	return &normOp{
		layer: l, skip: noSkip,
		mean: make([]float64, c), inverse: make([]float64, c),
		a: make([]float32, c), b: make([]float32, c), c: make([]float32, c),
	}
}

func (o *normOp) rows(count int) int { return count * o.layer.In.Height * o.layer.In.Width }

func (o *normOp) forward(n *Network, w *model.Weights, count int, train bool) {
	l := &o.layer
	size := o.rows(count) * l.In.Channels
	x := n.value(o.input)[:size]
	mean, variance := w.Tensor(l.Mean), w.Tensor(l.Variance)
	if train {
		o.measure(n, x, o.rows(count), mean, variance)
	} else {
		for c := range o.mean {
			o.mean[c] = float64(mean[c])
			o.inverse[c] = 1 / math.Sqrt(float64(variance[c])+model.Epsilon)
		}
	}
	gamma, beta := w.Tensor(l.Weight), w.Tensor(l.Bias)
	for c := range o.mean {
		a := float64(gamma[c]) * o.inverse[c]
		o.a[c] = float32(a)
		o.b[c] = float32(float64(beta[c]) - a*o.mean[c])
	}
	var skip []float32
	if o.skip != noSkip {
		skip = n.value(o.skip)[:size]
	}
	n.engine.scale(n.values[o.output][:size], x, o.a, o.b, skip, o.rectified)
}

// measure takes mean and deviation of the batch and moves the running ones.
func (o *normOp) measure(n *Network, x []float32, rows int, mean, variance []float32) {
	channels := len(o.mean)
	sum, squares := n.engine.scratch(channels)
	clear(o.mean)
	clear(o.inverse)
	for from := 0; from < rows; from += statRows {
		part := min(statRows, rows-from)
		clear(sum)
		clear(squares)
		n.engine.moments(sum, squares, x[from*channels:(from+part)*channels], part)
		for c := range sum {
			o.mean[c] += float64(sum[c])
			o.inverse[c] += float64(squares[c])
		}
	}
	for c := range o.mean {
		m := o.mean[c] / float64(rows)
		v := max(o.inverse[c]/float64(rows)-m*m, 0)
		o.mean[c] = m
		o.inverse[c] = 1 / math.Sqrt(v+model.Epsilon)
		mean[c] = float32(model.Momentum*float64(mean[c]) + (1-model.Momentum)*m)
		variance[c] = float32(model.Momentum*float64(variance[c]) + (1-model.Momentum)*v)
	}
}

func (o *normOp) backward(n *Network, w *model.Weights, count int) {
	e, l := n.engine, &o.layer
	channels, rows := l.In.Channels, o.rows(count)
	size := rows * channels
	x, slope := n.value(o.input)[:size], n.slopes[o.output][:size]
	if o.rectified {
		e.gate(slope, slope, n.values[o.output])
	}
	if o.skip >= 0 {
		accumulated := n.start(o.skip)
		switch {
		case o.handOver:
		case accumulated:
			e.blend(n.slopes[o.skip][:size], slope, 1, 1)
		default:
			copy(n.slopes[o.skip], slope)
		}
	}
	// With x̂ = (x−mean)/σ: ∂γ = Σ slope·x̂, ∂β = Σ slope, and
	// ∂x = γ/σ·(slope − ∂β/rows − x̂·∂γ/rows), a combination a·slope + b·x + c.
	dBeta, dGamma := n.part(w, l.Bias), n.part(w, l.Weight)
	totals, crosses := o.total(e, slope, x, rows)
	gamma := w.Tensor(l.Weight)
	for c := range o.mean {
		db := totals[c]
		dg := (crosses[c] - o.mean[c]*db) * o.inverse[c]
		dBeta[c], dGamma[c] = float32(db), float32(dg)
		a := float64(gamma[c]) * o.inverse[c]
		b := -a * o.inverse[c] * dg / float64(rows)
		o.a[c], o.b[c] = float32(a), float32(b)
		o.c[c] = float32(-a*db/float64(rows) - b*o.mean[c])
	}
	if o.input == model.Input {
		return
	}
	dx := n.slopes[o.input][:size]
	if n.start(o.input) {
		e.combine(slope, slope, x, o.a, o.b, o.c)
		e.blend(dx, slope, 1, 1)
		return
	}
	e.combine(dx, slope, x, o.a, o.b, o.c)
}

// total sums slope and slope·x per channel in double precision.
func (o *normOp) total(e *engine, slope, x []float32, rows int) (totals, crosses []float64) {
	channels := len(o.mean)
	sum, cross := e.scratch(channels)
	totals, crosses = e.totals[:channels], e.totals[channels:2*channels]
	clear(e.totals[:2*channels])
	for from := 0; from < rows; from += statRows {
		part := min(statRows, rows-from)
		clear(sum)
		clear(cross)
		e.products(sum, cross, slope[from*channels:(from+part)*channels], x[from*channels:(from+part)*channels], part)
		for c := range sum {
			totals[c] += float64(sum[c])
			crosses[c] += float64(cross[c])
		}
	}
	return totals, crosses
}

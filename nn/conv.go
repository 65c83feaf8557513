package nn

import "grange/model"

// convOp is a convolution, with the rectifier that follows it, if any.
type convOp struct {
	layer         model.Layer
	input, output int
	rectified     bool
	gated         bool // the slope comes with the rectifier's gradient taken
}

// depth is the number of weights that meet in one output value.
func (o *convOp) depth() int { return o.layer.Kernel * o.layer.Kernel * o.layer.In.Channels }

// pixels is the number of output positions of count images.
func (o *convOp) pixels(count int) int { return count * o.layer.Out.Height * o.layer.Out.Width }

func (o *convOp) forward(n *Network, w *model.Weights, count int, _ bool) {
	e, l := n.engine, &o.layer
	depth, outputs, pixels := o.depth(), l.Out.Channels, o.pixels(count)
	y := n.values[o.output]
	e.pack(operand{w.Tensor(l.Weight), outputs, 1}, depth, outputs)
	part, high := split(depth, blockDepth, 4), split(pixels, blockRows, e.rows[0])
	for p := 0; p < pixels; p += high {
		rows := min(high, pixels-p)
		for k := 0; k < depth; k += part {
			deep := min(part, depth-k)
			mode := 0
			if k > 0 {
				mode = accumulate
			}
			var bias []float32
			if k+part >= depth {
				if l.Bias != model.None {
					bias = w.Tensor(l.Bias)
				}
				if o.rectified {
					mode |= rectify
				}
			}
			e.multiplyBlock(o.gather(n, p, rows, k, deep), e.packed[k*e.padded(outputs):],
				y[p*outputs:], rows, deep, outputs, outputs, mode, bias)
		}
	}
}

func (o *convOp) backward(n *Network, w *model.Weights, count int) {
	e, l := n.engine, &o.layer
	outputs := l.Out.Channels
	slope := n.slopes[o.output][:o.pixels(count)*outputs]
	if o.rectified && !o.gated {
		e.gate(slope, slope, n.values[o.output])
	}
	if l.Bias != model.None {
		bias := n.part(w, l.Bias)
		clear(bias)
		e.sums(bias, slope, o.pixels(count))
	}
	o.backwardWeights(n, w, count, slope)
	if o.input != model.Input {
		o.backwardInput(n, w, count, slope)
	}
}

// backwardWeights multiplies the transposed windows with the slopes. The depth
// of this product are the pixels.
func (o *convOp) backwardWeights(n *Network, w *model.Weights, count int, slope []float32) {
	e, l := n.engine, &o.layer
	depth, outputs, pixels := o.depth(), l.Out.Channels, o.pixels(count)
	weight := n.part(w, l.Weight)
	part, high := split(pixels, gradientDepth, 4), split(depth, gradientRows, e.rows[0])
	for p := 0; p < pixels; p += part {
		deep := min(part, pixels-p)
		mode := 0
		if p > 0 {
			mode = accumulate
		}
		e.pack(operand{slope[p*outputs:], outputs, 1}, deep, outputs)
		for k := 0; k < depth; k += high {
			rows := min(high, depth-k)
			windows := o.gather(n, p, deep, k, rows)
			e.multiplyBlock(operand{windows.data, windows.column, windows.row}, e.packed, weight[k*outputs:],
				rows, deep, outputs, outputs, mode, nil)
		}
	}
}

// backwardInput multiplies the slopes with the transposed weights and adds the
// resulting windows up where they overlap.
func (o *convOp) backwardInput(n *Network, w *model.Weights, count int, slope []float32) {
	e, l := n.engine, &o.layer
	depth, outputs, pixels := o.depth(), l.Out.Channels, o.pixels(count)
	dx := n.slopes[o.input][:count*l.In.Size()]
	if !n.start(o.input) {
		clear(dx)
	}
	e.pack(operand{w.Tensor(l.Weight), 1, outputs}, outputs, depth)
	part, high := split(outputs, blockDepth, 4), o.windowRows(e)
	windows := e.windows[:high*depth]
	for p := 0; p < pixels; p += high {
		rows := min(high, pixels-p)
		for k := 0; k < outputs; k += part {
			mode := 0
			if k > 0 {
				mode = accumulate
			}
			e.multiplyBlock(operand{slope[p*outputs+k:], outputs, 1}, e.packed[k*e.padded(depth):],
				windows, rows, min(part, outputs-k), depth, depth, mode, nil)
		}
		scatter(dx, windows, l, p, rows, e.blend)
	}
}

// windowRows is how many windows of slopes are worked on at a time.
func (o *convOp) windowRows(e *engine) int {
	high := blockRows * blockDepth / o.depth()
	return min(max(high/e.rows[0], 1)*e.rows[0], blockRows)
}

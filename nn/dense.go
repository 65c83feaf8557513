package nn

import "grange/model"

// denseOp is a dense layer, with the rectifier that follows it, if any.
type denseOp struct {
	input, output   int // layers
	weight, bias    int // tensors
	inputs, outputs int
	rectified       bool
}

func (d *denseOp) forward(n *Network, w *model.Weights, count int, _ bool) {
	mode := 0
	if d.rectified {
		mode = rectify
	}
	n.engine.pack(operand{w.Tensor(d.weight), d.outputs, 1}, d.inputs, d.outputs)
	n.engine.multiply(product{
		rows: count, depth: d.inputs, columns: d.outputs,
		a: operand{n.value(d.input), d.inputs, 1},
		c: n.values[d.output], cRow: d.outputs,
		mode: mode, bias: w.Tensor(d.bias),
	})
}

func (d *denseOp) backward(n *Network, w *model.Weights, count int) {
	e := n.engine
	x, slope := n.value(d.input), n.slopes[d.output][:count*d.outputs]
	if d.rectified {
		e.gate(slope, slope, n.values[d.output])
	}
	bias := n.part(w, d.bias)
	clear(bias)
	e.sums(bias, slope, count)
	e.pack(operand{slope, d.outputs, 1}, count, d.outputs)
	e.multiply(product{
		rows: d.inputs, depth: count, columns: d.outputs,
		a: operand{x, 1, d.inputs},
		c: n.part(w, d.weight), cRow: d.outputs,
	})
	if d.input == model.Input {
		return
	}
	mode := 0
	if n.start(d.input) {
		mode = accumulate
	}
	e.pack(operand{w.Tensor(d.weight), 1, d.outputs}, d.outputs, d.inputs)
	e.multiply(product{
		rows: count, depth: d.outputs, columns: d.inputs,
		a: operand{slope, d.outputs, 1},
		c: n.slopes[d.input], cRow: d.inputs, mode: mode,
	})
}

package nn

import "grange/model"

// rectifyOp is a rectifier that could not be fused into the layer before it.
type rectifyOp struct {
	input, output int
	size          int // of one image's activation
}

func (o *rectifyOp) forward(n *Network, _ *model.Weights, count int, _ bool) {
	size := count * o.size
	n.engine.rectify(n.values[o.output][:size], n.value(o.input)[:size])
}

func (o *rectifyOp) backward(n *Network, _ *model.Weights, count int) {
	if o.input == model.Input {
		return
	}
	size := count * o.size
	slope, dx := n.slopes[o.output][:size], n.slopes[o.input][:size]
	if !n.start(o.input) {
		n.engine.gate(dx, slope, n.values[o.output][:size])
		return
	}
	n.engine.gate(slope, slope, n.values[o.output][:size])
	n.engine.blend(dx, slope, 1, 1)
}

// addOp is an addition that could not be fused into a batch normalisation.
type addOp struct {
	first, second, output int
	size                  int
}

func (o *addOp) forward(n *Network, _ *model.Weights, count int, _ bool) {
	size := count * o.size
	y := n.values[o.output][:size]
	copy(y, n.value(o.first))
	n.engine.blend(y, n.value(o.second)[:size], 1, 1)
}

func (o *addOp) backward(n *Network, _ *model.Weights, count int) {
	size := count * o.size
	slope := n.slopes[o.output][:size]
	for _, input := range [2]int{o.first, o.second} {
		switch {
		case input == model.Input:
		case n.start(input):
			n.engine.blend(n.slopes[input][:size], slope, 1, 1)
		default:
			copy(n.slopes[input], slope)
		}
	}
}

package program

import "grange/model"

// backward writes the gradients of all weights, given the slope of the logits, in float32 by tensor. Rows without an
// image have slope zero, and every step keeps them so.
func (n *network) backward(slope value) map[int]value {
	gradients := map[int]value{}
	slopes := make([]*value, len(n.spec.Layers))
	last := len(n.spec.Layers) - 1
	out := n.reshape(n.as(n.computing(), slope), n.options.Batch, 1, 1, n.spec.Classes)
	slopes[last] = &out
	give := func(layer int, s value) {
		switch {
		case layer == model.Input:
		case slopes[layer] == nil:
			slopes[layer] = &s
		default:
			total := n.add(*slopes[layer], s)
			slopes[layer] = &total
		}
	}
	for i := last; i >= 0; i-- {
		if slopes[i] == nil {
			continue
		}
		l, s := n.spec.Layers[i], *slopes[i]
		from := l.Inputs[0]
		switch l.Kind {
		case model.Dense:
			n.denseBackward(l, s, gradients, func(s value) { give(from, s) })
		case model.Conv:
			n.convBackward(l, s, gradients)
			if from != model.Input {
				give(from, n.convSlope(l, s))
			}
		case model.BatchNorm:
			give(from, n.normBackward(i, l, s, gradients))
		case model.ReLU:
			zero := n.fill(s.element, 0, s.dims...)
			give(from, n.where(n.compare("GT", n.values[i], zero), s, zero))
		case model.MaxPool:
			x := n.value(from)
			give(from, n.opWith("select_and_scatter", window(l),
				[]func(){n.binary("GE", x.element), n.binary("add", x.element)}, x.like(), x, s, n.number(x.element, 0)))
		case model.AveragePool:
			x := n.value(from)
			share := n.multiply(s, n.fill(s.element, 1/float64(l.In.Height*l.In.Width), s.dims...))
			give(from, n.spread(n.reshape(share, x.dims[0], x.dims[3]), x.dims, 0, 3))
		case model.Add:
			give(from, s)
			give(l.Inputs[1], s)
		}
	}
	return gradients
}

func (n *network) denseBackward(l model.Layer, s value, gradients map[int]value, give func(value)) {
	flat := n.reshape(s, n.options.Batch, l.Out.Channels)
	x := n.value(l.Inputs[0])
	gradients[l.Weight] = n.product(n.reshape(x, n.options.Batch, l.In.Size()), flat, 0, 0)
	gradients[l.Bias] = n.sum(flat, 0)
	if l.Inputs[0] == model.Input {
		return
	}
	back := n.product(flat, n.as(n.computing(), n.weights[l.Weight]), 1, 1)
	give(n.reshape(n.as(n.computing(), back), x.dims...))
}

// convBackward writes the gradient of a kernel: a convolution of the input with the slope, in which images take the
// place of channels.
func (n *network) convBackward(l model.Layer, s value, gradients map[int]value) {
	beyond := func(in, out int) int { return (out-1)*l.Stride + 1 - in + l.Kernel - l.Padding - 1 }
	w := windows{
		stride: 1, low: l.Padding, high: [2]int{beyond(l.In.Height, l.Out.Height), beyond(l.In.Width, l.Out.Width)},
		inputDilation: 1, kernelDilation: l.Stride,
		dimensions: "[f, 0, 1, b]x[i, 0, 1, o]->[f, 0, 1, b]",
	}
	result := tensor(n.computing(), n.weights[l.Weight].dims...)
	gradients[l.Weight] = n.as(f32, n.convolution(w, result, n.value(l.Inputs[0]), s))
	if l.Bias != model.None {
		gradients[l.Bias] = n.sum(s, 0, 1, 2)
	}
}

// convSlope writes the slope of a convolution's input: a convolution of the slope, spread by the stride, with the
// turned kernel.
func (n *network) convSlope(l model.Layer, s value) value {
	kernel := n.as(n.computing(), n.weights[l.Weight])
	turned := n.op("reverse", "dimensions = array<i64: 1, 2>", kernel.like(), kernel)
	low := l.Kernel - 1 - l.Padding
	beyond := func(in, out int) int { return in + l.Kernel - 1 - ((out-1)*l.Stride + 1) - low }
	w := windows{
		stride: 1, low: low, high: [2]int{beyond(l.In.Height, l.Out.Height), beyond(l.In.Width, l.Out.Width)},
		inputDilation: l.Stride, kernelDilation: 1,
		dimensions: "[b, 0, 1, f]x[i, 0, 1, o]->[b, 0, 1, f]",
	}
	return n.convolution(w, n.value(l.Inputs[0]).like(), s, turned)
}

// normBackward writes the gradients of a batch normalisation. With x̂ = (x−mean)/σ they are ∂γ = Σ slope·x̂ and
// ∂β = Σ slope, and the slope of x is γ/σ·(slope − ∂β/rows − x̂·∂γ/rows), a combination a·slope + b·x + c.
func (n *network) normBackward(i int, l model.Layer, s value, gradients map[int]value) value {
	x := n.value(l.Inputs[0])
	saved := n.norms[i]
	rows := n.spread(n.rows(l), []int{l.In.Channels})
	total, cross := n.moments(s, x)
	gamma := n.multiply(n.subtract(cross, n.multiply(saved.mean, total)), saved.inverse)
	gradients[l.Weight], gradients[l.Bias] = gamma, total
	if l.Inputs[0] == model.Input {
		return value{}
	}
	b := n.divide(n.multiply(n.multiply(saved.scale, saved.inverse), gamma), rows)
	c := n.subtract(n.multiply(b, saved.mean), n.divide(n.multiply(saved.scale, total), rows))
	slope := n.multiply(n.as(f32, s), n.channels(saved.scale, x.dims))
	slope = n.subtract(slope, n.multiply(n.as(f32, x), n.channels(b, x.dims)))
	slope = n.add(slope, n.channels(c, x.dims))
	return n.clear(n.as(n.computing(), slope))
}

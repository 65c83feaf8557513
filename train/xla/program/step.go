package program

import (
	"fmt"

	"grange/model"
)

// carry is what the loop of a training program carries.
type carry struct {
	i         value // the step
	losses    value
	weights   []value
	velocity  []value
	reference []value
	fixed     []value // images, scale, rates, points, labels, counts
}

func (c carry) pack() []value {
	all := append([]value{c.i, c.losses}, c.weights...)
	all = append(all, c.velocity...)
	all = append(all, c.reference...)
	return append(all, c.fixed...)
}

// unpack takes values packed from a carry of the same form.
func (c carry) unpack(v []value) carry {
	take := func(n int) []value {
		part := v[:n:n]
		v = v[n:]
		return part
	}
	first := take(2)
	return carry{
		i: first[0], losses: first[1], weights: take(len(c.weights)), velocity: take(len(c.velocity)),
		reference: take(len(c.reference)), fixed: take(len(c.fixed)),
	}
}

// batch is one step's images and labels.
type batch struct {
	images  value // in the computing type, normalised; rows without an image are zero
	labels  value // i32
	present value // i1: which rows have an image
	any     value // i1 scalar: whether there are images at all
	count   value // f32 scalar: how many there are
}

// batch takes the images of step i.
func (w *writer) batch(i, images, scale, points, labels, counts value) batch {
	size := w.options.Batch
	count := w.reshape(w.row(counts, i))
	b := batch{
		labels:  w.reshape(w.row(labels, i), size),
		present: w.compare("LT", w.iota(i32, 0, size), w.spread(count, []int{size})),
		any:     w.compare("GT", count, w.number(i32, 0)),
		count:   w.as(f32, count),
	}
	in := w.spec.Input
	dims := []int{size, in.Height, in.Width, in.Channels}
	slices := []int{1, in.Height, in.Width, in.Channels}
	attributes := "dimension_numbers = #stablehlo.gather<offset_dims = [1, 2, 3], collapsed_slice_dims = [0], " +
		"start_index_map = [0], index_vector_dim = 1>, slice_sizes = " + integers(slices)
	x := w.as(f32, w.op("gather", attributes, tensor(u8, dims...), images, w.reshape(w.row(points, i), size)))
	factor := w.part(w.reshape(scale, 2*in.Channels), 0, in.Channels, []int{in.Channels})
	summand := w.part(w.reshape(scale, 2*in.Channels), in.Channels, 2*in.Channels, []int{in.Channels})
	x = w.add(w.multiply(x, w.channels(factor, dims)), w.channels(summand, dims))
	n := &network{text: w.text, options: w.options, present: b.present}
	b.images = n.clear(n.as(n.computing(), x))
	return b
}

// loss is the sum of the losses −log softmax(logits)[label] of a batch, and the slope of its mean.
func (w *writer) loss(logits value, b batch) (sum, slope value) {
	size, classes := w.options.Batch, w.spec.Classes
	all := []int{size, classes}
	least := w.op("constant", fmt.Sprintf("value = dense<0xFF800000> : tensor<%s>", f32), tensor(f32))
	shifted := w.subtract(logits, w.spread(w.reduce("maximum", logits, least, 1), all, 0))
	powers := w.op("exponential", "", shifted.like(), shifted)
	total := w.sum(powers, 1)
	logarithm := w.op("log", "", total.like(), total)
	chosen := w.compare("EQ", w.iota(i32, 1, all...), w.spread(b.labels, all, 0))
	zero := w.fill(f32, 0, all...)
	own := w.sum(w.where(chosen, shifted, zero), 1)
	losses := w.where(b.present, w.subtract(logarithm, own), w.fill(f32, 0, size))
	share := w.divide(powers, w.spread(total, all, 0))
	slope = w.subtract(share, w.where(chosen, w.fill(f32, 1, all...), zero))
	slope = w.divide(slope, w.spread(b.count, all))
	return w.sum(losses, 0), w.where(w.spread(b.present, all, 0), slope, zero)
}

// hits counts the images whose largest logit, the first among equals, is that of their label.
func (w *writer) hits(logits value, b batch) value {
	size, classes := w.options.Batch, w.spec.Classes
	all := []int{size, classes}
	least := w.op("constant", fmt.Sprintf("value = dense<0xFF800000> : tensor<%s>", f32), tensor(f32))
	top := w.compare("EQ", logits, w.spread(w.reduce("maximum", logits, least, 1), all, 0))
	none := w.number(i32, float64(classes))
	first := w.reduce("minimum", w.where(top, w.iota(i32, 1, all...), w.spread(none, all)), none, 1)
	hit := w.where(w.compare("EQ", first, b.labels), w.fill(i32, 1, size), w.fill(i32, 0, size))
	return w.reduce("add", w.where(b.present, hit, w.fill(i32, 0, size)), w.number(i32, 0), 0)
}

// step writes one step of training.
func (w *writer) step(c carry) carry {
	images, scale, rates := c.fixed[0], c.fixed[1], c.fixed[2]
	b := w.batch(c.i, images, scale, c.fixed[3], c.fixed[4], c.fixed[5])
	n := &network{text: w.text, spec: w.spec, options: w.options, weights: c.weights, present: b.present, count: b.count}
	loss, slope := w.loss(n.forward(b.images, true), b)
	gradients := n.backward(slope)

	next := c
	next.i = w.add(c.i, w.number(i32, 1))
	next.losses = w.put(c.losses, loss, c.i)
	next.weights = append([]value(nil), c.weights...)
	next.velocity = append([]value(nil), c.velocity...)
	rate := func(i int) value { return w.part(rates, i, i+1, nil) }
	r := sgd{rate: rate(0), momentum: rate(1), decay: rate(2), proximal: rate(3)}
	r.pull = w.add(r.decay, r.proximal)
	keep := func(after, before value) value { return w.where(w.spread(b.any, before.dims), after, before) }
	for i, t := range w.spec.Tensors {
		if t.Role != model.Parameter {
			next.weights[i] = keep(n.fresh[i], c.weights[i])
			continue
		}
		move := w.add(gradients[i], w.multiply(c.weights[i], w.spread(r.pull, c.weights[i].dims)))
		if w.options.Proximal {
			move = w.subtract(move, w.multiply(c.reference[i], w.spread(r.proximal, c.weights[i].dims)))
		}
		if w.options.Momentum {
			move = w.add(w.multiply(c.velocity[i], w.spread(r.momentum, c.weights[i].dims)), move)
			next.velocity[i] = keep(move, c.velocity[i])
		}
		after := w.subtract(c.weights[i], w.multiply(move, w.spread(r.rate, c.weights[i].dims)))
		next.weights[i] = keep(after, c.weights[i])
	}
	return next
}

// sgd are the rates of gradient descent, as scalars.
type sgd struct {
	rate, momentum, decay, proximal value
	pull                            value // decay and proximal together
}

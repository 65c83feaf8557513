// Package program writes the training and the scoring of a model.Spec as StableHLO, the language that XLA compiles.
//
// A program does several steps in a loop on the device, so that the host is not waited for between them. The images are
// an argument that stays on the device; a step takes its batch from them by index. Weights come and go as one flat
// vector, laid out like model.Weights.Flat.
//
// A batch may have fewer images than the program's: its further rows are kept zero all the way through the network, so
// that sums over the batch are those of the images alone, and a step with no images at all changes nothing. One program
// thus serves full batches and the last, smaller one of an epoch.
//
// The derivatives are written out by hand, as they are in package nn, from which the numbers differ by rounding only.
// This package needs neither XLA nor a device.
package program

import (
	"fmt"

	"grange/model"
)

// Precision is the type of activations and products. Weights, gradients of weights, batch norm, sums and losses are
// float32 always.
type Precision string

// The precisions.
const (
	BFloat16 Precision = "bf16"
	Float32  Precision = "f32"
)

// Options say for which sizes a program is written.
type Options struct {
	// Images is how many images there are to choose from.
	Images int
	// Batch is the largest number of images in a step, and Steps the number of steps in a call.
	Batch, Steps int
	// Precision is BFloat16 or Float32.
	Precision Precision
	// Momentum and Proximal say whether SGD has these parts.
	Momentum, Proximal bool
}

// Rates is the number of rates that a training program takes: rate, momentum, decay and proximal, in this order.
const Rates = 4

// Train writes the program that trains. Its arguments are, with S the number of weights:
//
//	weights    f32[S]
//	velocity   f32[S]                          with Momentum only
//	reference  f32[S]                          with Proximal only
//	images     ui8[Images, height, width, channels]
//	scale      f32[2, channels]                factor and summand that normalise a byte
//	rates      f32[Rates]
//	points     i32[Steps, Batch]               indices of images
//	labels     i32[Steps, Batch]
//	counts     i32[Steps]                      images in each step
//
// and its results the weights, the velocity (with Momentum only) and f32[Steps], the sum of each step's losses.
func Train(spec model.Spec, o Options) string {
	w := newWriter(spec, o)
	weights := w.argument(f32, spec.Size())
	var velocity, reference value
	if o.Momentum {
		velocity = w.argument(f32, spec.Size())
	}
	if o.Proximal {
		reference = w.argument(f32, spec.Size())
	}
	fixed := w.data()
	rates := w.argument(f32, Rates)
	fixed = append(fixed, rates)
	fixed = append(fixed, w.batches()...)
	results := []value{weights.like()}
	if o.Momentum {
		results = append(results, velocity.like())
	}
	results = append(results, tensor(f32, o.Steps))

	w.open("train", results)
	state := carry{i: w.number(i32, 0), weights: w.split(weights), losses: w.fill(f32, 0, o.Steps), fixed: fixed}
	if o.Momentum {
		state.velocity = w.split(velocity)
	}
	if o.Proximal {
		state.reference = w.split(reference)
	}
	after := state.unpack(w.loop(state.pack(), w.before(o.Steps), func(v []value) []value {
		return w.step(state.unpack(v)).pack()
	}))
	out := []value{w.joined(after.weights)}
	if o.Momentum {
		out = append(out, w.joined(after.velocity))
	}
	return w.close(append(out, after.losses), results)
}

// Score writes the program that scores. It takes weights, images, scale, points, labels and counts as Train does, and
// its results are i32[Steps], how many images of each step are classified correctly, and f32[Steps], the sum of their
// losses.
func Score(spec model.Spec, o Options) string {
	w := newWriter(spec, o)
	weights := w.argument(f32, spec.Size())
	fixed := append(w.data(), w.batches()...)
	results := []value{tensor(i32, o.Steps), tensor(f32, o.Steps)}
	w.open("score", results)
	i, correct, losses := w.number(i32, 0), w.fill(i32, 0, o.Steps), w.fill(f32, 0, o.Steps)
	tensors := w.split(weights)
	carried := append(append([]value{i, correct, losses}, tensors...), fixed...)
	after := w.loop(carried, w.before(o.Steps), func(v []value) []value {
		i, correct, losses, tensors, fixed := v[0], v[1], v[2], v[3:3+len(tensors)], v[3+len(tensors):]
		b := w.batch(i, fixed[0], fixed[1], fixed[2], fixed[3], fixed[4])
		n := &network{text: w.text, spec: spec, options: o, weights: tensors, present: b.present, count: b.count}
		logits := n.forward(b.images, false)
		loss, _ := w.loss(logits, b)
		next := []value{w.add(i, w.number(i32, 1)), w.put(correct, w.hits(logits, b), i), w.put(losses, loss, i)}
		return append(append(next, tensors...), fixed...)
	})
	return w.close(after[1:3], results)
}

// writer writes a program.
type writer struct {
	*text
	spec      model.Spec
	options   Options
	arguments []value
}

func newWriter(spec model.Spec, o Options) *writer {
	return &writer{text: &text{}, spec: spec, options: o}
}

func (w *writer) argument(e element, dims ...int) value {
	v := tensor(e, dims...)
	v.name = fmt.Sprintf("%%a%d", len(w.arguments))
	w.arguments = append(w.arguments, v)
	return v
}

// data are the arguments that hold the images.
func (w *writer) data() []value {
	in := w.spec.Input
	return []value{w.argument(u8, w.options.Images, in.Height, in.Width, in.Channels), w.argument(f32, 2, in.Channels)}
}

// batches are the arguments that say which images a step takes.
func (w *writer) batches() []value {
	o := w.options
	return []value{w.argument(i32, o.Steps, o.Batch), w.argument(i32, o.Steps, o.Batch), w.argument(i32, o.Steps)}
}

func (w *writer) open(name string, results []value) {
	fmt.Fprintf(w, "module @grange_%s {\nfunc.func public @main(%s) -> (%s) {\n", name,
		join(w.arguments, func(v value) string { return v.name + ": " + v.typ() }), join(results, value.typ))
}

func (w *writer) close(out, results []value) string {
	fmt.Fprintf(w, "\"func.return\"(%s) : (%s) -> ()\n}\n}\n", join(out, func(v value) string { return v.name }), join(results, value.typ))
	return w.String()
}

// before is the condition of a loop over steps; the first carried value counts them.
func (w *writer) before(steps int) func([]value) value {
	return func(v []value) value { return w.compare("LT", v[0], w.number(i32, float64(steps))) }
}

// split cuts the flat vector of weights into tensors. Kernels of convolutions get the order in which the card computes
// with them, output channel first, so that a step need not turn them.
func (w *writer) split(flat value) []value {
	parts := make([]value, len(w.spec.Tensors))
	for i, t := range w.spec.Tensors {
		parts[i] = w.part(flat, t.Offset, t.Offset+t.Size, t.Shape)
		if len(t.Shape) == 4 {
			parts[i] = w.transpose(parts[i], 3, 0, 1, 2)
		}
	}
	return parts
}

// joined puts tensors together to the flat vector of weights.
func (w *writer) joined(parts []value) value {
	flat := make([]value, len(parts))
	for i, p := range parts {
		if len(p.dims) == 4 {
			p = w.transpose(p, 1, 2, 3, 0)
		}
		flat[i] = w.reshape(p, w.spec.Tensors[i].Size)
	}
	return w.op("concatenate", "dimension = 0 : i64", tensor(f32, w.spec.Size()), flat...)
}

// put writes a scalar at position i of a vector.
func (w *writer) put(vector, scalar, i value) value {
	return w.op("dynamic_update_slice", "", vector.like(), vector, w.reshape(scalar, 1), i)
}

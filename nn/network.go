// Package nn trains the networks of package model on the CPU, in pure Go with
// kernels in Go assembly for AVX-512 and AVX2 and plain Go for every other
// machine.
//
// A Network is the workspace of one core: it runs on the goroutine that calls
// it and shares nothing with others, so members of a federation are trained in
// parallel by giving each worker its own. Sums are taken in an order that
// depends on sizes alone; with the same kernel the same inputs give the same
// bytes.
//
// Activations are kept row, column, channel, so that a kernel row of a
// convolution is contiguous in memory and everything that works per channel
// runs along vectors. Convolutions gather blocks of windows into a buffer that
// stays in cache and multiply them like dense layers.
package nn

import (
	"errors"
	"fmt"
	"slices"

	"grange/model"
)

// Errors that callers may test for.
var (
	// ErrKernel is returned for a kernel that is unknown or that this CPU lacks.
	ErrKernel = errors.New("nn: kernel not available")
	// ErrBatch is returned for a batch size below one.
	ErrBatch = errors.New("nn: batch size must be at least 1")
	// ErrSpec is returned for an architecture that this engine cannot run.
	ErrSpec = errors.New("nn: architecture not supported")
)

// Options are the choices of New. The zero value works.
type Options struct {
	// Kernel is "avx512", "avx2" or "portable"; empty picks the fastest that
	// this CPU has.
	Kernel string
}

// Network runs one architecture for batches up to a fixed size. It allocates
// its memory when made and none afterwards. It is not safe for concurrent use.
type Network struct {
	spec   model.Spec
	batch  int
	engine *engine

	ops      []op
	values   [][]float32 // activations by layer; fused layers share one
	slopes   [][]float32 // gradients of the loss by layer, in reused memory
	images   []float32   // the input as it came, in planes
	input    []float32   // and in the order of activations, where that differs
	gradient []float32   // of the weights, laid out like model.Weights.Flat
	trained  []span      // the parts of the flat vector that SGD moves
	started  []bool      // which slopes hold a contribution already
}

// span is a half-open range of the flat vector of weights.
type span struct{ from, to int }

// op is one step of the plan: a layer, or several fused into one.
type op interface {
	forward(n *Network, w *model.Weights, count int, train bool)
	// backward turns the slope of the op's output into the gradient of its
	// weights and the slopes of its inputs.
	backward(n *Network, w *model.Weights, count int)
	// ends are the layers whose value it writes and reads.
	ends() (output int, inputs []int)
}

// New makes a Network for spec and batches of up to batch images.
func New(spec model.Spec, batch int, options Options) (*Network, error) {
	if batch < 1 {
		return nil, fmt.Errorf("%w, not %d", ErrBatch, batch)
	}
	kernels, err := kernelsFor(options.Kernel)
	if err != nil {
		return nil, err
	}
	n := &Network{
		spec: spec, batch: batch, engine: newEngine(kernels),
		values:   make([][]float32, len(spec.Layers)),
		slopes:   make([][]float32, len(spec.Layers)),
		started:  make([]bool, len(spec.Layers)),
		gradient: make([]float32, spec.Size()),
	}
	for _, t := range spec.Tensors {
		last := len(n.trained) - 1
		switch {
		case t.Role != model.Parameter:
		case last >= 0 && n.trained[last].to == t.Offset:
			n.trained[last].to += t.Size
		default:
			n.trained = append(n.trained, span{t.Offset, t.Offset + t.Size})
		}
	}
	if err := n.plan(); err != nil {
		return nil, err
	}
	for _, o := range n.ops {
		_, inputs := o.ends()
		_, planes := o.(*convOp)
		if !planes && spec.Input.Channels > 1 && slices.Contains(inputs, model.Input) {
			n.input = make([]float32, batch*spec.Input.Size())
			break
		}
	}
	return n, nil
}

// Spec is the architecture that n runs.
func (n *Network) Spec() model.Spec { return n.spec }

// Batch is the largest number of images that one Step takes.
func (n *Network) Batch() int { return n.batch }

// Kernel names the kernel that n uses.
func (n *Network) Kernel() string { return n.engine.name }

// Step trains w on one batch and returns the mean loss before the update. The
// images x are planes (image, channel, row, column), already normalised; there
// may be fewer of them than n.Batch. Running statistics in w move too.
func (n *Network) Step(w *model.Weights, x []float32, labels []uint8, sgd SGD) (loss float64) {
	loss = n.differentiate(w, x, labels)
	sgd.update(n, w)
	return loss
}

// differentiate leaves the gradient of the mean loss in n.gradient.
func (n *Network) differentiate(w *model.Weights, x []float32, labels []uint8) (loss float64) {
	count := len(labels)
	n.check(w, x, labels)
	if count == 0 || count > n.batch {
		panic(fmt.Sprintf("nn: step on %d images, batch size is %d", count, n.batch))
	}
	n.forward(w, x, count, true)
	last := len(n.spec.Layers) - 1
	loss = crossEntropy(n.slopes[last], n.values[last], labels, n.spec.Classes) / float64(count)
	clear(n.started)
	n.started[last] = true
	for i := len(n.ops) - 1; i >= 0; i-- {
		n.ops[i].backward(n, w, count)
	}
	return loss
}

// Evaluate counts the images that w classifies correctly and returns their mean
// loss. It takes any number of images and works through them batch by batch.
func (n *Network) Evaluate(w *model.Weights, x []float32, labels []uint8) (correct int, loss float64) {
	n.check(w, x, labels)
	size := n.spec.Input.Size()
	logits := n.values[len(n.spec.Layers)-1]
	for from := 0; from < len(labels); from += n.batch {
		to := min(from+n.batch, len(labels))
		n.forward(w, x[from*size:to*size], to-from, false)
		loss += crossEntropy(nil, logits, labels[from:to], n.spec.Classes)
		for i, label := range labels[from:to] {
			if argmax(logits[i*n.spec.Classes:(i+1)*n.spec.Classes]) == int(label) {
				correct++
			}
		}
	}
	if len(labels) > 0 {
		loss /= float64(len(labels))
	}
	return correct, loss
}

func (n *Network) check(w *model.Weights, x []float32, labels []uint8) {
	if len(w.Flat) != n.spec.Size() {
		panic(fmt.Sprintf("nn: %d weights for %s, which has %d", len(w.Flat), n.spec.Name, n.spec.Size()))
	}
	if len(x) != len(labels)*n.spec.Input.Size() {
		panic(fmt.Sprintf("nn: %d values for %d images of %v", len(x), len(labels), n.spec.Input))
	}
}

func (n *Network) forward(w *model.Weights, x []float32, count int, train bool) {
	n.images = x
	if n.input != nil {
		interleave(n.input, x, count, n.spec.Input)
	}
	for _, o := range n.ops {
		o.forward(n, w, count, train)
	}
}

// value is the activation of layer i, or the network's input.
func (n *Network) value(i int) []float32 {
	switch {
	case i == model.Input && n.input != nil:
		return n.input
	case i == model.Input:
		return n.images
	}
	return n.values[i]
}

// start reports whether the slope of layer i already holds a contribution, to
// which further ones must be added, and notes that it does from here on.
func (n *Network) start(i int) (accumulate bool) {
	accumulate = n.started[i]
	n.started[i] = true
	return accumulate
}

// interleave reorders planes into row, column, channel.
func interleave(dst, src []float32, count int, shape model.Shape) {
	plane := shape.Height * shape.Width
	for i := range count {
		image := dst[i*shape.Size() : (i+1)*shape.Size()]
		for c := range shape.Channels {
			from := src[i*shape.Size()+c*plane : i*shape.Size()+(c+1)*plane]
			for p, v := range from {
				image[p*shape.Channels+c] = v
			}
		}
	}
}

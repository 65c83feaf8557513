package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Weights are the values of a Spec's tensors.
type Weights struct {
	// Flat holds all tensors one after another, in the order of Tensors, for
	// aggregation. Views given out by At and Tensor share its memory.
	Flat    []float32
	tensors []Tensor
}

// NewWeights returns weights of zeros.
func NewWeights(spec Spec) *Weights {
	return &Weights{Flat: make([]float32, spec.Size()), tensors: spec.Tensors}
}

// WeightsFrom returns weights whose flat view is flat, which is not copied.
func WeightsFrom(spec Spec, flat []float32) (*Weights, error) {
	if len(flat) != spec.Size() {
		return nil, fmt.Errorf("%w: %d values for %s, want %d", ErrWeights, len(flat), spec.Name, spec.Size())
	}
	return &Weights{Flat: flat, tensors: spec.Tensors}, nil
}

// Tensors describes the tensors in the order of the flat view. The caller must
// not change it.
func (w *Weights) Tensors() []Tensor { return w.tensors }

// Tensor returns the values of tensor i.
func (w *Weights) Tensor(i int) []float32 {
	t := &w.tensors[i]
	return w.Flat[t.Offset : t.Offset+t.Size : t.Offset+t.Size]
}

// At returns the values of the tensor called name, and whether there is one.
func (w *Weights) At(name string) ([]float32, bool) {
	for i := range w.tensors {
		if w.tensors[i].Name == name {
			return w.Tensor(i), true
		}
	}
	return nil, false
}

// Clone returns a copy that shares no values with w.
func (w *Weights) Clone() *Weights {
	return &Weights{Flat: append([]float32(nil), w.Flat...), tensors: w.tensors}
}

// Finite reports whether no value is infinite or not a number.
func (w *Weights) Finite() bool {
	const exponent = 0x7f80_0000 // all ones in what is infinite or not a number
	for _, v := range w.Flat {
		if math.Float32bits(v)&exponent == exponent {
			return false
		}
	}
	return true
}

// Init draws fresh weights: He et al.'s normal distribution of variance
// 2/inputs for the weights of dense layers and convolutions, ones for the scale
// and the running variance of batch norm, zeros elsewhere. The output layer,
// which no rectifier follows, gets variance 1/inputs.
//
// With StartPyTorch a convolution that batch norm follows is drawn as PyTorch
// does it, uniform between ±1/√inputs, a sixth of that variance. The scale of
// such weights does not change what the network computes, but a step of
// gradient descent moves them relative to it: the smaller start learns faster.
func Init(spec Spec, random *rand.Rand) *Weights {
	w := NewWeights(spec)
	for i, l := range spec.Layers {
		switch l.Kind {
		case Dense, Conv:
			values := w.Tensor(l.Weight)
			inputs := l.In.Size()
			if l.Kind == Conv {
				inputs = l.Kernel * l.Kernel * l.In.Channels
			}
			gain := 2.0
			if i == len(spec.Layers)-1 {
				gain = 1
			}
			if spec.Start == StartPyTorch && normalized(spec, i) {
				bound := 1 / math.Sqrt(float64(inputs))
				for j := range values {
					values[j] = float32((2*random.Float64() - 1) * bound)
				}
				continue
			}
			deviation := math.Sqrt(gain / float64(inputs))
			for j := range values {
				values[j] = float32(random.NormFloat64() * deviation)
			}
		case BatchNorm:
			fill(w.Tensor(l.Weight), 1)
			fill(w.Tensor(l.Variance), 1)
		}
	}
	return w
}

// normalized reports whether batch norm follows layer i.
func normalized(spec Spec, i int) bool {
	return slices.ContainsFunc(spec.Layers, func(l Layer) bool { return l.Kind == BatchNorm && l.Inputs[0] == i })
}

func fill(values []float32, v float32) {
	for i := range values {
		values[i] = v
	}
}

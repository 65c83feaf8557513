// Package model describes neural networks as plain data: which layers there
// are, how they are joined, and which named tensors they own. It holds weights
// and reads and writes them, and it knows nothing of how a network is run:
// package nn runs a Spec on the CPU, and other backends walk the same Spec.
//
// # Conventions every backend follows
//
// Images come in as planes (channel, row, column). Inside a network the
// elements of an activation are ordered row, column, channel, and a dense layer
// that follows reads them in that order. Dense weights are (inputs, outputs),
// convolution weights (kernel row, kernel column, input channel, output
// channel). A network's last layer gives one logit per class.
package model

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Errors that callers may test for.
var (
	// ErrUnknown is returned for a model name that New does not know.
	ErrUnknown = errors.New("model: unknown model")
	// ErrSpec is returned for an architecture that cannot exist.
	ErrSpec = errors.New("model: impossible architecture")
	// ErrWeights is returned when weights do not belong to a Spec.
	ErrWeights = errors.New("model: weights do not fit the model")
)

// MaxClasses is the largest number of classes: labels are single bytes.
const MaxClasses = 256

// Shape is the size of one image or activation.
type Shape struct {
	Channels, Height, Width int
}

// Size is the number of elements of s.
func (s Shape) Size() int { return s.Channels * s.Height * s.Width }

func (s Shape) String() string {
	return fmt.Sprintf("%d×%d×%d", s.Height, s.Width, s.Channels)
}

// Kind says what a layer computes.
type Kind uint8

// The kinds of layer.
const (
	// Dense multiplies the flattened input by a matrix and adds a bias.
	Dense Kind = iota + 1
	// Conv is a two-dimensional convolution with zero padding.
	Conv
	// BatchNorm normalises each channel over the batch, then scales and shifts.
	BatchNorm
	// ReLU is max(x, 0).
	ReLU
	// MaxPool takes the maximum over windows. Windows that would reach past the
	// edge are left out. Among equal elements the first in row order wins.
	MaxPool
	// AveragePool takes the mean of each channel over the whole image.
	AveragePool
	// Add adds its two inputs.
	Add
)

var kindNames = [...]string{"?", "dense", "conv", "batchnorm", "relu", "maxpool", "averagepool", "add"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// Input stands for the network's input among a layer's inputs.
const Input = -1

// None marks a tensor that a layer does not have.
const None = -1

// Constants of batch normalisation, the same in every backend.
const (
	// Epsilon is added to the variance before the root is taken.
	Epsilon = 1e-5
	// Momentum is the share of the old value that running statistics keep at
	// each step; the variance of a batch is the biased one.
	Momentum = 0.9
)

// Layer is one node of the network's graph.
type Layer struct {
	Name string
	Kind Kind
	// Inputs are the layers this one reads, each earlier in the list, or Input.
	Inputs []int
	// In is the shape of the first input, Out of the result. The result of a
	// dense layer has one row and one column.
	In, Out Shape
	// Kernel, Stride and Padding are those of Conv and MaxPool, the same in both
	// directions.
	Kernel, Stride, Padding int
	// Weight and Bias index Spec.Tensors. For BatchNorm they are the scale and
	// the shift. None where there is none.
	Weight, Bias int
	// Mean and Variance are BatchNorm's running statistics, None elsewhere.
	Mean, Variance int
}

// Role says how a tensor comes by its values.
type Role uint8

// The roles of a tensor.
const (
	// Parameter is trained by gradient descent.
	Parameter Role = iota
	// Statistic is measured while training (batch norm's running mean and
	// variance). It is aggregated like a parameter.
	Statistic
)

// Tensor names a part of the flat vector of weights.
type Tensor struct {
	Name   string
	Shape  []int
	Role   Role
	Offset int
	Size   int
}

// Spec is an architecture. It is plain data and is not changed once built.
type Spec struct {
	Name    string
	Input   Shape
	Classes int
	Layers  []Layer
	Tensors []Tensor
	// Start says how Init draws weights. Default: StartHe.
	Start Start `json:",omitempty"`
}

// Start is a way to draw fresh weights.
type Start string

// The ways that Init knows.
const (
	StartHe      Start = ""
	StartPyTorch Start = "pytorch"
)

// Size is the number of floats in the flat vector of weights.
func (s Spec) Size() int {
	if len(s.Tensors) == 0 {
		return 0
	}
	last := s.Tensors[len(s.Tensors)-1]
	return last.Offset + last.Size
}

// Parameters counts the floats that gradient descent trains.
func (s Spec) Parameters() int {
	count := 0
	for _, t := range s.Tensors {
		if t.Role == Parameter {
			count += t.Size
		}
	}
	return count
}

// Find returns the index of the tensor called name, or None.
func (s Spec) Find(name string) int {
	return slices.IndexFunc(s.Tensors, func(t Tensor) bool { return t.Name == name })
}

// Names lists the architectures that New builds.
func Names() []string { return []string{"softmax", "mlp", "cnn", "resnet18"} }

// New builds the architecture called name for images of shape in.
func New(name string, in Shape, classes int) (Spec, error) {
	build := map[string]func(*Builder, int){
		"softmax": buildSoftmax, "mlp": buildMLP, "cnn": buildCNN, "resnet18": buildResNet18,
	}[name]
	if build == nil {
		return Spec{}, fmt.Errorf("%w %q: the models are %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	b := NewBuilder(name, in)
	build(b, classes)
	spec, err := b.Spec()
	if err != nil {
		return Spec{}, fmt.Errorf("build %s for %v images: %w", name, in, err)
	}
	return spec, nil
}

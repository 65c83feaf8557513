package model

import (
	"fmt"
	"math"
)

// Builder puts a Spec together layer by layer. Each method appends a layer and
// returns its index, to be given as input to later ones. The first mistake is
// kept and returned by Spec.
type Builder struct {
	spec Spec
	size int
	err  error
}

// maxSize bounds the weights and any activation, in elements.
const maxSize = math.MaxInt32

// NewBuilder starts an architecture for images of shape in.
func NewBuilder(name string, in Shape) *Builder {
	b := &Builder{spec: Spec{Name: name, Input: in}}
	if !sound(in) {
		b.fail("input of %v", in)
	}
	return b
}

// Spec returns the finished architecture, whose last layer gives the logits.
func (b *Builder) Spec() (Spec, error) {
	if b.err == nil && len(b.spec.Layers) == 0 {
		b.fail("no layers")
	}
	if b.err != nil {
		return Spec{}, b.err
	}
	out := b.spec.Layers[len(b.spec.Layers)-1].Out
	if out.Height != 1 || out.Width != 1 {
		b.fail("last layer gives %v, not one logit per class", out)
	} else if out.Channels < 2 || out.Channels > MaxClasses {
		b.fail("%d classes, want 2 to %d", out.Channels, MaxClasses)
	}
	b.spec.Classes = out.Channels
	return b.spec, b.err
}

// Dense appends a fully connected layer.
func (b *Builder) Dense(name string, input, outputs int) int {
	l := b.layer(name, Dense, input)
	l.Out = Shape{outputs, 1, 1}
	if outputs > 0 && b.err == nil {
		l.Weight = b.tensor(name+".weight", Parameter, l.In.Size(), outputs)
		l.Bias = b.tensor(name+".bias", Parameter, outputs)
	}
	return b.append(l)
}

// Conv appends a convolution of kernel×kernel. Without a bias it is meant to be
// followed by BatchNorm.
func (b *Builder) Conv(name string, input, outputs, kernel, stride, padding int, bias bool) int {
	l := b.window(name, Conv, input, kernel, stride, padding)
	l.Out.Channels = outputs
	if outputs > 0 && b.err == nil {
		l.Weight = b.tensor(name+".weight", Parameter, kernel, kernel, l.In.Channels, outputs)
		if bias {
			l.Bias = b.tensor(name+".bias", Parameter, outputs)
		}
	}
	return b.append(l)
}

// BatchNorm appends a batch normalisation.
func (b *Builder) BatchNorm(name string, input int) int {
	l := b.layer(name, BatchNorm, input)
	l.Out = l.In
	if b.err == nil {
		l.Weight = b.tensor(name+".weight", Parameter, l.In.Channels)
		l.Bias = b.tensor(name+".bias", Parameter, l.In.Channels)
		l.Mean = b.tensor(name+".mean", Statistic, l.In.Channels)
		l.Variance = b.tensor(name+".variance", Statistic, l.In.Channels)
	}
	return b.append(l)
}

// ReLU appends a rectifier.
func (b *Builder) ReLU(name string, input int) int {
	l := b.layer(name, ReLU, input)
	l.Out = l.In
	return b.append(l)
}

// MaxPool appends a maximum over windows of kernel×kernel, without padding.
func (b *Builder) MaxPool(name string, input, kernel, stride int) int {
	return b.append(b.window(name, MaxPool, input, kernel, stride, 0))
}

// AveragePool appends the mean of each channel over the whole image.
func (b *Builder) AveragePool(name string, input int) int {
	l := b.layer(name, AveragePool, input)
	l.Out = Shape{l.In.Channels, 1, 1}
	return b.append(l)
}

// Add appends the sum of two layers of the same shape.
func (b *Builder) Add(name string, first, second int) int {
	l := b.layer(name, Add, first, second)
	l.Out = l.In
	if b.err == nil && b.out(second) != l.In {
		b.fail("layer %s adds %v to %v", name, b.out(second), l.In)
	}
	return b.append(l)
}

func (b *Builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf("%w: %s", ErrSpec, fmt.Sprintf(format, args...))
	}
}

func (b *Builder) out(input int) Shape {
	if input == Input {
		return b.spec.Input
	}
	return b.spec.Layers[input].Out
}

func (b *Builder) layer(name string, kind Kind, inputs ...int) Layer {
	l := Layer{
		Name: name, Kind: kind, Inputs: inputs,
		Weight: None, Bias: None, Mean: None, Variance: None,
	}
	for _, i := range inputs {
		if i != Input && (i < 0 || i >= len(b.spec.Layers)) {
			b.fail("layer %s reads layer %d of %d", name, i, len(b.spec.Layers))
		}
	}
	for _, other := range b.spec.Layers {
		if other.Name == name {
			b.fail("two layers named %s", name)
		}
	}
	if b.err == nil {
		l.In = b.out(inputs[0])
	}
	return l
}

func (b *Builder) window(name string, kind Kind, input, kernel, stride, padding int) Layer {
	l := b.layer(name, kind, input)
	l.Kernel, l.Stride, l.Padding = kernel, stride, padding
	if kernel < 1 || stride < 1 || padding < 0 || padding >= kernel {
		b.fail("layer %s has kernel %d, stride %d, padding %d", name, kernel, stride, padding)
		return l
	}
	height, width := l.In.Height+2*padding-kernel, l.In.Width+2*padding-kernel
	if height < 0 || width < 0 {
		b.fail("layer %s: input of %v is smaller than its %d×%d window", name, l.In, kernel, kernel)
		return l
	}
	l.Out = Shape{l.In.Channels, height/stride + 1, width/stride + 1}
	return l
}

func (b *Builder) append(l Layer) int {
	if b.err == nil && !sound(l.Out) {
		b.fail("layer %s gives %v", l.Name, l.Out)
	}
	b.spec.Layers = append(b.spec.Layers, l)
	return len(b.spec.Layers) - 1
}

func (b *Builder) tensor(name string, role Role, shape ...int) int {
	size, ok := product(shape)
	if !ok || b.size > maxSize-size {
		b.fail("tensor %s of %v is too large", name, shape)
		return None
	}
	b.spec.Tensors = append(b.spec.Tensors, Tensor{name, shape, role, b.size, size})
	b.size += size
	return len(b.spec.Tensors) - 1
}

// sound reports whether every side of s is positive and its size in bounds.
func sound(s Shape) bool {
	if s.Channels < 1 || s.Height < 1 || s.Width < 1 {
		return false
	}
	_, ok := product([]int{s.Channels, s.Height, s.Width})
	return ok
}

// product multiplies non-negative sides, reporting whether it stays in bounds.
func product(sides []int) (int, bool) {
	size := 1
	for _, n := range sides {
		if n < 0 || n > 0 && size > maxSize/n {
			return 0, false
		}
		size *= n
	}
	return size, true
}

// Package layout says how a model looks to a Flower client: as a list of arrays, each a file of numpy's.
//
// Torch is what state_dict() gives of the same network in PyTorch: dense weights (outputs, inputs), convolutions (outputs,
// inputs, rows, columns), batch normalisations with their running statistics and the count of batches. Grange is our own
// tensors as they are. See package model for the order of our values.
package layout

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"grange/federated/network/flower/npy"
	"grange/model"
)

var (
	// ErrUnknown is a layout that does not exist.
	ErrUnknown = errors.New("layout: unknown layout")
	// ErrArray is an array that is not one of the model's.
	ErrArray = errors.New("layout: the array does not fit the model")
)

// The layouts' names.
const (
	Torch  = "torch"
	Grange = "grange"
)

// Names lists the layouts.
func Names() []string { return []string{Torch, Grange} }

// counter is the Tensor of an array that counts batches; it is written as zero and not read.
const counter = -1

// Array is one array of the list.
type Array struct {
	// Name is what the array is called where arrays have names.
	Name  string
	Shape []int
	// tensor is which tensor of the model it holds, and offset and size where in the flat weights that is.
	tensor, offset, size int
	// A weight of ours has an index for each position in the input (or kernel), then for the channel, then for the
	// output; PyTorch's have output, channel, position. All are 0 if the values are in the same order.
	outputs, channels, positions int
}

// Type is how the array's values are stored.
func (a Array) Type() npy.Type {
	if a.tensor == counter {
		return npy.Int64
	}
	return npy.Float32
}

// Layout is a model as a list of arrays.
type Layout struct {
	// Arrays are in the order in which clients list them, which is that of the model's tensors.
	Arrays []Array
	names  map[string]int
	size   int
}

// New makes the layout called name for an architecture.
func New(name string, spec model.Spec) (*Layout, error) {
	l := &Layout{names: map[string]int{}, size: spec.Size()}
	for i, t := range spec.Tensors {
		l.Arrays = append(l.Arrays, Array{Name: t.Name, Shape: t.Shape, tensor: i, offset: t.Offset, size: t.Size})
	}
	switch name {
	case Grange:
	case Torch:
		l.torch(spec)
	default:
		return nil, fmt.Errorf("%w %.40q: the layouts are %s", ErrUnknown, name, strings.Join(Names(), ", "))
	}
	for i, a := range l.Arrays {
		l.names[a.Name] = i
	}
	return l, nil
}

// torch makes the arrays those of PyTorch.
func (l *Layout) torch(spec model.Spec) {
	counters := map[int]string{} // by the tensor after which they come
	for _, layer := range spec.Layers {
		switch layer.Kind {
		case model.Dense:
			a := &l.Arrays[layer.Weight]
			a.Shape = []int{layer.Out.Channels, layer.In.Size()}
			a.outputs, a.channels, a.positions = layer.Out.Channels, layer.In.Channels, layer.In.Height*layer.In.Width
		case model.Conv:
			a := &l.Arrays[layer.Weight]
			a.Shape = []int{layer.Out.Channels, layer.In.Channels, layer.Kernel, layer.Kernel}
			a.outputs, a.channels, a.positions = layer.Out.Channels, layer.In.Channels, layer.Kernel*layer.Kernel
		case model.BatchNorm:
			if layer.Mean != model.None {
				l.Arrays[layer.Mean].Name = layer.Name + ".running_mean"
				l.Arrays[layer.Variance].Name = layer.Name + ".running_var"
				counters[layer.Variance] = layer.Name + ".num_batches_tracked"
			}
		}
	}
	arrays := l.Arrays
	l.Arrays = make([]Array, 0, len(arrays)+len(counters))
	for _, a := range arrays {
		l.Arrays = append(l.Arrays, a)
		if name, ok := counters[a.tensor]; ok {
			l.Arrays = append(l.Arrays, Array{Name: name, Shape: []int{}, tensor: counter})
		}
	}
}

// Find is the index of the array called name, or −1.
func (l *Layout) Find(name string) int {
	if i, ok := l.names[name]; ok {
		return i
	}
	return -1
}

// Size is how many values the model has.
func (l *Layout) Size() int { return l.size }

// Offset is where in the flat weights array i is, and how many values it has: none for a count of batches.
func (l *Layout) Offset(i int) (offset, size int) { return l.Arrays[i].offset, l.Arrays[i].size }

// Append appends array i of a model, as a file.
func (l *Layout) Append(file []byte, i int, w *model.Weights) []byte {
	a := l.Arrays[i]
	file = npy.AppendHeader(file, a.Type(), a.Shape)
	if a.tensor == counter {
		return binary.LittleEndian.AppendUint64(file, 0)
	}
	start := len(file)
	file = slices.Grow(file, 4*a.size)[:start+4*a.size]
	values, to := w.Flat[a.offset:a.offset+a.size], file[start:]
	if a.outputs == 0 {
		for i, v := range values {
			binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(v))
		}
		return file
	}
	a.toTorch(to, values)
	return file
}

// strip is how many outputs are permuted at a time: as many values as are in a cache line, so that both sides' memory is
// used a line at a time.
const strip = 16

// toTorch writes our values in PyTorch's order.
func (a Array) toTorch(to []byte, values []float32) {
	row := a.channels * a.positions
	for output := 0; output < a.outputs; output += strip {
		n := min(strip, a.outputs-output)
		for channel := range a.channels {
			for position := range a.positions {
				ours := (position*a.channels+channel)*a.outputs + output
				theirs := 4 * (output*row + channel*a.positions + position)
				for _, v := range values[ours : ours+n] {
					binary.LittleEndian.PutUint32(to[theirs:], math.Float32bits(v))
					theirs += 4 * row
				}
			}
		}
	}
}

// fromTorch writes PyTorch's values in our order.
func (a Array) fromTorch(to, values []byte) {
	row := a.channels * a.positions
	var rows [strip][]byte
	for output := 0; output < a.outputs; output += strip {
		n := min(strip, a.outputs-output)
		for i := range n {
			rows[i] = values[4*(output+i)*row:][:4*row]
		}
		at := 0
		for channel := range a.channels {
			for position := range a.positions {
				ours := to[4*((position*a.channels+channel)*a.outputs+output):][:4*n]
				if n == strip {
					line := (*[4 * strip]byte)(ours)
					for i := range rows {
						binary.LittleEndian.PutUint32(line[4*i:], binary.LittleEndian.Uint32(rows[i][at:]))
					}
				} else {
					for i := range n {
						binary.LittleEndian.PutUint32(ours[4*i:], binary.LittleEndian.Uint32(rows[i][at:]))
					}
				}
				at += 4
			}
		}
	}
}

// Decode reads array i from a file into to: the values of the tensor as little-endian float32, in our order; nothing for a
// count of batches. Scratch is memory that may be used, and what it has become.
func (l *Layout) Decode(to []byte, i int, file, scratch []byte) ([]byte, error) {
	a := l.Arrays[i]
	header, start, err := npy.Parse(file)
	if err != nil {
		return scratch, fmt.Errorf("array %s: %w", a.Name, err)
	}
	if !slices.Equal(header.Shape, a.Shape) {
		return scratch, fmt.Errorf("%w: array %s has shape %v, expected %v", ErrArray, a.Name, header.Shape, a.Shape)
	}
	if want := header.Values() * header.Size; len(file)-start != want {
		return scratch, fmt.Errorf("%w: array %s has %d bytes of values, expected %d", ErrArray, a.Name, len(file)-start, want)
	}
	values := file[start:]
	switch {
	case a.tensor == counter:
		return scratch, nil
	case a.outputs == 0:
		return scratch, header.Decode(to, values)
	case !header.Plain():
		if cap(scratch) < 4*a.size {
			scratch = make([]byte, 4*a.size)
		}
		scratch = scratch[:4*a.size]
		if err := header.Decode(scratch, values); err != nil {
			return scratch, err
		}
		values = scratch
	}
	a.fromTorch(to, values)
	return scratch, nil
}

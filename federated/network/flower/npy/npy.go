// Package npy reads and writes arrays as numpy.save does: versions 1 to 3 of the format, numbers only. Whatever numbers a
// file holds, they are read as float32; pickled objects, structures, strings and complex numbers are refused.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// ErrFormat is bytes that are no array file, or one that cannot be used here.
var ErrFormat = errors.New("npy: not an array that can be read")

const (
	magic = "\x93NUMPY"
	// MaxHeader is the longest description of an array that is read, in bytes.
	MaxHeader = 1 << 14
	// maxValues bounds what a shape may claim, so that sizes in bytes do not overflow, and maxDimensions is numpy's.
	maxValues     = 1 << 40
	maxDimensions = 64
)

// Type is how one value is stored.
type Type struct {
	// Kind is f (floating point), i (integer), u (unsigned) or b (boolean).
	Kind byte
	// Size is in bytes.
	Size int
	// Big says that the most significant byte comes first.
	Big bool
}

// The types that are written.
var (
	Float32 = Type{Kind: 'f', Size: 4}
	Int64   = Type{Kind: 'i', Size: 8}
)

// String is the type as numpy writes it.
func (t Type) String() string {
	order := "<"
	switch {
	case t.Size == 1:
		order = "|"
	case t.Big:
		order = ">"
	}
	return order + string(t.Kind) + strconv.Itoa(t.Size)
}

// Header describes an array.
type Header struct {
	Type
	// Fortran says that the first index changes fastest.
	Fortran bool
	Shape   []int
}

// Values is how many values the array has.
func (h Header) Values() int {
	n := 1
	for _, side := range h.Shape {
		n *= side
	}
	return n
}

// AppendHeader appends what comes before the values of an array in C order.
func AppendHeader(file []byte, t Type, shape []int) []byte {
	sides := ""
	for i, side := range shape {
		if i > 0 {
			sides += ", "
		}
		sides += strconv.Itoa(side)
	}
	if len(shape) == 1 {
		sides += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", t, sides)
	// Values begin at a multiple of 64 bytes, after a newline.
	length := len(magic) + 4 + len(text) + 1
	padding := (64 - length%64) % 64
	file = append(file, magic+"\x01\x00"...)
	file = binary.LittleEndian.AppendUint16(file, uint16(len(text)+padding+1))
	file = append(file, text...)
	for range padding {
		file = append(file, ' ')
	}
	return append(file, '\n')
}

// Parse reads the description at the beginning of a file, and says where the values begin.
func Parse(file []byte) (Header, int, error) {
	var h Header
	if len(file) < len(magic)+4 || string(file[:len(magic)]) != magic {
		return h, 0, fmt.Errorf("%w: it does not begin as numpy's files do", ErrFormat)
	}
	start := len(magic) + 4
	var length int
	switch major := file[len(magic)]; major {
	case 1:
		length = int(binary.LittleEndian.Uint16(file[len(magic)+2:]))
	case 2, 3:
		if start += 2; len(file) < start {
			return h, 0, fmt.Errorf("%w: it breaks off", ErrFormat)
		}
		claimed := binary.LittleEndian.Uint32(file[len(magic)+2:])
		if claimed > MaxHeader {
			return h, 0, fmt.Errorf("%w: a description of %d bytes, at most %d are read", ErrFormat, claimed, MaxHeader)
		}
		length = int(claimed)
	default:
		return h, 0, fmt.Errorf("%w: version %d of the format, expected 1 to 3", ErrFormat, major)
	}
	if length > MaxHeader || length > len(file)-start {
		return h, 0, fmt.Errorf("%w: a description of %d bytes where %d are left", ErrFormat, length, len(file)-start)
	}
	h, err := parseDescription(file[start : start+length])
	return h, start + length, err
}

// Decode writes the values of an array, in C order, as little-endian float32 to to, which has four bytes for each.
func (h Header) Decode(to, values []byte) error {
	n := h.Values()
	if len(values) != n*h.Size || len(to) != 4*n {
		return fmt.Errorf("%w: %d bytes for %d values of type %s", ErrFormat, len(values), n, h.Type)
	}
	if h.Plain() {
		copy(to, values)
		return nil
	}
	read := h.reader()
	if !h.Fortran || len(h.Shape) < 2 {
		for i := range n {
			binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(read(values[i*h.Size:])))
		}
		return nil
	}
	// strides are how far apart in the file neighbours along each side are.
	strides, stride := make([]int, len(h.Shape)), h.Size
	for i, side := range h.Shape {
		strides[i] = stride
		stride *= side
	}
	index, at := make([]int, len(h.Shape)), 0
	for i := range n {
		binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(read(values[at:])))
		for side := len(index) - 1; side >= 0; side-- {
			index[side]++
			at += strides[side]
			if index[side] < h.Shape[side] {
				break
			}
			at -= strides[side] * h.Shape[side]
			index[side] = 0
		}
	}
	return nil
}

// Plain says whether the values are stored just as Decode writes them.
func (h Header) Plain() bool {
	return h.Type == Float32 && (!h.Fortran || len(h.Shape) < 2)
}

// reader reads one value.
func (t Type) reader() func([]byte) float32 {
	var order binary.ByteOrder = binary.LittleEndian
	if t.Big {
		order = binary.BigEndian
	}
	switch t {
	case Type{'f', 2, t.Big}:
		return func(b []byte) float32 { return half(order.Uint16(b)) }
	case Type{'f', 4, t.Big}:
		return func(b []byte) float32 { return math.Float32frombits(order.Uint32(b)) }
	case Type{'f', 8, t.Big}:
		return func(b []byte) float32 { return float32(math.Float64frombits(order.Uint64(b))) }
	case Type{'i', 1, t.Big}:
		return func(b []byte) float32 { return float32(int8(b[0])) }
	case Type{'i', 2, t.Big}:
		return func(b []byte) float32 { return float32(int16(order.Uint16(b))) }
	case Type{'i', 4, t.Big}:
		return func(b []byte) float32 { return float32(int32(order.Uint32(b))) }
	case Type{'i', 8, t.Big}:
		return func(b []byte) float32 { return float32(int64(order.Uint64(b))) }
	case Type{'u', 2, t.Big}:
		return func(b []byte) float32 { return float32(order.Uint16(b)) }
	case Type{'u', 4, t.Big}:
		return func(b []byte) float32 { return float32(order.Uint32(b)) }
	case Type{'u', 8, t.Big}:
		return func(b []byte) float32 { return float32(order.Uint64(b)) }
	case Type{'b', 1, t.Big}:
		return func(b []byte) float32 { return float32(min(b[0], 1)) }
	default: // Type{'u', 1, t.Big}
		return func(b []byte) float32 { return float32(b[0]) }
	}
}

// known are the types that can be read.
func (t Type) known() bool {
	switch t.Kind {
	case 'f':
		return slices.Contains([]int{2, 4, 8}, t.Size)
	case 'i', 'u':
		return slices.Contains([]int{1, 2, 4, 8}, t.Size)
	case 'b':
		return t.Size == 1
	}
	return false
}

// half is a number of 16 bits: a sign, 5 bits of exponent, 10 of fraction.
func half(bits uint16) float32 {
	sign, exponent, fraction := uint32(bits>>15)<<31, uint32(bits>>10&31), uint32(bits&1023)
	switch exponent {
	case 31:
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | fraction<<13)
}

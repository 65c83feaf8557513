// Package littleendian turns float32 values into the bytes that files and networks hold, and back: without copying where
// the machine keeps them in that order anyway, as nearly all do.
package littleendian

import (
	"encoding/binary"
	"io"
	"math"
	"slices"
	"unsafe"
)

// native says whether this machine's memory is in little-endian order.
var native = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// piece is how many values are converted at a time where they must be.
const piece = 1 << 14

// Write writes values.
func Write(out io.Writer, values []float32) error {
	if native {
		_, err := out.Write(view(values))
		return err
	}
	return write(out, values)
}

func write(out io.Writer, values []float32) error {
	buffer := make([]byte, 0, 4*min(piece, len(values)))
	for len(values) > 0 {
		part := values[:min(piece, len(values))]
		buffer = buffer[:0]
		for _, v := range part {
			buffer = binary.LittleEndian.AppendUint32(buffer, math.Float32bits(v))
		}
		if _, err := out.Write(buffer); err != nil {
			return err
		}
		values = values[len(part):]
	}
	return nil
}

// Read fills values from their bytes in a file or stream, of which it reads no more than it needs.
func Read(in io.Reader, values []float32) error {
	bytes := view(values)
	if _, err := io.ReadFull(in, bytes); err != nil {
		return err
	}
	if !native {
		swap(bytes)
	}
	return nil
}

// ReadAt fills values from their bytes at an offset.
func ReadAt(in io.ReaderAt, values []float32, offset int64) error {
	bytes := view(values)
	if n, err := in.ReadAt(bytes, offset); n < len(bytes) {
		return err
	}
	if !native {
		swap(bytes)
	}
	return nil
}

// Bytes are the bytes of values. Where the machine keeps them in that order they share the values' memory.
func Bytes(values []float32) []byte {
	if native {
		return view(values)
	}
	bytes := slices.Clone(view(values))
	swap(bytes)
	return bytes
}

// Decode fills values from as many bytes as they take.
func Decode(values []float32, bytes []byte) {
	to := view(values)
	copy(to, bytes[:len(to)])
	if !native {
		swap(to)
	}
}

// view is the memory of values as bytes, in the machine's order.
func view(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// swap turns the order of the bytes of every value round.
func swap(bytes []byte) {
	for i := 0; i+4 <= len(bytes); i += 4 {
		bytes[i], bytes[i+1], bytes[i+2], bytes[i+3] = bytes[i+3], bytes[i+2], bytes[i+1], bytes[i]
	}
}

// Finite reports whether no value among so many little-endian bytes is infinite or not a number, and where the first one
// is: those are the values whose exponent is all ones.
func Finite(bytes []byte) (position int, finite bool) {
	const exponent, both = 0x7f80_0000, 0x7f80_0000_7f80_0000
	i := 0
	for ; i+8 <= len(bytes); i += 8 {
		x := binary.LittleEndian.Uint64(bytes[i:]) & both
		if uint32(x) == exponent || x>>32 == exponent {
			break
		}
	}
	for ; i+4 <= len(bytes); i += 4 {
		if binary.LittleEndian.Uint32(bytes[i:])&exponent == exponent {
			return i / 4, false
		}
	}
	return 0, true
}

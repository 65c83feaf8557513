package flower_test

import (
	"encoding/binary"
	"math"
)

// floats reads little-endian values, raw writes them.
func floats(bytes []byte) []float32 {
	values := make([]float32, len(bytes)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return values
}

func raw(values []float32) []byte {
	bytes := make([]byte, 0, 4*len(values))
	for _, v := range values {
		bytes = binary.LittleEndian.AppendUint32(bytes, math.Float32bits(v))
	}
	return bytes
}

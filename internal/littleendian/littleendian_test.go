package littleendian

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// want writes values byte by byte.
func want(values []float32) []byte {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func bits(values []float32) []uint32 {
	list := make([]uint32, len(values))
	for i, v := range values {
		list[i] = math.Float32bits(v)
	}
	return list
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var values []float32
		for _, x := range rapid.SliceOfN(rapid.Uint32(), 0, 40).Draw(t, "bits") {
			values = append(values, math.Float32frombits(x))
		}
		for _, write := range []func(io.Writer, []float32) error{Write, write} {
			var b bytes.Buffer
			if err := write(&b, values); err != nil || !bytes.Equal(b.Bytes(), want(values)) {
				t.Fatalf("wrote %x, %v", b.Bytes(), err)
			}
		}
		back := make([]float32, len(values))
		if err := Read(bytes.NewReader(want(values)), back); err != nil || !slices.Equal(bits(back), bits(values)) {
			t.Fatalf("read %v, %v", back, err)
		}
		padded := bytes.NewReader(append([]byte("abc"), want(values)...))
		if err := ReadAt(padded, back, 3); err != nil || !slices.Equal(bits(back), bits(values)) {
			t.Fatalf("read %v, %v", back, err)
		}
		first := slices.IndexFunc(values, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) })
		position, finite := Finite(want(values))
		if finite != (first < 0) || !finite && position != first {
			t.Fatalf("%v: position %d, finite %v", values, position, finite)
		}
	})
}

func TestSwap(t *testing.T) {
	b := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	if swap(b); !bytes.Equal(b, []byte{4, 3, 2, 1, 8, 7, 6, 5}) {
		t.Errorf("got %v", b)
	}
}

func TestTruncated(t *testing.T) {
	values := make([]float32, 2)
	if err := Read(bytes.NewReader(make([]byte, 7)), values); err != io.ErrUnexpectedEOF {
		t.Errorf("got %v", err)
	}
	if err := ReadAt(bytes.NewReader(make([]byte, 7)), values, 0); err == nil {
		t.Error("no error")
	}
}

// TestFinite puts an infinity at every place.
func TestFinite(t *testing.T) {
	for n := range 9 {
		for at := range n {
			values := make([]float32, n)
			values[at] = float32(math.Inf(1))
			if position, finite := Finite(want(values)); finite || position != at {
				t.Errorf("%d of %d: position %d, finite %v", at, n, position, finite)
			}
		}
	}
}

func TestDecode(t *testing.T) {
	values := []float32{1, -2.5, 3e-9}
	if got := Bytes(values); !bytes.Equal(got, want(values)) {
		t.Errorf("bytes % x", got)
	}
	got := make([]float32, 2)
	Decode(got, want(values))
	if !slices.Equal(bits(got), bits(values[:2])) {
		t.Errorf("got %v", got)
	}
}

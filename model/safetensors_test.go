package model

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func small(t testing.TB) (Spec, *Weights) {
	t.Helper()
	b := NewBuilder("small", Shape{1, 4, 4})
	x := b.Conv("conv", Input, 2, 3, 1, 1, false)
	x = b.BatchNorm("norm", x)
	b.Dense("output", x, 2)
	spec, err := b.Spec()
	if err != nil {
		t.Fatal(err)
	}
	return spec, Init(spec, rand.New(rand.NewPCG(3, 4)))
}

// encode joins a header and its data.
func encode(header string, data int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, data)...)
}

func TestSafetensorsRoundTrip(t *testing.T) {
	spec, w := small(t)
	metadata := map[string]string{"model": "small", "round": "3", "<": "\"ü"}
	var first, second bytes.Buffer
	for _, out := range []io.Writer{&first, &second} {
		if err := WriteSafetensors(out, w, metadata); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two writes differ")
	}
	if (first.Len()-4*len(w.Flat))%8 != 0 {
		t.Error("data is not aligned to 8 bytes")
	}
	got, text, err := ReadSafetensors(&first, spec)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Flat, w.Flat) || !maps.Equal(text, metadata) {
		t.Errorf("read back other weights or metadata %v", text)
	}
}

func TestSafetensorsOtherOrder(t *testing.T) {
	spec, err := New("softmax", Shape{1, 1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	data := encode(`{"output.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},`+
		`"output.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}}   `, 16)
	data[len(data)-16+3] = 0x40 // the first byte group, now 2
	w, _, err := ReadSafetensors(bytes.NewReader(data), spec)
	if err != nil {
		t.Fatal(err)
	}
	if want := []float32{0, 0, 2, 0}; !slices.Equal(w.Flat, want) {
		t.Errorf("got %v, want %v", w.Flat, want)
	}
}

func TestSafetensorsRejects(t *testing.T) {
	spec, err := New("softmax", Shape{1, 1, 1}, 2)
	if err != nil {
		t.Fatal(err)
	}
	const good = `{"output.weight":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},"output.bias":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}`
	replace := func(old, new string) []byte { return encode(strings.Replace(good, old, new, 1), 16) }
	if _, _, err := ReadSafetensors(bytes.NewReader(encode(good, 16)), spec); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		data []byte
		want error
	}{
		"empty":            {nil, ErrFormat},
		"short length":     {[]byte{1, 2, 3}, ErrFormat},
		"huge header":      {append(bytes.Repeat([]byte{0xff}, 8), '{'), ErrFormat},
		"truncated header": {encode(good, 16)[:40], ErrFormat},
		"truncated data":   {encode(good, 15), ErrFormat},
		"no data":          {encode(good, 0), ErrFormat},
		"trailing data":    {encode(good, 17), ErrFormat},
		"not an object":    {encode("[1,2]", 0), ErrFormat},
		"space first":      {encode(" "+good, 16), ErrFormat},
		"two objects":      {encode(good+good, 16), ErrFormat},
		"unfinished":       {encode(good[:len(good)-1], 16), ErrFormat},
		"overlap":          {replace("[8,16]", "[4,12]"), ErrFormat},
		"gap":              {replace("[8,16]", "[12,20]"), ErrFormat},
		"reversed":         {replace("[8,16]", "[16,8]"), ErrFormat},
		"negative":         {replace("[0,8]", "[-8,0]"), ErrFormat},
		"beyond int64":     {replace("[8,16]", "[8,99999999999999999999]"), ErrFormat},
		"extreme":          {replace("[0,8]", "[-9223372036854775800,9223372036854775807]"), ErrFormat},
		"short tensor":     {replace("[8,16]", "[8,12]"), ErrFormat},
		"three offsets":    {replace(`"data_offsets":[0,8]`, `"data_offset":[0,8]`), ErrFormat},
		"listed twice":     {replace("output.bias", "output.weight"), ErrFormat},
		"odd metadata":     {replace("{", `{"__metadata__":{"a":1},`), ErrFormat},
		"metadata twice":   {replace("{", `{"__metadata__":{},"__metadata__":{},`), ErrFormat},
		"type":             {replace("F32", "F64"), ErrWeights},
		"shape":            {replace("[1,2]", "[2,1]"), ErrWeights},
		"missing":          {replace("output.bias", "output.other"), ErrWeights},
		"extra":            {replace("{", `{"more":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},`), ErrWeights},
	} {
		w, _, err := ReadSafetensors(bytes.NewReader(test.data), spec)
		if !errors.Is(err, test.want) || w != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failing is a disk that fills up after some bytes.
type failing struct{ left int }

var errFull = errors.New("disk full")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriteSafetensorsFails(t *testing.T) {
	_, w := small(t)
	for _, room := range []int{0, 700} {
		if err := WriteSafetensors(&failing{room}, w, nil); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
	}
	long := map[string]string{"a": strings.Repeat("b", maxHeader)}
	if err := WriteSafetensors(io.Discard, w, long); !errors.Is(err, ErrFormat) {
		t.Errorf("long metadata: %v", err)
	}
}

// Whatever is read without error must be written back and read as the same.
func FuzzReadSafetensors(f *testing.F) {
	spec, w := small(f)
	var good bytes.Buffer
	if err := WriteSafetensors(&good, w, map[string]string{"model": "small"}); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Bytes())
	f.Add(good.Bytes()[:100])
	f.Add(encode("{}", 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		w, metadata, err := ReadSafetensors(bytes.NewReader(data), spec)
		if err != nil {
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrWeights) {
				t.Errorf("unexpected error %v", err)
			}
			return
		}
		var out bytes.Buffer
		if err := WriteSafetensors(&out, w, metadata); err != nil {
			t.Fatal(err)
		}
		again, text, err := ReadSafetensors(bytes.NewReader(out.Bytes()), spec)
		if err != nil || !maps.Equal(text, metadata) {
			t.Fatalf("read back: %v", err)
		}
		var bits bytes.Buffer
		if err := WriteSafetensors(&bits, again, text); err != nil || !bytes.Equal(bits.Bytes(), out.Bytes()) {
			t.Fatalf("second copy differs: %v", err)
		}
	})
}

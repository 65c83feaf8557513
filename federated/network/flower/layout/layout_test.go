package layout_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"grange/federated/network/flower/layout"
	"grange/federated/network/flower/npy"
	"grange/model"
	"grange/nn"
)

func spec(t testing.TB, name string, in model.Shape) model.Spec {
	t.Helper()
	s, err := model.New(name, in, 5)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// random are weights without any symmetry, statistics included.
func random(s model.Spec) *model.Weights {
	r := rand.New(rand.NewPCG(1, 2))
	w := model.Init(s, r)
	for i, tensor := range w.Tensors() {
		for j := range w.Tensor(i) {
			switch {
			case tensor.Role == model.Statistic:
				w.Tensor(i)[j] = 0.5 + r.Float32()
			case len(tensor.Shape) == 1:
				w.Tensor(i)[j] += r.Float32() - 0.5
			}
		}
	}
	return w
}

func files(t testing.TB, l *layout.Layout, w *model.Weights) [][]byte {
	t.Helper()
	list := make([][]byte, len(l.Arrays))
	for i := range l.Arrays {
		list[i] = l.Append(nil, i, w)
	}
	return list
}

var shapes = []model.Shape{{Channels: 3, Height: 8, Width: 8}, {Channels: 1, Height: 8, Width: 12}}

// What is written and read again is the same, to the bit, in any layout and for any model.
func TestThereAndBack(t *testing.T) {
	for _, name := range model.Names() {
		for _, in := range shapes {
			s := spec(t, name, in)
			w := random(s)
			for _, kind := range layout.Names() {
				l, err := layout.New(kind, s)
				if err != nil {
					t.Fatal(err)
				}
				again := make([]byte, 4*l.Size())
				for i, file := range files(t, l, w) {
					offset, size := l.Offset(i)
					if _, err := l.Decode(again[4*offset:4*(offset+size)], i, file, nil); err != nil {
						t.Fatal(err)
					}
				}
				var want bytes.Buffer
				if err := model.WriteSafetensors(&want, w, nil); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(want.Bytes()[want.Len()-len(again):], again) {
					t.Errorf("%s, %v, %s: other values came back", name, in, kind)
				}
			}
		}
	}
}

// The names and shapes are those of state_dict().
func TestTorchNames(t *testing.T) {
	l, err := layout.New(layout.Torch, spec(t, "resnet18", model.Shape{Channels: 3, Height: 32, Width: 32}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range l.Arrays[:6] {
		names = append(names, a.Name)
	}
	want := "stem.conv.weight stem.norm.weight stem.norm.bias stem.norm.running_mean stem.norm.running_var stem.norm.num_batches_tracked"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("got %s, expected %s", got, want)
	}
	if len(l.Arrays) != 122 || !slices.Equal(l.Arrays[0].Shape, []int{64, 3, 3, 3}) || l.Arrays[5].Type() != npy.Int64 {
		t.Errorf("%d arrays, the first %+v", len(l.Arrays), l.Arrays[0])
	}
	last := l.Arrays[120]
	if last.Name != "output.weight" || !slices.Equal(last.Shape, []int{5, 512}) || l.Find("output.weight") != 120 || l.Find("x") != -1 {
		t.Errorf("%+v", last)
	}
}

// A network run by PyTorch's rules on PyTorch's arrays gives the logits that ours gives on ours.
func TestTorchComputesTheSame(t *testing.T) {
	for _, name := range model.Names() {
		for _, in := range shapes {
			s := spec(t, name, in)
			w := random(s)
			l, err := layout.New(layout.Torch, s)
			if err != nil {
				t.Fatal(err)
			}
			network, err := nn.New(s, 1, nn.Options{})
			if err != nil {
				t.Fatal(err)
			}
			image := make([]float32, in.Size())
			r := rand.New(rand.NewPCG(5, 6))
			for i := range image {
				image[i] = r.Float32()
			}
			logits := forward(t, s, l, files(t, l, w), image)
			sum := 0.0
			for _, x := range logits {
				sum += math.Exp(x)
			}
			for class, x := range logits {
				_, loss := network.Evaluate(w, image, []uint8{uint8(class)})
				if want := math.Log(sum) - x; math.Abs(loss-want) > 1e-4*(1+math.Abs(want)) {
					t.Errorf("%s, %v, class %d: our loss is %v, PyTorch's %v", name, in, class, loss, want)
				}
			}
		}
	}
}

func TestOtherTypes(t *testing.T) {
	s := spec(t, "cnn", shapes[0])
	w := random(s)
	for i := range w.Flat {
		w.Flat[i] = float32(math.Round(float64(w.Flat[i] * 100)))
	}
	l, err := layout.New(layout.Torch, s)
	if err != nil {
		t.Fatal(err)
	}
	i := l.Find("hidden.weight")
	offset, size := l.Offset(i)
	plain := l.Append(nil, i, w)
	double := npy.AppendHeader(nil, npy.Type{Kind: 'f', Size: 8, Big: true}, l.Arrays[i].Shape)
	for _, v := range values(t, plain) {
		double = binary.BigEndian.AppendUint64(double, math.Float64bits(v))
	}
	a, b := make([]byte, 4*size), make([]byte, 4*size)
	if _, err := l.Decode(a, i, plain, nil); err != nil {
		t.Fatal(err)
	}
	scratch, err := l.Decode(b, i, double, nil)
	if err != nil || len(scratch) != 4*size || !bytes.Equal(a, b) {
		t.Errorf("float64 differs: %v", err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(a)); got != w.Flat[offset] {
		t.Errorf("the first value is %v, expected %v", got, w.Flat[offset])
	}
	for name, file := range map[string][]byte{
		"shape": l.Append(nil, l.Find("hidden.bias"), w),
		"short": plain[:len(plain)-1],
		"long":  append(slices.Clone(plain), 0),
	} {
		if _, err := l.Decode(a, i, file, nil); !errors.Is(err, layout.ErrArray) || !strings.Contains(err.Error(), "hidden.weight") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.Decode(a, i, []byte("no"), nil); !errors.Is(err, npy.ErrFormat) {
		t.Errorf("no array: %v", err)
	}
	if _, err := layout.New("keras", s); !errors.Is(err, layout.ErrUnknown) {
		t.Errorf("unknown layout: %v", err)
	}
}

// FuzzDecode reads any file as an array of a model.
func FuzzDecode(f *testing.F) {
	s := spec(f, "cnn", model.Shape{Channels: 1, Height: 4, Width: 4})
	l, err := layout.New(layout.Torch, s)
	if err != nil {
		f.Fatal(err)
	}
	w := random(s)
	for i := range l.Arrays {
		f.Add(uint8(i), l.Append(nil, i, w))
	}
	f.Fuzz(func(t *testing.T, which uint8, file []byte) {
		i := int(which) % len(l.Arrays)
		_, size := l.Offset(i)
		if _, err := l.Decode(make([]byte, 4*size), i, file, nil); err != nil && !errors.Is(err, npy.ErrFormat) && !errors.Is(err, layout.ErrArray) {
			t.Fatal(err)
		}
	})
}

func BenchmarkDecodeResNet18(b *testing.B) {
	s, err := model.New("resnet18", model.Shape{Channels: 3, Height: 32, Width: 32}, 10)
	if err != nil {
		b.Fatal(err)
	}
	l, err := layout.New(layout.Torch, s)
	if err != nil {
		b.Fatal(err)
	}
	list := files(b, l, random(s))
	to := make([]byte, 4*l.Size())
	b.SetBytes(int64(len(to)))
	for b.Loop() {
		for i, file := range list {
			offset, size := l.Offset(i)
			if _, err := l.Decode(to[4*offset:4*(offset+size)], i, file, nil); err != nil {
				b.Fatal(err)
			}
		}
	}
}

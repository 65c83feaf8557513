package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParameterCounts(t *testing.T) {
	grey, colour := Shape{1, 28, 28}, Shape{3, 32, 32}
	for _, test := range []struct {
		model string
		in    Shape
		want  int
	}{
		{"softmax", grey, 784*10 + 10},
		{"mlp", grey, 784*200 + 200 + 200*200 + 200 + 200*10 + 10},
		{"cnn", grey, 9*32 + 32 + 9*32*64 + 64 + 7*7*64*128 + 128 + 128*10 + 10},
		{"cnn", colour, 27*32 + 32 + 9*32*64 + 64 + 8*8*64*128 + 128 + 128*10 + 10},
		{"resnet18", colour, 11173962},
	} {
		spec, err := New(test.model, test.in, 10)
		if err != nil {
			t.Fatal(err)
		}
		if got := spec.Parameters(); got != test.want {
			t.Errorf("%s for %v has %d parameters, want %d", test.model, test.in, got, test.want)
		}
		if spec.Size() < spec.Parameters() || len(NewWeights(spec).Flat) != spec.Size() {
			t.Errorf("%s: size %d", test.model, spec.Size())
		}
	}
}

func TestNewRejects(t *testing.T) {
	for _, test := range []struct {
		model   string
		in      Shape
		classes int
		want    error
		text    string
	}{
		{"resnet", Shape{3, 32, 32}, 10, ErrUnknown, "softmax, mlp, cnn, resnet18"},
		{"", Shape{3, 32, 32}, 10, ErrUnknown, ""},
		{"mlp", Shape{1, 0, 28}, 10, ErrSpec, "input"},
		{"mlp", Shape{1, 1 << 30, 1 << 30}, 10, ErrSpec, "input"},
		{"mlp", Shape{1, 1 << 15, 1 << 15}, 10, ErrSpec, "too large"},
		{"cnn", Shape{1, 2, 2}, 10, ErrSpec, "smaller"},
		{"mlp", Shape{1, 28, 28}, 1, ErrSpec, "classes"},
		{"mlp", Shape{1, 28, 28}, 257, ErrSpec, "classes"},
		{"mlp", Shape{1, 28, 28}, -1, ErrSpec, "gives"},
	} {
		_, err := New(test.model, test.in, test.classes)
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("New(%q, %v, %d): %v", test.model, test.in, test.classes, err)
		}
	}
}

func TestBuilderRejects(t *testing.T) {
	for name, build := range map[string]func(*Builder){
		"empty":         func(*Builder) {},
		"twice":         func(b *Builder) { b.Dense("a", Input, 2); b.Dense("a", 0, 2) },
		"forward":       func(b *Builder) { b.Dense("a", 3, 2) },
		"unequal":       func(b *Builder) { b.Dense("a", Input, 2); b.Dense("b", Input, 3); b.Add("c", 0, 1) },
		"no logits":     func(b *Builder) { b.ReLU("a", Input) },
		"no stride":     func(b *Builder) { b.Conv("a", Input, 2, 3, 0, 1, true) },
		"all padding":   func(b *Builder) { b.Conv("a", Input, 2, 1, 1, 1, true) },
		"window":        func(b *Builder) { b.MaxPool("a", Input, 9, 1) },
		"after a fault": func(b *Builder) { b.Dense("a", Input, 0); b.BatchNorm("b", 0); b.Add("c", 0, 1) },
	} {
		b := NewBuilder(name, Shape{1, 4, 4})
		build(b)
		if _, err := b.Spec(); !errors.Is(err, ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInit(t *testing.T) {
	spec, err := New("resnet18", Shape{3, 32, 32}, 10)
	if err != nil {
		t.Fatal(err)
	}
	w, again := Init(spec, rand.New(rand.NewPCG(1, 1))), Init(spec, rand.New(rand.NewPCG(1, 1)))
	for i := range w.Flat {
		if w.Flat[i] != again.Flat[i] {
			t.Fatal("same seed, other weights")
		}
	}
	values, ok := w.At("stage4.block2.conv2.weight")
	if !ok {
		t.Fatal("no stage4.block2.conv2.weight")
	}
	var squares float64
	for _, v := range values {
		squares += float64(v) * float64(v)
	}
	// 2.4 million draws: the estimate's standard error is below 0.1%.
	if got, want := squares/float64(len(values)), 2.0/(9*512); math.Abs(got/want-1) > 0.005 {
		t.Errorf("variance %g, want %g", got, want)
	}
	spec.Start = StartPyTorch
	values, _ = Init(spec, rand.New(rand.NewPCG(1, 1))).At("stage4.block2.conv2.weight")
	squares = 0
	for _, v := range values {
		squares += float64(v) * float64(v)
	}
	if got, want := squares/float64(len(values)), 1.0/(3*9*512); math.Abs(got/want-1) > 0.005 {
		t.Errorf("PyTorch's start has variance %g, want %g", got, want)
	}
	for i, tensor := range w.Tensors() {
		if tensor.Role == Statistic && strings.HasSuffix(tensor.Name, ".variance") && w.Tensor(i)[0] != 1 {
			t.Errorf("%s starts at %g", tensor.Name, w.Tensor(i)[0])
		}
	}
	if _, ok := w.At("nothing"); ok {
		t.Error("found a tensor called nothing")
	}
}

func TestWeightsViewsAndCopies(t *testing.T) {
	spec, err := New("softmax", Shape{1, 2, 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWeights(spec)
	bias, _ := w.At("output.bias")
	other := w.Clone()
	bias[2] = 7
	if w.Flat[len(w.Flat)-1] != 7 || other.Flat[len(w.Flat)-1] != 0 {
		t.Error("At does not share, or Clone does")
	}
	bias[1] = float32(math.NaN())
	if w.Finite() || !other.Finite() {
		t.Error("Finite")
	}
	if _, err := WeightsFrom(spec, make([]float32, 3)); !errors.Is(err, ErrWeights) {
		t.Errorf("short vector: %v", err)
	}
	if got, err := WeightsFrom(spec, w.Flat); err != nil || &got.Flat[0] != &w.Flat[0] {
		t.Errorf("WeightsFrom copies, or fails: %v", err)
	}
}

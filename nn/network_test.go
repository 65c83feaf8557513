package nn

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"grange/model"
)

// build makes an architecture for small images.
func build(t testing.TB, name string, shape model.Shape) model.Spec {
	t.Helper()
	spec, err := model.New(name, shape, 10)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// sample draws images and labels.
func sample(random *rand.Rand, spec model.Spec, count int) (x []float32, labels []uint8) {
	x, labels = make([]float32, count*spec.Input.Size()), make([]uint8, count)
	for i := range x {
		x[i] = float32(random.NormFloat64())
	}
	for i := range labels {
		labels[i] = uint8(random.IntN(spec.Classes))
	}
	return x, labels
}

// A network must be able to learn a small batch by heart.
func TestStepLearns(t *testing.T) {
	for _, test := range []struct {
		model string
		shape model.Shape
		rate  float32
	}{
		{"softmax", model.Shape{Channels: 1, Height: 28, Width: 28}, 0.05},
		{"mlp", model.Shape{Channels: 1, Height: 28, Width: 28}, 0.1},
		{"cnn", model.Shape{Channels: 3, Height: 12, Width: 12}, 0.1},
		{"resnet18", model.Shape{Channels: 3, Height: 8, Width: 8}, 0.05},
	} {
		t.Run(test.model, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			spec := build(t, test.model, test.shape)
			n, err := New(spec, 8, Options{})
			if err != nil {
				t.Fatal(err)
			}
			w := model.Init(spec, random)
			x, labels := sample(random, spec, 8)
			var first, last float64
			for step := range 12 {
				loss := n.Step(w, x, labels, SGD{Rate: test.rate})
				if step == 0 {
					first = loss
				}
				last = loss
			}
			if !(last < first/2) {
				t.Errorf("loss went from %.3g to %.3g", first, last)
			}
		})
	}
}

// same reports whether two vectors have the same bits.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// The same work gives the same bits, alone or beside others.
func TestDeterministic(t *testing.T) {
	for _, name := range []string{"mlp", "cnn", "resnet18"} {
		spec := build(t, name, model.Shape{Channels: 3, Height: 8, Width: 8})
		random := rand.New(rand.NewPCG(5, 6))
		start := model.Init(spec, random)
		x, labels := sample(random, spec, 8)
		train := func() *model.Weights {
			n, err := New(spec, 8, Options{})
			if err != nil {
				t.Error(err)
				return start
			}
			w := start.Clone()
			n.Step(w, x, labels, SGD{Rate: 0.05})
			n.Step(w, x[:3*spec.Input.Size()], labels[:3], SGD{Rate: 0.05})
			return w
		}
		want := train()
		got := make([]*model.Weights, 3)
		var wait sync.WaitGroup
		for i := range got {
			wait.Go(func() { got[i] = train() })
		}
		wait.Wait()
		for _, w := range got {
			if !same(w.Flat, want.Flat) {
				t.Errorf("%s: another run gave other bits", name)
			}
		}
	}
}

// A network that has seen other batches gives the same bits as a fresh one.
func TestWorkspaceHoldsNoState(t *testing.T) {
	spec := build(t, "cnn", model.Shape{Channels: 1, Height: 9, Width: 9})
	random := rand.New(rand.NewPCG(7, 8))
	start := model.Init(spec, random)
	x, labels := sample(random, spec, 5)
	used, err := New(spec, 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := New(spec, 8, Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, otherLabels := sample(random, spec, 8)
	used.Step(start.Clone(), other, otherLabels, SGD{Rate: 1})
	first, second := start.Clone(), start.Clone()
	used.Step(first, x, labels, SGD{Rate: 0.1})
	fresh.Step(second, x, labels, SGD{Rate: 0.1})
	if !same(first.Flat, second.Flat) {
		t.Error("a used network gave other bits than a fresh one")
	}
}

func TestStepDoesNotAllocate(t *testing.T) {
	check := func(name string, spec model.Spec, kernel string) {
		n, err := New(spec, 2, Options{Kernel: kernel})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(1, 1))
		w := model.NewWeights(spec)
		x, labels := sample(random, spec, 2)
		sgd := SGD{
			Rate: 0.01, Momentum: 0.9, Velocity: make([]float32, spec.Size()),
			Decay: 1e-4, Proximal: 0.1, Reference: make([]float32, spec.Size()),
		}
		if count := testing.AllocsPerRun(2, func() { n.Step(w, x, labels, sgd) }); count != 0 {
			t.Errorf("%s, %s: a step allocates %g times", name, kernel, count)
		}
		if count := testing.AllocsPerRun(2, func() { n.Evaluate(w, x, labels) }); count != 0 {
			t.Errorf("%s, %s: evaluation allocates %g times", name, kernel, count)
		}
	}
	shape := model.Shape{Channels: 3, Height: 8, Width: 8}
	for _, name := range model.Names() {
		check(name, build(t, name, shape), "")
	}
	for name, assembleCase := range gradientCases {
		b := model.NewBuilder(name, shape)
		assembleCase(b)
		spec, err := b.Spec()
		if err != nil {
			t.Fatal(err)
		}
		for _, kernel := range Kernels() {
			check(name, spec, kernel)
		}
	}
}

// Evaluate must treat images one by one: neither the batch size nor the company
// they are in may matter, and it must not move running statistics.
func TestEvaluate(t *testing.T) {
	spec := build(t, "resnet18", model.Shape{Channels: 3, Height: 8, Width: 8})
	random := rand.New(rand.NewPCG(2, 2))
	w := model.Init(spec, random)
	before := w.Clone()
	x, labels := sample(random, spec, 7)
	size := spec.Input.Size()
	var corrects []int
	var losses []float64
	for _, batch := range []int{1, 3, 16} {
		n, err := New(spec, batch, Options{})
		if err != nil {
			t.Fatal(err)
		}
		correct, loss := n.Evaluate(w, x, labels)
		corrects, losses = append(corrects, correct), append(losses, loss)
		hits := 0
		classes := make([]uint8, len(labels))
		for i := range labels {
			// An image alone is of exactly one class.
			found := 0
			for class := range spec.Classes {
				if right, _ := n.Evaluate(w, x[i*size:(i+1)*size], []uint8{uint8(class)}); right == 1 {
					classes[i] = uint8(class)
					found++
				}
			}
			if found != 1 {
				t.Errorf("batch %d: image %d is of %d classes", batch, i, found)
			}
			if classes[i] == labels[i] {
				hits++
			}
		}
		if hits != correct {
			t.Errorf("batch %d: %d images alone are right, together %d", batch, hits, correct)
		}
		if right, _ := n.Evaluate(w, x, classes); right != len(classes) {
			t.Errorf("batch %d: %d of its own classes are right", batch, right)
		}
	}
	for i := range losses {
		if corrects[i] != corrects[0] || math.Abs(losses[i]-losses[0]) > 1e-5*losses[0] {
			t.Errorf("batch sizes disagree: %v, %v", corrects, losses)
		}
	}
	if !same(w.Flat, before.Flat) {
		t.Error("evaluation changed the weights")
	}
}

func TestNewRejects(t *testing.T) {
	spec := build(t, "mlp", model.Shape{Channels: 1, Height: 4, Width: 4})
	if _, err := New(spec, 0, Options{}); !errors.Is(err, ErrBatch) {
		t.Errorf("batch 0: %v", err)
	}
	if _, err := New(spec, 1, Options{Kernel: "gpu"}); !errors.Is(err, ErrKernel) {
		t.Errorf("kernel gpu: %v", err)
	}
	b := model.NewBuilder("dead end", model.Shape{Channels: 1, Height: 4, Width: 4})
	b.Dense("unused", model.Input, 3)
	b.Dense("output", model.Input, 2)
	dead, err := b.Spec()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(dead, 1, Options{}); !errors.Is(err, ErrSpec) {
		t.Errorf("unused layer: %v", err)
	}
	odd := spec
	odd.Layers = slices.Clone(spec.Layers)
	odd.Layers[1].Kind = 99
	odd.Layers[0].Kind = model.AveragePool
	if _, err := New(odd, 1, Options{}); !errors.Is(err, ErrSpec) {
		t.Errorf("unknown kind: %v", err)
	}
	odd.Layers[0].Inputs = []int{3}
	if _, err := New(odd, 1, Options{}); !errors.Is(err, ErrSpec) {
		t.Errorf("layer reads ahead: %v", err)
	}
}

func TestMisuse(t *testing.T) {
	spec := build(t, "softmax", model.Shape{Channels: 1, Height: 2, Width: 2})
	n, err := New(spec, 2, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := model.NewWeights(spec)
	for name, misuse := range map[string]func(){
		"too many images": func() { n.Step(w, make([]float32, 12), make([]uint8, 3), SGD{}) },
		"no images":       func() { n.Step(w, nil, nil, SGD{}) },
		"wrong size":      func() { n.Step(w, make([]float32, 7), make([]uint8, 2), SGD{}) },
		"wrong label":     func() { n.Step(w, make([]float32, 4), []uint8{10}, SGD{}) },
		"wrong weights":   func() { n.Evaluate(&model.Weights{}, nil, nil) },
		"no velocity":     func() { n.Step(w, make([]float32, 4), []uint8{1}, SGD{Momentum: 0.9}) },
		"no reference":    func() { n.Step(w, make([]float32, 4), []uint8{1}, SGD{Proximal: 1}) },
		"wrong matrices":  func() { (&Multiplier{n.engine}).Multiply(nil, nil, nil, 1, 2, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse()
		}()
	}
}

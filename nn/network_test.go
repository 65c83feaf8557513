package nn

import (
	"math/rand/v2"
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

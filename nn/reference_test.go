package nn

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"grange/model"
)

// referenceCase is one model in testdata/reference.json, which
// testdata/reference.py computes with JAX.
type referenceCase struct {
	Model   string
	Shape   [3]int
	Batch   int
	Rate    float32
	Loss    float64
	Tensors []struct {
		Name     string
		Shape    []int
		Gradient *summary
		Value    summary
	}
}

// summary stands for a tensor: its norm and some of its elements.
type summary struct {
	Norm    float64
	Samples []float64
}

// compare checks values against s to a relative 1e-4: the norm against itself,
// elements against the larger of themselves and the tensor's root mean square.
func (s summary) compare(t *testing.T, what string, values []float32) {
	t.Helper()
	const tolerance = 1e-4
	squares := 0.0
	for _, v := range values {
		squares += float64(v) * float64(v)
	}
	if norm := math.Sqrt(squares); math.Abs(norm-s.Norm) > tolerance*s.Norm {
		t.Errorf("%s: norm %g, want %g", what, norm, s.Norm)
	}
	typical := s.Norm / math.Sqrt(float64(len(values)))
	for i, want := range s.Samples {
		at := (i*7919 + 11) % len(values)
		if got := float64(values[at]); math.Abs(got-want) > tolerance*max(math.Abs(want), typical) {
			t.Errorf("%s[%d] is %g, want %g", what, at, got, want)
		}
	}
}

// noise is the formula for weights and images, as in reference.py.
func noise(seed uint32, i int) float64 {
	x := uint32(i)*2654435761 + seed
	x ^= x >> 16
	x *= 0x85ebca6b
	x ^= x >> 13
	x *= 0xc2b2ae35
	x ^= x >> 16
	return float64(x>>8)/(1<<23) - 1
}

func referenceWeights(spec model.Spec) *model.Weights {
	w := model.NewWeights(spec)
	for i, tensor := range spec.Tensors {
		offset, scale := 0.0, 0.25
		switch {
		case len(tensor.Shape) > 1:
			scale = math.Sqrt(6 / float64(tensor.Size/tensor.Shape[len(tensor.Shape)-1]))
		case strings.HasSuffix(tensor.Name, ".variance"),
			strings.Contains(tensor.Name, "norm") && strings.HasSuffix(tensor.Name, ".weight"):
			offset = 1
		}
		values := w.Tensor(i)
		for j := range values {
			values[j] = float32(offset + noise(uint32(1000*(i+1)), j)*scale)
		}
	}
	return w
}

// One training step of every architecture, with every kernel, must agree with
// JAX: the loss, each tensor's gradient, and each tensor after the step,
// running statistics included.
func TestAgainstJAX(t *testing.T) {
	text, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []referenceCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Model, func(t *testing.T) {
			spec, err := model.New(c.Model, model.Shape{Channels: c.Shape[0], Height: c.Shape[1], Width: c.Shape[2]}, 10)
			if err != nil {
				t.Fatal(err)
			}
			x, labels := make([]float32, c.Batch*spec.Input.Size()), make([]uint8, c.Batch)
			for i := range x {
				x[i] = float32(noise(1, i))
			}
			for i := range labels {
				labels[i] = uint8((3*i + 1) % 10)
			}
			start := referenceWeights(spec)
			eachKernel(t, func(t *testing.T, k *kernels) {
				// The batch is a partial one on purpose.
				n, err := New(spec, c.Batch+1, Options{Kernel: k.name})
				if err != nil {
					t.Fatal(err)
				}
				w := start.Clone()
				if loss := n.Step(w, x, labels, SGD{Rate: c.Rate}); math.Abs(loss-c.Loss) > 1e-5*c.Loss {
					t.Errorf("loss %g, want %g", loss, c.Loss)
				}
				for _, want := range c.Tensors {
					i := spec.Find(want.Name)
					if i == model.None || !slices.Equal(spec.Tensors[i].Shape, want.Shape) {
						t.Fatalf("no tensor %s of %v", want.Name, want.Shape)
					}
					want.Value.compare(t, want.Name, w.Tensor(i))
					if want.Gradient != nil {
						want.Gradient.compare(t, "gradient of "+want.Name, n.part(w, i))
					}
				}
			})
		})
	}
}

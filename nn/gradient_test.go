package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"grange/model"
)

// gradientCases are small networks that together use every kind of layer, fused
// and unfused, with one and with several consumers.
var gradientCases = map[string]func(b *model.Builder){
	"dense": func(b *model.Builder) {
		b.Dense("out", model.Input, 3)
	},
	"dense rectified": func(b *model.Builder) {
		x := b.Dense("a", model.Input, 9)
		b.Dense("out", b.ReLU("r", x), 3)
	},
	"convolution": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 8, 3, 1, 1, true)
		x = b.Conv("b", x, 5, 3, 1, 1, true)
		b.Dense("out", x, 3)
	},
	"convolution with stride": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 8, 3, 1, 1, false)
		x = b.Conv("b", x, 8, 3, 2, 1, false)
		x = b.Conv("c", x, 5, 1, 2, 0, false)
		b.Dense("out", x, 3)
	},
	"convolution without padding": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 4, 2, 1, 0, true)
		x = b.ReLU("r", x)
		x = b.Conv("b", x, 3, 3, 2, 0, true)
		b.Dense("out", b.ReLU("s", x), 3)
	},
	"max pooling": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 8, 3, 1, 1, true)
		x = b.MaxPool("p", x, 2, 2)
		b.Dense("out", x, 3)
	},
	"max pooling rectified": func(b *model.Builder) {
		x := b.ReLU("r", b.Conv("a", model.Input, 8, 3, 1, 1, true))
		x = b.MaxPool("p", x, 2, 2)
		x = b.ReLU("s", b.Conv("b", x, 4, 3, 1, 1, true))
		x = b.MaxPool("q", x, 2, 2)
		b.Dense("out", x, 3)
	},
	"max pooling overlapping": func(b *model.Builder) {
		x := b.ReLU("r", b.Conv("a", model.Input, 4, 3, 1, 1, true))
		b.Dense("out", b.MaxPool("p", x, 3, 2), 3)
	},
	"average pooling": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 3, 3, 1, 1, true)
		b.AveragePool("p", x)
	},
	"batch norm": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 8, 3, 1, 1, false)
		x = b.BatchNorm("n", x)
		b.Dense("out", x, 3)
	},
	"batch norm rectified": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 6, 3, 1, 1, false)
		x = b.ReLU("r", b.BatchNorm("n", x))
		b.Dense("out", x, 3)
	},
	"residual block": func(b *model.Builder) {
		x := b.ReLU("r", b.BatchNorm("n", b.Conv("a", model.Input, 8, 3, 1, 1, false)))
		y := b.ReLU("s", b.BatchNorm("o", b.Conv("b", x, 8, 3, 1, 1, false)))
		y = b.BatchNorm("p", b.Conv("c", y, 8, 3, 1, 1, false))
		y = b.ReLU("t", b.Add("sum", y, x))
		b.Dense("out", b.AveragePool("q", y), 3)
	},
	"residual block with stride": func(b *model.Builder) {
		x := b.ReLU("r", b.BatchNorm("n", b.Conv("a", model.Input, 4, 3, 1, 1, false)))
		y := b.BatchNorm("o", b.Conv("b", x, 8, 3, 2, 1, false))
		z := b.BatchNorm("p", b.Conv("c", x, 8, 1, 2, 0, false))
		b.Dense("out", b.ReLU("s", b.Add("sum", y, z)), 3)
	},
	"addition and rectifier alone": func(b *model.Builder) {
		x := b.Dense("a", model.Input, 8)
		y := b.Dense("b", model.Input, 8)
		s := b.Add("sum", x, y)
		r := b.ReLU("r", s)
		t := b.Add("more", r, x)
		b.Dense("out", b.Add("last", t, s), 3)
	},
	"everything read twice": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 4, 3, 1, 1, true)
		n := b.BatchNorm("n", x)
		y := b.Add("s", n, x)
		p := b.AveragePool("p", x)
		q := b.AveragePool("q", y)
		m := b.AveragePool("t", b.MaxPool("m", y, 2, 2))
		d := b.Dense("d", y, 4)
		z := b.Add("u", b.Add("v", p, q), b.Add("w", m, d))
		b.Dense("out", b.ReLU("r", z), 3)
	},
	"norm of itself": func(b *model.Builder) {
		x := b.Conv("a", model.Input, 8, 3, 1, 1, true)
		y := b.Add("s", b.BatchNorm("n", x), x)
		b.Dense("out", y, 3)
	},
}

// The loss and its gradient must agree with a plain implementation in double
// precision and its central differences, along a random direction and along a
// few axes for each tensor.
func TestGradients(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernels) {
		for name, assembleCase := range gradientCases {
			t.Run(name, func(t *testing.T) {
				b := model.NewBuilder("case", model.Shape{Channels: 2, Height: 7, Width: 6})
				assembleCase(b)
				spec, err := b.Spec()
				if err != nil {
					t.Fatal(err)
				}
				n, err := New(spec, 5, Options{Kernel: k.name})
				if err != nil {
					t.Fatal(err)
				}
				random := rand.New(rand.NewPCG(11, 7))
				w := model.Init(spec, random)
				for i := range w.Flat {
					w.Flat[i] += float32(0.1 * random.NormFloat64())
				}
				x, labels := sample(random, spec, 4)
				checkGradient(t, n, w, x, labels, random)
			})
		}
	})
}

func checkGradient(t *testing.T, n *Network, w *model.Weights, x []float32, labels []uint8, random *rand.Rand) {
	t.Helper()
	exact := make([]float64, len(w.Flat))
	for i, v := range w.Flat {
		exact[i] = float64(v)
	}
	// A batch before this one must leave nothing behind.
	other, otherLabels := sample(random, n.spec, n.batch)
	n.differentiate(w.Clone(), other, otherLabels)
	loss := n.differentiate(w.Clone(), x, labels)
	if want := oracle(n.spec, exact, x, labels); math.Abs(loss-want) > 1e-5*want {
		t.Errorf("loss is %g, want %g", loss, want)
	}
	for _, tensor := range w.Tensors() {
		if tensor.Role != model.Parameter {
			continue
		}
		gradient, norm := n.gradient[tensor.Offset:tensor.Offset+tensor.Size], 0.0
		for _, g := range gradient {
			norm += float64(g) * float64(g)
		}
		norm = math.Sqrt(norm)
		for trial := range 4 {
			direction := make([]float64, tensor.Size)
			if trial > 0 {
				direction[random.IntN(tensor.Size)] = 1
			} else {
				for j := range direction {
					direction[j] = random.NormFloat64()
				}
			}
			got, want := 0.0, slopeAlong(n.spec, exact, tensor.Offset, direction, x, labels)
			for j, d := range direction {
				got += d * float64(gradient[j])
			}
			if math.Abs(got-want) > 2e-5*norm+1e-7 {
				t.Errorf("tensor %s, trial %d: slope %g, want %g", tensor.Name, trial, got, want)
			}
		}
	}
}

// slopeAlong is the central difference of the oracle's loss.
func slopeAlong(spec model.Spec, flat []float64, offset int, direction []float64, x []float32, labels []uint8) float64 {
	const step = 1e-6
	var ends [2]float64
	for i, sign := range []float64{1, -1} {
		moved := append([]float64(nil), flat...)
		for j, d := range direction {
			moved[offset+j] += sign * step * d
		}
		ends[i] = oracle(spec, moved, x, labels)
	}
	return (ends[0] - ends[1]) / (2 * step)
}

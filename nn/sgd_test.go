package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"grange/model"
)

// Three steps with every option on must equal the update rule written out in
// double precision, and statistics must not be touched by it.
func TestUpdateRule(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernels) {
		b := model.NewBuilder("small", model.Shape{Channels: 2, Height: 4, Width: 4})
		x := b.BatchNorm("norm", b.Conv("conv", model.Input, 5, 3, 1, 1, false))
		b.Dense("output", x, 3)
		spec, err := b.Spec()
		if err != nil {
			t.Fatal(err)
		}
		n, err := New(spec, 4, Options{Kernel: k.name})
		if err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(4, 4))
		w := model.Init(spec, random)
		sgd := SGD{
			Rate: 0.1, Momentum: 0.8, Velocity: make([]float32, spec.Size()),
			Decay: 0.01, Proximal: 0.3, Reference: normals(random, spec.Size()),
		}
		velocity := make([]float64, spec.Size())
		for range 3 {
			before := w.Clone()
			for i := range n.gradient {
				n.gradient[i] = float32(random.NormFloat64())
			}
			gradient := append([]float32(nil), n.gradient...)
			sgd.update(n, w)
			for _, tensor := range spec.Tensors {
				for i := tensor.Offset; i < tensor.Offset+tensor.Size; i++ {
					old := float64(before.Flat[i])
					want := old
					if tensor.Role == model.Parameter {
						g := float64(gradient[i]) + 0.01*old + 0.3*(old-float64(sgd.Reference[i]))
						velocity[i] = 0.8*velocity[i] + g
						want = old - 0.1*velocity[i]
					}
					if math.Abs(float64(w.Flat[i])-want) > 1e-5 {
						t.Fatalf("%s[%d] is %g, want %g", tensor.Name, i-tensor.Offset, w.Flat[i], want)
					}
				}
			}
		}
	})
}

package nn

import (
	"math/rand/v2"
	"testing"

	"grange/model"
)

// BenchmarkStep trains on batches of 64, as bench/train does beside JAX.
func BenchmarkStep(b *testing.B) {
	for _, name := range model.Names() {
		for _, k := range available() {
			b.Run(name+"/"+k.name, func(b *testing.B) {
				shape := model.Shape{Channels: 1, Height: 28, Width: 28}
				if name == "resnet18" {
					shape = model.Shape{Channels: 3, Height: 32, Width: 32}
				}
				const batch = 64
				spec := build(b, name, shape)
				n, err := New(spec, batch, Options{Kernel: k.name})
				if err != nil {
					b.Fatal(err)
				}
				random := rand.New(rand.NewPCG(1, 1))
				w := model.Init(spec, random)
				x, labels := sample(random, spec, batch)
				for b.Loop() {
					n.Step(w, x, labels, SGD{Rate: 0.01})
				}
				b.ReportMetric(batch*float64(b.N)/b.Elapsed().Seconds(), "images/s")
			})
		}
	}
}

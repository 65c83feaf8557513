package equilibrium

import (
	"context"
	"testing"

	"grange/mechanism"
)

// BenchmarkSolve solves and certifies the five-hospital scenario.
func BenchmarkSolve(b *testing.B) {
	g := hospitals(10000, 15000, []float64{0.1, 0.1, 0.1, 0, 0}, []float64{0.4, 0.4, 0.4, 0.4, 0.4})
	for _, m := range mechanism.All() {
		b.Run(m.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Solve(context.Background(), g, m, Settings{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

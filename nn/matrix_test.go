package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"grange/internal/fmapeak"
)

// eachKernel runs a test with every kernel that this CPU has.
func eachKernel(t *testing.T, test func(t *testing.T, k *kernels)) {
	for _, k := range available() {
		t.Run(k.name, func(t *testing.T) { test(t, k) })
	}
}

func normals(random *rand.Rand, size int) []float32 {
	out := make([]float32, size)
	for i := range out {
		out[i] = float32(random.NormFloat64())
	}
	return out
}

// stored draws a rows×columns matrix, stored either way round, with a gap
// between its rows or columns.
func stored(t *rapid.T, random *rand.Rand, rows, columns int, name string) operand {
	gap := rapid.IntRange(0, 3).Draw(t, name+" gap")
	if rapid.Bool().Draw(t, name+" transposed") {
		step := rows + gap
		return operand{normals(random, columns*step), 1, step}
	}
	step := columns + gap
	return operand{normals(random, rows*step), step, 1}
}

func (o operand) at(i, j int) float64 { return float64(o.data[i*o.row+j*o.column]) }

// Every kernel must agree with a plain product in double precision, for any
// size and any storage, and leave everything around the result alone.
func TestMultiplyAgainstOracle(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernels) {
		rapid.Check(t, func(t *rapid.T) {
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			// One side may be long enough for several blocks.
			sides := rapid.SliceOfN(rapid.IntRange(1, 40), 3, 3).Draw(t, "sides")
			long := rapid.IntRange(0, 2).Draw(t, "long side")
			sides[long] = rapid.OneOf(rapid.Just(sides[long]), rapid.SampledFrom([]int{64, 200, 256, 270, 515, 1030})).Draw(t, "length")
			rows, depth, columns := sides[0], sides[1], sides[2]
			a := stored(t, random, rows, depth, "a")
			b := stored(t, random, depth, columns, "b")
			p := product{rows: rows, depth: depth, columns: columns, a: a}
			p.cRow = columns + rapid.IntRange(0, 3).Draw(t, "c gap")
			p.c = normals(random, rows*p.cRow+5)
			if rapid.Bool().Draw(t, "bias") {
				p.bias = normals(random, columns)
			}
			p.mode = rapid.IntRange(0, accumulate|rectify).Draw(t, "mode")
			old := append([]float32(nil), p.c...)
			e := newEngine(k)
			e.reserve(depth, columns)
			e.pack(b, depth, columns)
			e.multiply(p)
			for at, got := range p.c {
				i, j := at/p.cRow, at%p.cRow
				if i >= rows || j >= columns {
					if got != old[at] {
						t.Fatalf("wrote outside C at %d, %d", i, j)
					}
					continue
				}
				want, scale := 0.0, 1.0
				for d := range depth {
					want += a.at(i, d) * b.at(d, j)
					scale += math.Abs(a.at(i, d) * b.at(d, j))
				}
				if p.mode&accumulate != 0 {
					want += float64(old[at])
				}
				if p.bias != nil {
					want += float64(p.bias[j])
				}
				if p.mode&rectify != 0 {
					want = max(want, 0)
				}
				if math.Abs(float64(got)-want) > 1e-6*scale {
					t.Fatalf("C[%d,%d] is %g, want %g", i, j, got, want)
				}
			}
		})
	})
}

func BenchmarkMultiply(b *testing.B) {
	peak, _ := fmapeak.Peak()
	for _, k := range available() {
		for _, n := range []int{256, 1024} {
			b.Run(fmt.Sprintf("%s/%d", k.name, n), func(b *testing.B) {
				random := rand.New(rand.NewPCG(1, 1))
				x, y, z := normals(random, n*n), normals(random, n*n), make([]float32, n*n)
				e := newEngine(k)
				e.reserve(n, n)
				for b.Loop() {
					e.pack(operand{y, n, 1}, n, n)
					e.multiply(product{rows: n, depth: n, columns: n, a: operand{x, n, 1}, c: z, cRow: n})
				}
				flops := 2 * float64(n) * float64(n) * float64(n) * float64(b.N) / b.Elapsed().Seconds()
				b.ReportMetric(flops/1e9, "GFLOP/s")
				if peak > 0 {
					b.ReportMetric(100*flops/peak, "%peak")
				}
			})
		}
	}
}

package nn

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKernelNames(t *testing.T) {
	all := Kernels()
	fastest, err := kernelsFor("")
	if err != nil || all[0] != fastest.name || all[len(all)-1] != "portable" {
		t.Errorf("kernels %v, fastest %v, %v", all, fastest, err)
	}
	_, err = kernelsFor("sse")
	if !errors.Is(err, ErrKernel) || !strings.Contains(err.Error(), "portable") {
		t.Errorf("unknown kernel: %v", err)
	}
	if _, err := NewMultiplier("sse"); !errors.Is(err, ErrKernel) {
		t.Errorf("unknown kernel: %v", err)
	}
}

// near compares slices that were computed in another order, or with fused
// multiply-adds.
func near(t *rapid.T, what string, got, want []float32) {
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if diff := math.Abs(float64(got[i] - want[i])); !(diff <= 1e-5*(1+math.Abs(float64(want[i])))) {
			t.Fatalf("%s[%d] is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// Every function of every kernel must agree with plain Go, whatever the sizes,
// and must not write past the end of what it was given.
func TestVectorFunctionsAgainstPortable(t *testing.T) {
	eachKernel(t, func(t *testing.T, k *kernels) {
		rapid.Check(t, func(t *rapid.T) {
			random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			width := rapid.OneOf(rapid.IntRange(1, 70), rapid.SampledFrom([]int{8, 16, 32, 40, 64, 72})).Draw(t, "width")
			rows := rapid.IntRange(1, 20).Draw(t, "rows")
			size := rows * width
			draw := func(n int) []float32 { return normals(random, n) }
			// twice runs f with both sets of kernels on copies of dst, which are
			// longer than f may see.
			twice := func(what string, dst []float32, f func(k *kernels, dst []float32)) {
				guard := draw(16)
				run := func(k *kernels) []float32 {
					buffer := append(slices.Clone(dst), guard...)
					f(k, buffer[:len(dst)])
					return buffer
				}
				near(t, what, run(k), run(&portable))
			}
			x, y, a, b, c := draw(size), draw(size), draw(width), draw(width), draw(width)
			clamp := rapid.Bool().Draw(t, "clamp")
			twice("blend", draw(size), func(k *kernels, dst []float32) { k.blend(dst, x, 0.5, -2) })
			twice("rectify", draw(size), func(k *kernels, dst []float32) { k.rectify(dst, x) })
			twice("gate", draw(size), func(k *kernels, dst []float32) { k.gate(dst, x, y) })
			twice("sums", draw(width), func(k *kernels, dst []float32) { k.sums(dst, x, rows) })
			twice("moments", draw(2*width), func(k *kernels, dst []float32) { k.moments(dst[:width], dst[width:], x, rows) })
			twice("products", draw(2*width), func(k *kernels, dst []float32) { k.products(dst[:width], dst[width:], x, y, rows) })
			twice("scale", draw(size), func(k *kernels, dst []float32) { k.scale(dst, x, a, b, nil, clamp) })
			twice("scale and skip", draw(size), func(k *kernels, dst []float32) { k.scale(dst, x, a, b, y, clamp) })
			twice("combine", draw(size), func(k *kernels, dst []float32) { k.combine(dst, x, y, a, b, c) })
			step := width + rapid.IntRange(0, 5).Draw(t, "gap")
			wide := draw(rows * step)
			twice("copyRows", draw(size), func(k *kernels, dst []float32) { k.copyRows(dst, wide, step, rows, width) })
			twice("transpose", draw((rows+3)*width), func(k *kernels, dst []float32) {
				k.transpose(dst, wide, rows+3, step, rows, width)
			})

			upper, lower := draw(2*size+3), draw(2*size+3)
			for i := range upper { // ties, and values at the rectifier's edge
				upper[i], lower[i] = max(float32(math.Round(float64(upper[i]))), 0), max(float32(math.Round(float64(lower[i]))), 0)
			}
			twice("pool", draw(size), func(k *kernels, dst []float32) { k.pool(dst, upper, lower, width) })
			out := make([]float32, size)
			portable.pool(out, upper, lower, width)
			twice("unpool", draw(4*size), func(k *kernels, dst []float32) {
				k.unpool(dst[:2*size], dst[2*size:], upper, lower, out, x, width, clamp)
			})
		})
	})
}

// A diverged network must be seen to have diverged.
func TestNotANumberSurvives(t *testing.T) {
	nan := float32(math.NaN())
	eachKernel(t, func(t *testing.T, k *kernels) {
		x := make([]float32, 16)
		x[3] = nan
		ones := slices.Repeat([]float32{1}, 16)
		dst := make([]float32, 16)
		isNaN := func(what string) {
			t.Helper()
			if !math.IsNaN(float64(dst[3])) || dst[2] != 0 {
				t.Errorf("%s loses it: %v", what, dst)
			}
		}
		k.rectify(dst, x)
		isNaN("rectify")
		k.scale(dst, x, ones, make([]float32, 16), nil, true)
		isNaN("scale")
		e := newEngine(k)
		e.reserve(1, 16)
		e.pack(operand{x, 16, 1}, 1, 16)
		e.multiply(product{rows: 1, depth: 1, columns: 16, a: operand{ones, 1, 1}, c: dst, cRow: 16, mode: rectify})
		isNaN("multiply")
	})
}

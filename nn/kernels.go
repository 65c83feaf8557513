package nn

import (
	"fmt"
	"strings"
)

// tile is the work order of a matrix kernel: C ← [C +] A·B [+ bias] [rectified]
// for a few rows of C and one panel of columns. The assembly reads it by
// offsets; layout_test.go holds the two together.
type tile struct {
	a       []float32 // element (i, k) at a[i*aRow + k*aDepth]
	b       []float32 // packed: depth rows, each as wide as the panel
	c       []float32
	bias    []float32 // one per column, or none
	aRow    int
	aDepth  int
	depth   int
	cRow    int
	mode    int
	columns int // how many columns of the panel exist in C
}

// Bits of tile.mode.
const (
	accumulate = 1 << iota // add to C instead of overwriting it
	rectify                // clamp the result at 0
)

// kernels is one implementation of the inner loops. Rows of x with width floats
// each lie one after another; per-channel operands have width floats.
type kernels struct {
	name  string
	lanes int // floats per vector
	// vectors is the widest panel, in vectors; rows are the heights of tiles,
	// highest first, the last being 1.
	vectors int
	rows    []int
	// tile multiplies rows[height] rows by a panel of some vectors.
	tile func(t *tile, height, vectors int)
	// transpose writes the rows×columns matrix src, whose rows are srcStep
	// apart, to dst with rows dstStep apart, transposed.
	transpose func(dst, src []float32, dstStep, srcStep, rows, columns int)
	// copyRows copies rows that are srcStep apart to rows without gaps.
	copyRows func(dst, src []float32, srcStep, rows, columns int)

	// blend is dst ← a·dst + b·x.
	blend func(dst, x []float32, a, b float32)
	// rectify is dst ← max(x, 0).
	rectify func(dst, x []float32)
	// gate is dst ← x where y > 0, else 0.
	gate func(dst, x, y []float32)
	// sums is sum += Σ x over rows.
	sums func(sum, x []float32, rows int)
	// moments is sum += Σ x, squares += Σ x² over rows.
	moments func(sum, squares, x []float32, rows int)
	// products is sum += Σ x, cross += Σ x·y over rows.
	products func(sum, cross, x, y []float32, rows int)
	// scale is dst ← x·a + b per channel; then + skip, if any; then clamped at
	// 0 if clamp.
	scale func(dst, x, a, b, skip []float32, clamp bool)
	// combine is dst ← x·a + y·b + c per channel.
	combine func(dst, x, y, a, b, c []float32)
	// pool takes the maximum of 2×2 windows of two rows of width channels.
	pool func(dst, upper, lower []float32, channels int)
	// unpool sends slope to the first largest element of each 2×2 window, and
	// zero elsewhere; where positive, also zero if that element is not > 0.
	unpool func(dstUpper, dstLower, upper, lower, out, slope []float32, channels int, positive bool)
}

// Kernels lists the kernels that this CPU can run, fastest first.
func Kernels() []string {
	names := []string{}
	for _, k := range available() {
		names = append(names, k.name)
	}
	return names
}

func kernelsFor(name string) (*kernels, error) {
	all := available()
	if name == "" {
		return all[0], nil
	}
	for _, k := range all {
		if k.name == name {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w: %q; this CPU has %s", ErrKernel, name, strings.Join(Kernels(), ", "))
}

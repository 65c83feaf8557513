package nn

import (
	"math"

	"github.com/klauspost/cpuid/v2"
)

//go:generate go -C internal/kernelgen run .

var avx512 = withVectors(kernels{
	name: "avx512", lanes: 16, vectors: 2, rows: []int{14, 8, 4, 2, 1},
	tile: func(t *tile, height, vectors int) { tilesAVX512[vectors-1][height](t) },
})

var avx2 = withVectors(kernels{
	name: "avx2", lanes: 8, vectors: 2, rows: []int{6, 4, 2, 1},
	tile: func(t *tile, height, vectors int) { tilesAVX2[vectors-1][height](t) },
})

var tilesAVX512 = [2][5]func(*tile){
	{tile14x16AVX512, tile8x16AVX512, tile4x16AVX512, tile2x16AVX512, tile1x16AVX512},
	{tile14x32AVX512, tile8x32AVX512, tile4x32AVX512, tile2x32AVX512, tile1x32AVX512},
}

var tilesAVX2 = [2][4]func(*tile){
	{tile6x8AVX2, tile4x8AVX2, tile2x8AVX2, tile1x8AVX2},
	{tile6x16AVX2, tile4x16AVX2, tile2x16AVX2, tile1x16AVX2},
}

func available() []*kernels {
	all := []*kernels{}
	wide := cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3)
	if wide && cpuid.CPU.Supports(cpuid.AVX512F, cpuid.BMI2) {
		all = append(all, &avx512)
	}
	if wide {
		all = append(all, &avx2)
	}
	return append(all, &portable)
}

// vectorLanes is the width that the functions below work in. What is left over
// at the end of a slice, and channels that are no multiple of it, are done in
// plain Go.
const vectorLanes = 8

// withVectors fills in all but the matrix kernel.
func withVectors(k kernels) kernels {
	k.transpose = transpose
	k.copyRows = copyRows
	k.blend = blend
	k.rectify = rectifyAll
	k.gate = gate
	k.sums = sums
	k.moments = moments
	k.products = products
	k.scale = scale
	k.combine = combine
	k.pool = pool
	k.unpool = unpool
	return k
}

func transpose(dst, src []float32, dstStep, srcStep, rows, columns int) {
	const n = vectorLanes
	blocks := columns / n
	r := 0
	for ; blocks > 0 && r+n <= rows; r += n {
		strip := src[r*srcStep:]
		_, _ = strip[(n-1)*srcStep+blocks*n-1], dst[(blocks*n-1)*dstStep+r+n-1]
		transposeAVX2(&dst[r], &strip[0], dstStep, srcStep, blocks)
		if done := blocks * n; done < columns {
			transposePortable(dst[done*dstStep+r:], strip[done:], dstStep, srcStep, n, columns-done)
		}
	}
	if r < rows {
		transposePortable(dst[r:], src[r*srcStep:], dstStep, srcStep, rows-r, columns)
	}
}

func copyRows(dst, src []float32, srcStep, rows, columns int) {
	if columns%(2*vectorLanes) != 0 || rows == 0 {
		copyRowsPortable(dst, src, srcStep, rows, columns)
		return
	}
	_, _ = dst[rows*columns-1], src[(rows-1)*srcStep+columns-1]
	copyRowsAVX2(&dst[0], &src[0], srcStep, rows, columns/(2*vectorLanes))
}

func blend(dst, x []float32, a, b float32) {
	whole := len(dst) &^ (vectorLanes - 1)
	x = x[:len(dst)]
	if whole > 0 {
		blendAVX2(&dst[0], &x[0], whole/vectorLanes, a, b)
	}
	blendPortable(dst[whole:], x[whole:], a, b)
}

func rectifyAll(dst, x []float32) {
	whole := len(dst) &^ (vectorLanes - 1)
	x = x[:len(dst)]
	if whole > 0 {
		rectifyAVX2(&dst[0], &x[0], whole/vectorLanes)
	}
	rectifyPortable(dst[whole:], x[whole:])
}

func gate(dst, x, y []float32) {
	whole := len(dst) &^ (vectorLanes - 1)
	x, y = x[:len(dst)], y[:len(dst)]
	if whole > 0 {
		gateAVX2(&dst[0], &x[0], &y[0], whole/vectorLanes)
	}
	gatePortable(dst[whole:], x[whole:], y[whole:])
}

func sums(sum, x []float32, rows int) {
	if len(sum)%vectorLanes != 0 || rows == 0 {
		sumsPortable(sum, x, rows)
		return
	}
	x = x[:rows*len(sum)]
	sumsAVX2(&sum[0], &x[0], rows, len(sum)/vectorLanes)
}

func moments(sum, squares, x []float32, rows int) {
	if len(sum)%vectorLanes != 0 || rows == 0 {
		momentsPortable(sum, squares, x, rows)
		return
	}
	squares, x = squares[:len(sum)], x[:rows*len(sum)]
	momentsAVX2(&sum[0], &squares[0], &x[0], rows, len(sum)/vectorLanes)
}

func products(sum, cross, x, y []float32, rows int) {
	if len(sum)%vectorLanes != 0 || rows == 0 {
		productsPortable(sum, cross, x, y, rows)
		return
	}
	cross, x, y = cross[:len(sum)], x[:rows*len(sum)], y[:rows*len(sum)]
	productsAVX2(&sum[0], &cross[0], &x[0], &y[0], rows, len(sum)/vectorLanes)
}

func scale(dst, x, a, b, skip []float32, clamp bool) {
	width := len(a)
	if width%vectorLanes != 0 || len(dst) == 0 {
		scalePortable(dst, x, a, b, skip, clamp)
		return
	}
	floor := float32(math.Inf(-1))
	if clamp {
		floor = 0
	}
	x, b = x[:len(dst)], b[:width]
	if skip == nil {
		scaleAVX2(&dst[0], &x[0], &a[0], &b[0], len(dst)/width, width/vectorLanes, floor)
		return
	}
	skip = skip[:len(dst)]
	scaleSkipAVX2(&dst[0], &x[0], &a[0], &b[0], &skip[0], len(dst)/width, width/vectorLanes, floor)
}

func combine(dst, x, y, a, b, c []float32) {
	width := len(a)
	if width%vectorLanes != 0 || len(dst) == 0 {
		combinePortable(dst, x, y, a, b, c)
		return
	}
	x, y, b, c = x[:len(dst)], y[:len(dst)], b[:width], c[:width]
	combineAVX2(&dst[0], &x[0], &y[0], &a[0], &b[0], &c[0], len(dst)/width, width/vectorLanes)
}

func pool(dst, upper, lower []float32, channels int) {
	if channels%vectorLanes != 0 || len(dst) == 0 {
		poolPortable(dst, upper, lower, channels)
		return
	}
	upper, lower = upper[:2*len(dst)], lower[:2*len(dst)]
	poolAVX2(&dst[0], &upper[0], &lower[0], len(dst)/channels, channels/vectorLanes)
}

func unpool(dstUpper, dstLower, upper, lower, out, slope []float32, channels int, positive bool) {
	if channels%vectorLanes != 0 || len(out) == 0 {
		unpoolPortable(dstUpper, dstLower, upper, lower, out, slope, channels, positive)
		return
	}
	floor := float32(math.Inf(-1))
	if positive {
		floor = 0
	}
	size := 2 * len(out)
	dstUpper, dstLower, upper, lower = dstUpper[:size], dstLower[:size], upper[:size], lower[:size]
	slope = slope[:len(out)]
	unpoolAVX2(&dstUpper[0], &dstLower[0], &upper[0], &lower[0], &out[0], &slope[0],
		len(out)/channels, channels/vectorLanes, floor)
}

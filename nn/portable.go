package nn

// portable is plain Go, for CPUs that no assembly is written for.
var portable = kernels{
	name:      "portable",
	lanes:     4,
	vectors:   1,
	rows:      []int{2, 1},
	tile:      tilePortable,
	transpose: transposePortable,
	copyRows:  copyRowsPortable,
	blend:     blendPortable,
	rectify:   rectifyPortable,
	gate:      gatePortable,
	sums:      sumsPortable,
	moments:   momentsPortable,
	products:  productsPortable,
	scale:     scalePortable,
	combine:   combinePortable,
	pool:      poolPortable,
	unpool:    unpoolPortable,
}

func tilePortable(t *tile, height, _ int) {
	var sum [2][4]float32
	if height == 0 {
		tileTwoRows(t, &sum)
	} else {
		tileOneRow(t, &sum)
	}
	for i := range 2 - height {
		row := t.c[i*t.cRow : i*t.cRow+t.columns]
		for j := range row {
			v := sum[i][j]
			if t.mode&accumulate != 0 {
				v += row[j]
			}
			if len(t.bias) > 0 {
				v += t.bias[j]
			}
			if t.mode&rectify != 0 && v < 0 {
				v = 0
			}
			row[j] = v
		}
	}
}

// tileTwoRows and tileOneRow are the inner loops. They are not instrumented for
// the race detector, under which they would take most of the tests' time: what
// they touch belongs to one Network, and everything around them is instrumented.
//
//go:norace
func tileTwoRows(t *tile, sum *[2][4]float32) {
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	upper, lower, b, step := t.a, t.a[t.aRow:], t.b[:4*t.depth], t.aDepth
	for at := 0; len(b) >= 4; at += step {
		x, y := upper[at], lower[at]
		s00 += x * b[0]
		s01 += x * b[1]
		s02 += x * b[2]
		s03 += x * b[3]
		s10 += y * b[0]
		s11 += y * b[1]
		s12 += y * b[2]
		s13 += y * b[3]
		b = b[4:]
	}
	sum[0] = [4]float32{s00, s01, s02, s03}
	sum[1] = [4]float32{s10, s11, s12, s13}
}

//go:norace
func tileOneRow(t *tile, sum *[2][4]float32) {
	var s0, s1, s2, s3 float32
	b := t.b[:4*t.depth]
	for at := 0; len(b) >= 4; at += t.aDepth {
		x := t.a[at]
		s0 += x * b[0]
		s1 += x * b[1]
		s2 += x * b[2]
		s3 += x * b[3]
		b = b[4:]
	}
	sum[0] = [4]float32{s0, s1, s2, s3}
}

func transposePortable(dst, src []float32, dstStep, srcStep, rows, columns int) {
	for r := range rows {
		from := src[r*srcStep : r*srcStep+columns]
		for c, v := range from {
			dst[c*dstStep+r] = v
		}
	}
}

func copyRowsPortable(dst, src []float32, srcStep, rows, columns int) {
	for r := range rows {
		copy(dst[r*columns:(r+1)*columns], src[r*srcStep:r*srcStep+columns])
	}
}

func blendPortable(dst, x []float32, a, b float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = a*dst[i] + b*x[i]
	}
}

func rectifyPortable(dst, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = max(x[i], 0)
	}
}

func gatePortable(dst, x, y []float32) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		v := x[i]
		if !(y[i] > 0) {
			v = 0
		}
		dst[i] = v
	}
}

func sumsPortable(sum, x []float32, rows int) {
	width := len(sum)
	for r := range rows {
		for c, v := range x[r*width : (r+1)*width] {
			sum[c] += v
		}
	}
}

func momentsPortable(sum, squares, x []float32, rows int) {
	width := len(sum)
	squares = squares[:width]
	for r := range rows {
		for c, v := range x[r*width : (r+1)*width] {
			sum[c] += v
			squares[c] += v * v
		}
	}
}

func productsPortable(sum, cross, x, y []float32, rows int) {
	width := len(sum)
	cross = cross[:width]
	for r := range rows {
		other := y[r*width : (r+1)*width]
		for c, v := range x[r*width : (r+1)*width] {
			sum[c] += v
			cross[c] += v * other[c]
		}
	}
}

func scalePortable(dst, x, a, b, skip []float32, clamp bool) {
	for from := 0; from < len(dst); from += len(a) {
		out, in := dst[from:from+len(a)], x[from:from+len(a)]
		for c := range out {
			v := in[c]*a[c] + b[c]
			if skip != nil {
				v += skip[from+c]
			}
			if clamp {
				v = max(v, 0)
			}
			out[c] = v
		}
	}
}

func combinePortable(dst, x, y, a, b, c []float32) {
	for from := 0; from < len(dst); from += len(a) {
		out, first, second := dst[from:from+len(a)], x[from:from+len(a)], y[from:from+len(a)]
		for i := range out {
			out[i] = first[i]*a[i] + (second[i]*b[i] + c[i])
		}
	}
}

func poolPortable(dst, upper, lower []float32, channels int) {
	for at, from := 0, 0; at < len(dst); at, from = at+channels, from+2*channels {
		u, l := upper[from:from+2*channels], lower[from:from+2*channels]
		for c := range channels {
			dst[at+c] = max(u[c], u[c+channels], l[c], l[c+channels])
		}
	}
}

func unpoolPortable(dstUpper, dstLower, upper, lower, out, slope []float32, channels int, positive bool) {
	for at, from := 0, 0; at < len(out); at, from = at+channels, from+2*channels {
		for c := range channels {
			left, right := from+c, from+channels+c
			top, s := out[at+c], slope[at+c]
			if positive && !(top > 0) {
				s = 0
			}
			dstUpper[left], dstUpper[right], dstLower[left], dstLower[right] = 0, 0, 0, 0
			switch top {
			case upper[left]:
				dstUpper[left] = s
			case upper[right]:
				dstUpper[right] = s
			case lower[left]:
				dstLower[left] = s
			default:
				dstLower[right] = s
			}
		}
	}
}

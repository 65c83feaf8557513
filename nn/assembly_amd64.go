package nn

// The functions of the generated assembly. Counts are of whole vectors.

//go:noescape
func tile14x32AVX512(t *tile)

//go:noescape
func tile8x32AVX512(t *tile)

//go:noescape
func tile4x32AVX512(t *tile)

//go:noescape
func tile2x32AVX512(t *tile)

//go:noescape
func tile1x32AVX512(t *tile)

//go:noescape
func tile14x16AVX512(t *tile)

//go:noescape
func tile8x16AVX512(t *tile)

//go:noescape
func tile4x16AVX512(t *tile)

//go:noescape
func tile2x16AVX512(t *tile)

//go:noescape
func tile1x16AVX512(t *tile)

//go:noescape
func tile6x16AVX2(t *tile)

//go:noescape
func tile4x16AVX2(t *tile)

//go:noescape
func tile2x16AVX2(t *tile)

//go:noescape
func tile1x16AVX2(t *tile)

//go:noescape
func tile6x8AVX2(t *tile)

//go:noescape
func tile4x8AVX2(t *tile)

//go:noescape
func tile2x8AVX2(t *tile)

//go:noescape
func tile1x8AVX2(t *tile)

//go:noescape
func blendAVX2(dst, x *float32, vectors int, a, b float32)

//go:noescape
func rectifyAVX2(dst, x *float32, vectors int)

//go:noescape
func gateAVX2(dst, x, y *float32, vectors int)

//go:noescape
func transposeAVX2(dst, src *float32, dstStep, srcStep, blocks int)

//go:noescape
func sumsAVX2(sum, x *float32, rows, vectors int)

//go:noescape
func momentsAVX2(sum, cross, x *float32, rows, vectors int)

//go:noescape
func productsAVX2(sum, cross, x, y *float32, rows, vectors int)

//go:noescape
func scaleAVX2(dst, x, a, b *float32, rows, vectors int, floor float32)

//go:noescape
func scaleSkipAVX2(dst, x, a, b, skip *float32, rows, vectors int, floor float32)

//go:noescape
func combineAVX2(dst, x, y, a, b, c *float32, rows, vectors int)

//go:noescape
func poolAVX2(dst, upper, lower *float32, pixels, vectors int)

//go:noescape
func unpoolAVX2(dstUpper, dstLower, upper, lower, out, slope *float32, pixels, vectors int, floor float32)

//go:noescape
func copyRowsAVX2(dst, src *float32, srcStep, rows, pairs int)

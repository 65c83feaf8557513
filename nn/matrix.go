package nn

// Block sizes of the matrix product. A block of B is one panel wide and stays
// in the first-level cache while tiles of A pass by; a block of A stays in the
// second-level cache.
const (
	blockDepth = 512
	blockRows  = 84
	// The gradient of a convolution's weights has pixels for depth. Wider blocks
	// of fewer pixels are gathered in longer pieces.
	gradientDepth = 168
	gradientRows  = 252
)

// engine multiplies matrices with one set of kernels.
type engine struct {
	*kernels
	work    tile      // the order being carried out, here so that it needs no heap
	packed  []float32 // B, packed
	block   []float32 // a block of A, where it has to be copied or gathered
	windows []float32 // slopes of a block of convolution windows
	channel []float32 // sums per channel, twice the widest
	totals  []float64 // likewise
}

func newEngine(k *kernels) *engine {
	return &engine{kernels: k, block: make([]float32, blockRows*(blockDepth+padding))}
}

// padding is added to the rows of copied blocks, so that they do not all fall
// into the same sets of the cache.
const padding = 16

// operand is a matrix inside a slice: element (i, j) at data[i*row + j*column].
type operand struct {
	data        []float32
	row, column int
}

// product is C ← [C +] A·B [+ bias] [rectified], with B in engine.packed.
type product struct {
	rows, depth, columns int
	a                    operand
	c                    []float32
	cRow                 int
	mode                 int
	bias                 []float32
}

// split cuts size into equal parts of at most limit, multiples of multiple
// where that is possible, and returns the size of a part.
func split(size, limit, multiple int) int {
	parts := (size + limit - 1) / limit
	part := (size + parts - 1) / parts
	return min((part+multiple-1)/multiple*multiple, limit)
}

// padded rounds columns up to whole vectors.
func (e *engine) padded(columns int) int {
	return (columns + e.lanes - 1) / e.lanes * e.lanes
}

// reserve makes room for packing a depth×columns matrix.
func (e *engine) reserve(depth, columns int) {
	if need := depth * e.padded(columns); need > len(e.packed) {
		e.packed = make([]float32, need)
	}
}

// scratch returns two vectors of one value per channel.
func (e *engine) scratch(channels int) (first, second []float32) {
	return e.channel[:channels], e.channel[channels : 2*channels]
}

// pack copies B into panels: for each block of depth rows, for each panel of
// columns, row after row. Columns past the last are zero.
func (e *engine) pack(b operand, depth, columns int) {
	part, wide := split(depth, blockDepth, 4), e.lanes*e.vectors
	dst := e.packed
	for k := 0; k < depth; k += part {
		height := min(part, depth-k)
		for j := 0; j < columns; j += wide {
			width := min(wide, columns-j)
			full := e.padded(width)
			panel := dst[:height*full]
			dst = dst[height*full:]
			src := b.data[k*b.row+j*b.column:]
			switch {
			case b.column == 1 && width == full:
				e.copyRows(panel, src, b.row, height, width)
			case b.column == 1:
				for r := range height {
					row := panel[r*full : (r+1)*full]
					copy(row, src[r*b.row:r*b.row+width])
					clear(row[width:])
				}
			default:
				if width < full {
					clear(panel)
				}
				e.transpose(panel, src, full, b.column, width, height)
			}
		}
	}
}

// multiply carries out p. A block of rows of C is finished before the next is
// begun, so that it stays in cache while the depth is worked through.
func (e *engine) multiply(p product) {
	part := split(p.depth, blockDepth, 4)
	high := split(p.rows, blockRows, e.rows[0])
	// Rows a large power of two apart would push each other out of the cache.
	aliased := p.a.column == 1 && p.a.row%256 == 0 && p.columns >= 4*e.lanes
	for i := 0; i < p.rows; i += high {
		rows := min(high, p.rows-i)
		for k := 0; k < p.depth; k += part {
			depth := min(part, p.depth-k)
			mode, bias := p.mode, p.bias
			if k > 0 {
				mode |= accumulate
			}
			if k+part < p.depth {
				mode &^= rectify
				bias = nil
			}
			a := operand{p.a.data[i*p.a.row+k*p.a.column:], p.a.row, p.a.column}
			if aliased {
				step := depth + padding
				for r := range rows {
					copy(e.block[r*step:r*step+depth], a.data[r*a.row:r*a.row+depth])
				}
				a = operand{e.block, step, 1}
			}
			e.multiplyBlock(a, e.packed[k*e.padded(p.columns):], p.c[i*p.cRow:],
				rows, depth, p.columns, p.cRow, mode, bias)
		}
	}
}

// multiplyBlock multiplies a block of A with one block of packed rows of B.
func (e *engine) multiplyBlock(a operand, b, c []float32, rows, depth, columns, cRow, mode int, bias []float32) {
	t := &e.work
	t.aRow, t.aDepth, t.depth, t.cRow, t.mode = a.row, a.column, depth, cRow, mode
	wide := e.lanes * e.vectors
	for j := 0; j < columns; j += wide {
		t.columns = min(wide, columns-j)
		vectors := (t.columns + e.lanes - 1) / e.lanes
		t.b = b[j*depth : (j+vectors*e.lanes)*depth]
		t.bias = nil
		if bias != nil {
			t.bias = bias[j : j+t.columns]
		}
		height := 0
		for i := 0; i < rows; i += e.rows[height] {
			for rows-i < e.rows[height] {
				height++
			}
			t.a, t.c = a.data[i*a.row:], c[i*cRow+j:]
			e.tile(t, height, vectors)
		}
	}
}

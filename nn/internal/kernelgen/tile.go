package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Offsets of the fields of nn.tile; a test in package nn holds them to it.
const (
	tileA       = 0
	tileB       = 24
	tileC       = 48
	tileBias    = 72
	tileBiasLen = 80
	tileARow    = 96
	tileADepth  = 104
	tileDepth   = 112
	tileCRow    = 120
	tileMode    = 128
	tileColumns = 136
)

// Bits of nn.tile.mode.
const (
	modeAccumulate = 0
	modeRectify    = 1
)

// isa is an instruction set as the tile generator sees it.
type isa struct {
	suffix   string
	lanes    int
	register func() reg.VecVirtual
	zero     func(r reg.VecVirtual)
	// mask makes a mask of the first columns lanes.
	mask        func(columns reg.GPVirtual) operand.Op
	loadMasked  func(from operand.Mem, mask operand.Op, to reg.VecVirtual)
	storeMasked func(from reg.VecVirtual, mask operand.Op, to operand.Mem)
}

func tilesAVX512(ctx *build.Context) {
	set := isa{
		suffix: "AVX512", lanes: 16, register: ctx.ZMM,
		zero: func(r reg.VecVirtual) { ctx.VPXORD(r, r, r) },
		mask: func(columns reg.GPVirtual) operand.Op {
			ones, mask := ctx.GP64(), ctx.K()
			ctx.MOVQ(operand.I32(-1), ones)
			ctx.BZHIQ(columns, ones, ones)
			ctx.KMOVW(ones.As32(), mask)
			return mask
		},
		loadMasked:  func(from operand.Mem, mask operand.Op, to reg.VecVirtual) { ctx.VMOVUPS_Z(from, mask, to) },
		storeMasked: func(from reg.VecVirtual, mask operand.Op, to operand.Mem) { ctx.VMOVUPS(from, mask, to) },
	}
	for _, vectors := range []int{2, 1} {
		for _, rows := range []int{14, 8, 4, 2, 1} {
			tile(ctx, set, rows, vectors)
		}
	}
}

func tilesAVX2(ctx *build.Context) {
	numbers := ctx.StaticGlobal("numbers")
	ctx.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 8 {
		ctx.AddDatum(4*i, operand.U32(uint32(i)))
	}
	set := isa{
		suffix: "AVX2", lanes: 8, register: ctx.YMM,
		zero: func(r reg.VecVirtual) { ctx.VXORPS(r, r, r) },
		mask: func(columns reg.GPVirtual) operand.Op {
			mask, low := ctx.YMM(), ctx.XMM()
			ctx.VMOVD(columns.As32(), low)
			ctx.VPBROADCASTD(low, mask)
			ctx.VPCMPGTD(numbers, mask, mask)
			return mask
		},
		loadMasked:  func(from operand.Mem, mask operand.Op, to reg.VecVirtual) { ctx.VMASKMOVPS(from, mask, to) },
		storeMasked: func(from reg.VecVirtual, mask operand.Op, to operand.Mem) { ctx.VMASKMOVPS(from, mask, to) },
	}
	for _, vectors := range []int{2, 1} {
		for _, rows := range []int{6, 4, 2, 1} {
			tile(ctx, set, rows, vectors)
		}
	}
}

// order holds the fields of a tile while its kernel runs.
type order struct {
	ctx              *build.Context
	t                reg.Register
	bases            []reg.GPVirtual // A, one for every four rows
	row, row3, depth reg.GPVirtual   // steps of A, in bytes
	b, count         reg.GPVirtual
}

// open loads what the inner loop needs.
func open(ctx *build.Context, rows int) *order {
	o := &order{ctx: ctx}
	o.t = ctx.Load(ctx.Param("t"), ctx.GP64())
	o.row, o.row3, o.depth, o.b, o.count = ctx.GP64(), ctx.GP64(), ctx.GP64(), ctx.GP64(), ctx.GP64()
	ctx.MOVQ(o.field(tileARow), o.row)
	ctx.SHLQ(operand.U8(2), o.row)
	if rows > 3 {
		ctx.LEAQ(operand.Mem{Base: o.row, Index: o.row, Scale: 2}, o.row3)
	}
	for i := 0; i < rows; i += 4 {
		base := ctx.GP64()
		if i == 0 {
			ctx.MOVQ(o.field(tileA), base)
		} else {
			ctx.LEAQ(operand.Mem{Base: o.bases[len(o.bases)-1], Index: o.row, Scale: 4}, base)
		}
		o.bases = append(o.bases, base)
	}
	ctx.MOVQ(o.field(tileADepth), o.depth)
	ctx.SHLQ(operand.U8(2), o.depth)
	ctx.MOVQ(o.field(tileB), o.b)
	ctx.MOVQ(o.field(tileDepth), o.count)
	return o
}

func (o *order) field(offset int) operand.Mem {
	return operand.Mem{Base: o.t, Disp: offset}
}

// element is the address of A's current element of row i.
func (o *order) element(i int) operand.Mem {
	base := o.bases[i/4]
	switch i % 4 {
	case 0:
		return operand.Mem{Base: base}
	case 3:
		return operand.Mem{Base: base, Index: o.row3, Scale: 1}
	}
	return operand.Mem{Base: base, Index: o.row, Scale: uint8(i % 4)}
}

// loop runs body once per step of depth, moving through A and B.
func (o *order) loop(width int, body func()) {
	ctx := o.ctx
	ctx.Label("loop")
	body()
	for _, base := range o.bases {
		ctx.ADDQ(o.depth, base)
	}
	ctx.ADDQ(operand.U32(uint32(4*width)), o.b)
	ctx.DECQ(o.count)
	ctx.JNZ(operand.LabelRef("loop"))
}

// walkC calls visit with the address of each vector of C.
func (o *order) walkC(rows, vectors, lanes int, visit func(i, v int, at operand.Mem)) {
	ctx := o.ctx
	c, step := ctx.GP64(), ctx.GP64()
	ctx.MOVQ(o.field(tileC), c)
	ctx.MOVQ(o.field(tileCRow), step)
	ctx.SHLQ(operand.U8(2), step)
	for i := range rows {
		for v := range vectors {
			visit(i, v, operand.Mem{Base: c, Disp: 4 * lanes * v})
		}
		if i < rows-1 {
			ctx.ADDQ(step, c)
		}
	}
}

// skipUnless jumps to label unless the mode bit is set.
func (o *order) skipUnless(bit int, label string) {
	mode := o.ctx.GP64()
	o.ctx.MOVQ(o.field(tileMode), mode)
	o.ctx.BTQ(operand.U8(uint8(bit)), mode)
	o.ctx.JCC(operand.LabelRef(label))
}

// lastColumns is the number of columns in the panel's last vector.
func (o *order) lastColumns(vectors, lanes int) reg.GPVirtual {
	columns := o.ctx.GP64()
	o.ctx.MOVQ(o.field(tileColumns), columns)
	if vectors > 1 {
		o.ctx.SUBQ(operand.U8(uint8((vectors-1)*lanes)), columns)
	}
	return columns
}

// tile generates the kernel for some rows and a panel of some vectors.
func tile(ctx *build.Context, set isa, rows, vectors int) {
	begin(ctx, fmt.Sprintf("tile%dx%d%s", rows, vectors*set.lanes, set.suffix), "(t *byte)")
	o := open(ctx, rows)
	o.walkC(rows, 1, set.lanes, func(_, _ int, at operand.Mem) {
		for line := 0; line < 4*set.lanes*vectors; line += 64 {
			ctx.PREFETCHT0(operand.Mem{Base: at.Base, Disp: line})
		}
	})
	sum := make([][]reg.VecVirtual, rows)
	for i := range sum {
		for range vectors {
			r := set.register()
			set.zero(r)
			sum[i] = append(sum[i], r)
		}
	}
	o.loop(vectors*set.lanes, func() {
		var b []reg.VecVirtual
		for v := range vectors {
			b = append(b, set.register())
			ctx.VMOVUPS(operand.Mem{Base: o.b, Disp: 4 * set.lanes * v}, b[v])
		}
		a := set.register()
		for i := range sum {
			ctx.VBROADCASTSS(o.element(i), a)
			for v := range b {
				ctx.VFMADD231PS(a, b[v], sum[i][v])
			}
		}
	})
	mask := set.mask(o.lastColumns(vectors, set.lanes))
	// load reads a vector that is the panel's last for v = vectors-1.
	load := func(from operand.Mem, v int, to reg.VecVirtual) {
		if v == vectors-1 {
			set.loadMasked(from, mask, to)
		} else {
			ctx.VMOVUPS(from, to)
		}
	}

	o.skipUnless(modeAccumulate, "bias")
	other := set.register()
	o.walkC(rows, vectors, set.lanes, func(i, v int, at operand.Mem) {
		load(at, v, other)
		ctx.VADDPS(other, sum[i][v], sum[i][v])
	})

	ctx.Label("bias")
	length, bias := ctx.GP64(), ctx.GP64()
	ctx.MOVQ(o.field(tileBiasLen), length)
	ctx.TESTQ(length, length)
	ctx.JZ(operand.LabelRef("rectify"))
	ctx.MOVQ(o.field(tileBias), bias)
	for v := range vectors {
		load(operand.Mem{Base: bias, Disp: 4 * set.lanes * v}, v, other)
		for i := range sum {
			ctx.VADDPS(other, sum[i][v], sum[i][v])
		}
	}

	ctx.Label("rectify")
	o.skipUnless(modeRectify, "store")
	set.zero(other)
	for i := range sum {
		for v := range vectors {
			ctx.VMAXPS(sum[i][v], other, sum[i][v]) // keeps NaN
		}
	}

	ctx.Label("store")
	o.walkC(rows, vectors, set.lanes, func(i, v int, at operand.Mem) {
		if v == vectors-1 {
			set.storeMasked(sum[i][v], mask, at)
		} else {
			ctx.VMOVUPS(sum[i][v], at)
		}
	})
	ctx.VZEROUPPER()
	ctx.RET()
}

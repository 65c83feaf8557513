package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// lanes is the vector length of everything but the matrix kernels: 256 bits.
// These loops wait for memory, which wider registers do not change.
const lanes = 8

// at is the address of vector v from a pointer on.
func at(base reg.Register, v int) operand.Mem {
	return operand.Mem{Base: base, Disp: 4 * lanes * v}
}

// params loads the function's parameters into registers.
func params(ctx *build.Context, names ...string) []reg.GPVirtual {
	var out []reg.GPVirtual
	for _, name := range names {
		r := ctx.GP64()
		ctx.Load(ctx.Param(name), r)
		out = append(out, r)
	}
	return out
}

// stream generates a function over vectors of contiguous floats: body handles
// some vectors at a time from the pointers on.
func stream(ctx *build.Context, name string, pointers []string, more string, prepare func(), body func(p []reg.GPVirtual, vectors int)) {
	signature := "("
	for _, p := range pointers {
		signature += p + ", "
	}
	signature = signature[:len(signature)-2] + " *float32, vectors int" + more + ")"
	begin(ctx, name, signature)
	p := params(ctx, pointers...)
	count := params(ctx, "vectors")[0]
	if prepare != nil {
		prepare()
	}
	loop := func(label, next string, vectors int) {
		ctx.Label(label)
		ctx.CMPQ(count, operand.U8(uint8(vectors)))
		ctx.JLT(operand.LabelRef(next))
		body(p, vectors)
		for _, r := range p {
			ctx.ADDQ(operand.U32(uint32(4*lanes*vectors)), r)
		}
		ctx.SUBQ(operand.U8(uint8(vectors)), count)
		ctx.JMP(operand.LabelRef(label))
	}
	loop("four", "one", 4)
	loop("one", "done", 1)
	ctx.Label("done")
	ctx.VZEROUPPER()
	ctx.RET()
}

func vectors(ctx *build.Context) {
	var a, b, zero reg.VecVirtual
	stream(ctx, "blendAVX2", []string{"dst", "x"}, ", a, b float32", func() {
		a, b = ctx.YMM(), ctx.YMM()
		first, _ := ctx.Param("a").Resolve()
		second, _ := ctx.Param("b").Resolve()
		ctx.VBROADCASTSS(first.Addr, a)
		ctx.VBROADCASTSS(second.Addr, b)
	}, func(p []reg.GPVirtual, vectors int) {
		for v := range vectors {
			x := ctx.YMM()
			ctx.VMULPS(at(p[1], v), b, x)
			old := ctx.YMM()
			ctx.VMOVUPS(at(p[0], v), old)
			ctx.VFMADD231PS(old, a, x)
			ctx.VMOVUPS(x, at(p[0], v))
		}
	})
	setZero := func() {
		zero = ctx.YMM()
		ctx.VXORPS(zero, zero, zero)
	}
	stream(ctx, "rectifyAVX2", []string{"dst", "x"}, "", setZero, func(p []reg.GPVirtual, vectors int) {
		for v := range vectors {
			x := ctx.YMM()
			ctx.VMAXPS(at(p[1], v), zero, x)
			ctx.VMOVUPS(x, at(p[0], v))
		}
	})
	stream(ctx, "gateAVX2", []string{"dst", "x", "y"}, "", setZero, func(p []reg.GPVirtual, vectors int) {
		for v := range vectors {
			mask := ctx.YMM()
			ctx.VCMPPS(operand.U8(1), at(p[2], v), zero, mask) // 0 < y
			ctx.VANDPS(at(p[1], v), mask, mask)
			ctx.VMOVUPS(mask, at(p[0], v))
		}
	})
	transpose(ctx)
	copyRows(ctx)
}

// copyRows generates a copy of rows of pairs of vectors from rows srcStep floats
// apart to rows without gaps.
func copyRows(ctx *build.Context) {
	begin(ctx, "copyRowsAVX2", "(dst, src *float32, srcStep, rows, pairs int)")
	p := params(ctx, "dst", "src", "srcStep", "rows", "pairs")
	dst, src, step, rows, pairs := p[0], p[1], p[2], p[3], p[4]
	ctx.SHLQ(operand.U8(2), step)
	ctx.Label("row")
	from, left := ctx.GP64(), ctx.GP64()
	ctx.MOVQ(src, from)
	ctx.MOVQ(pairs, left)
	ctx.Label("pair")
	for v := range 2 {
		r := ctx.YMM()
		ctx.VMOVUPS(at(from, v), r)
		ctx.VMOVUPS(r, at(dst, v))
	}
	ctx.ADDQ(operand.U8(8*lanes), from)
	ctx.ADDQ(operand.U8(8*lanes), dst)
	ctx.DECQ(left)
	ctx.JNZ(operand.LabelRef("pair"))
	ctx.ADDQ(step, src)
	ctx.DECQ(rows)
	ctx.JNZ(operand.LabelRef("row"))
	ctx.VZEROUPPER()
	ctx.RET()
}

// transpose generates the transposition of a strip of 8 rows, 8 columns at a
// time: pairs, then quadruples, then halves change places.
func transpose(ctx *build.Context) {
	begin(ctx, "transposeAVX2", "(dst, src *float32, dstStep, srcStep, blocks int)")
	p := params(ctx, "dst", "src", "dstStep", "srcStep", "blocks")
	dst, src, dstStep, srcStep, blocks := p[0], p[1], p[2], p[3], p[4]
	ctx.SHLQ(operand.U8(2), dstStep)
	ctx.SHLQ(operand.U8(2), srcStep)
	ctx.Label("loop")
	row := ctx.GP64()
	ctx.MOVQ(src, row)
	var rows, pairs, quads [8]reg.VecVirtual
	for i := range rows {
		rows[i] = ctx.YMM()
		ctx.VMOVUPS(operand.Mem{Base: row}, rows[i])
		ctx.ADDQ(srcStep, row)
	}
	for i := range pairs {
		pairs[i] = ctx.YMM()
		if from := i / 2 * 2; i%2 == 0 {
			ctx.VUNPCKLPS(rows[from+1], rows[from], pairs[i])
		} else {
			ctx.VUNPCKHPS(rows[from+1], rows[from], pairs[i])
		}
	}
	for i := range quads {
		quads[i] = ctx.YMM()
		first := pairs[i/4*4+i%4/2]
		second := pairs[i/4*4+i%4/2+2]
		select4 := uint8(0x44)
		if i%2 == 1 {
			select4 = 0xEE
		}
		ctx.VSHUFPS(operand.U8(select4), second, first, quads[i])
	}
	for i := range 8 {
		out := ctx.YMM()
		halves := uint8(0x20)
		if i >= 4 {
			halves = 0x31
		}
		ctx.VPERM2F128(operand.U8(halves), quads[4+i%4], quads[i%4], out)
		ctx.VMOVUPS(out, operand.Mem{Base: dst})
		ctx.ADDQ(dstStep, dst)
	}
	ctx.ADDQ(operand.U8(4*lanes), src)
	ctx.DECQ(blocks)
	ctx.JNZ(operand.LabelRef("loop"))
	ctx.VZEROUPPER()
	ctx.RET()
}

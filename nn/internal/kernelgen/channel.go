package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// channels generates what works on each channel of rows of width channels.
func channels(ctx *build.Context) {
	reduce(ctx, "sumsAVX2", 1, 1)
	reduce(ctx, "momentsAVX2", 2, 1)
	reduce(ctx, "productsAVX2", 2, 2)
	scale(ctx)
	combine(ctx)
	pool(ctx)
	unpool(ctx)
}

// reduce generates sums over rows: of x; and, with two sums, of x·x or, with
// two inputs, of x·y. The width is counted in vectors. A strip of channels is
// summed in registers from the first row to the last.
func reduce(ctx *build.Context, name string, sums, inputs int) {
	all := []string{"sum", "cross", "x", "y"}
	pointers := append(append([]string{}, all[:sums]...), all[2:2+inputs]...)
	signature := "("
	for _, p := range pointers {
		signature += p + ", "
	}
	begin(ctx, name, signature[:len(signature)-2]+" *float32, rows, vectors int)")
	p := params(ctx, pointers...)
	outs, ins := p[:sums], p[sums:]
	rows, count, step := params(ctx, "rows")[0], params(ctx, "vectors")[0], ctx.GP64()
	ctx.MOVQ(count, step)
	ctx.SHLQ(operand.U8(5), step)
	strip := func(label, next string, vectors int) {
		ctx.Label(label)
		ctx.CMPQ(count, operand.U8(uint8(vectors)))
		ctx.JLT(operand.LabelRef(next))
		var total [2][]reg.VecVirtual
		for s := range sums {
			for v := range vectors {
				r := ctx.YMM()
				ctx.VMOVUPS(at(outs[s], v), r)
				total[s] = append(total[s], r)
			}
		}
		left := ctx.GP64()
		ctx.MOVQ(rows, left)
		var walk []reg.GPVirtual
		for _, in := range ins {
			r := ctx.GP64()
			ctx.MOVQ(in, r)
			walk = append(walk, r)
		}
		ctx.Label(label + "rows")
		for v := range vectors {
			x := ctx.YMM()
			ctx.VMOVUPS(at(walk[0], v), x)
			ctx.VADDPS(x, total[0][v], total[0][v])
			switch {
			case inputs == 2:
				ctx.VFMADD231PS(at(walk[1], v), x, total[1][v])
			case sums == 2:
				ctx.VFMADD231PS(x, x, total[1][v])
			}
		}
		for _, r := range walk {
			ctx.ADDQ(step, r)
		}
		ctx.DECQ(left)
		ctx.JNZ(operand.LabelRef(label + "rows"))
		for s := range sums {
			for v := range vectors {
				ctx.VMOVUPS(total[s][v], at(outs[s], v))
			}
		}
		for _, r := range p {
			ctx.ADDQ(operand.U32(uint32(4*lanes*vectors)), r)
		}
		ctx.SUBQ(operand.U8(uint8(vectors)), count)
		ctx.JMP(operand.LabelRef(label))
	}
	strip("four", "one", 4)
	strip("one", "done", 1)
	ctx.Label("done")
	ctx.VZEROUPPER()
	ctx.RET()
}

// perChannel generates a loop over rows and, inside, over the vectors of a row:
// body gets the byte offset into the channel vectors; the streams move on.
func perChannel(ctx *build.Context, streams []reg.GPVirtual, rows, vectors reg.GPVirtual, body func(offset reg.GPVirtual)) {
	width, offset := ctx.GP64(), ctx.GP64()
	ctx.MOVQ(vectors, width)
	ctx.SHLQ(operand.U8(5), width)
	ctx.Label("row")
	ctx.XORQ(offset, offset)
	ctx.Label("vector")
	body(offset)
	ctx.ADDQ(operand.U8(4*lanes), offset)
	ctx.CMPQ(offset, width)
	ctx.JLT(operand.LabelRef("vector"))
	for _, r := range streams {
		ctx.ADDQ(width, r)
	}
	ctx.DECQ(rows)
	ctx.JNZ(operand.LabelRef("row"))
	ctx.VZEROUPPER()
	ctx.RET()
}

// indexed is the address of the vector offset bytes from a pointer.
func indexed(base, offset reg.GPVirtual) operand.Mem {
	return operand.Mem{Base: base, Index: offset, Scale: 1}
}

// scale generates dst ← max(x·a + b + skip, floor), the skip as a variant.
func scale(ctx *build.Context) {
	for _, name := range []string{"scaleAVX2", "scaleSkipAVX2"} {
		skips := name == "scaleSkipAVX2"
		if skips {
			begin(ctx, name, "(dst, x, a, b, skip *float32, rows, vectors int, floor float32)")
		} else {
			begin(ctx, name, "(dst, x, a, b *float32, rows, vectors int, floor float32)")
		}
		p := params(ctx, "dst", "x", "a", "b")
		streams := p[:2:2]
		if skips {
			streams = append(streams, params(ctx, "skip")[0])
		}
		n := params(ctx, "rows", "vectors")
		floor := ctx.YMM()
		low, _ := ctx.Param("floor").Resolve()
		ctx.VBROADCASTSS(low.Addr, floor)
		perChannel(ctx, streams, n[0], n[1], func(offset reg.GPVirtual) {
			x, b := ctx.YMM(), ctx.YMM()
			ctx.VMOVUPS(indexed(streams[1], offset), x)
			ctx.VMOVUPS(indexed(p[3], offset), b)
			ctx.VFMADD231PS(indexed(p[2], offset), x, b)
			if skips {
				ctx.VADDPS(indexed(streams[2], offset), b, b)
			}
			ctx.VMAXPS(b, floor, b) // keeps NaN
			ctx.VMOVUPS(b, indexed(streams[0], offset))
		})
	}
}

// combine generates dst ← x·a + y·b + c.
func combine(ctx *build.Context) {
	begin(ctx, "combineAVX2", "(dst, x, y, a, b, c *float32, rows, vectors int)")
	p := params(ctx, "dst", "x", "y", "a", "b", "c")
	n := params(ctx, "rows", "vectors")
	perChannel(ctx, p[:3], n[0], n[1], func(offset reg.GPVirtual) {
		x, y, c := ctx.YMM(), ctx.YMM(), ctx.YMM()
		ctx.VMOVUPS(indexed(p[1], offset), x)
		ctx.VMOVUPS(indexed(p[2], offset), y)
		ctx.VMOVUPS(indexed(p[5], offset), c)
		ctx.VFMADD231PS(indexed(p[4], offset), y, c)
		ctx.VFMADD231PS(indexed(p[3], offset), x, c)
		ctx.VMOVUPS(c, indexed(p[0], offset))
	})
}

// pool generates the maximum of 2×2 windows of two image rows, pixels windows.
func pool(ctx *build.Context) {
	begin(ctx, "poolAVX2", "(dst, upper, lower *float32, pixels, vectors int)")
	p := params(ctx, "dst", "upper", "lower")
	n := params(ctx, "pixels", "vectors")
	right := rightOf(ctx, p[1:3], n[1])
	moving := append(append([]reg.GPVirtual{p[0]}, p[1:3]...), append(p[1:3:3], append(right, right...)...)...)
	perChannel(ctx, moving, n[0], n[1], func(offset reg.GPVirtual) {
		top, low := ctx.YMM(), ctx.YMM()
		ctx.VMOVUPS(indexed(p[1], offset), top)
		ctx.VMAXPS(indexed(right[0], offset), top, top)
		ctx.VMOVUPS(indexed(p[2], offset), low)
		ctx.VMAXPS(indexed(right[1], offset), low, low)
		ctx.VMAXPS(low, top, top)
		ctx.VMOVUPS(top, indexed(p[0], offset))
	})
}

// rightOf makes pointers one pixel on.
func rightOf(ctx *build.Context, left []reg.GPVirtual, vectors reg.GPVirtual) []reg.GPVirtual {
	width := ctx.GP64()
	ctx.MOVQ(vectors, width)
	ctx.SHLQ(operand.U8(5), width)
	var out []reg.GPVirtual
	for _, l := range left {
		r := ctx.GP64()
		ctx.LEAQ(operand.Mem{Base: l, Index: width, Scale: 1}, r)
		out = append(out, r)
	}
	return out
}

// unpool generates the gradient of pool, optionally only where the maximum is
// above 0: for each window the first element equal to the maximum gets the
// slope. An image row holds both elements of a pair, so the left and right
// element are width bytes apart.
func unpool(ctx *build.Context) {
	begin(ctx, "unpoolAVX2", "(dstUpper, dstLower, upper, lower, out, slope *float32, pixels, vectors int, floor float32)")
	p := params(ctx, "dstUpper", "dstLower", "upper", "lower", "out", "slope")
	n := params(ctx, "pixels", "vectors")
	pixels, vectors := n[0], n[1]
	floor := ctx.YMM()
	low, _ := ctx.Param("floor").Resolve()
	ctx.VBROADCASTSS(low.Addr, floor)
	width := vectors
	ctx.SHLQ(operand.U8(5), width)
	ctx.Label("pixel")
	left := ctx.GP64()
	ctx.MOVQ(width, left)
	ctx.Label("vector")
	y, slope, taken, mask := ctx.YMM(), ctx.YMM(), ctx.YMM(), ctx.YMM()
	ctx.VMOVUPS(operand.Mem{Base: p[4]}, y)
	ctx.VCMPPS(operand.U8(1), y, floor, slope) // floor < y
	ctx.VANDPS(operand.Mem{Base: p[5]}, slope, slope)
	for i := range 4 {
		row := i / 2
		from, to := operand.Mem{Base: p[2+row]}, operand.Mem{Base: p[row]}
		if i%2 == 1 {
			from.Index, from.Scale, to.Index, to.Scale = width, 1, width, 1
		}
		ctx.VCMPPS(operand.U8(0), from, y, mask)
		if i == 0 {
			ctx.VMOVAPS(mask, taken)
			ctx.VANDPS(slope, mask, mask)
		} else {
			fresh := ctx.YMM()
			ctx.VANDNPS(mask, taken, fresh)
			ctx.VORPS(mask, taken, taken)
			ctx.VANDPS(slope, fresh, mask)
		}
		ctx.VMOVUPS(mask, to)
	}
	for _, r := range p {
		ctx.ADDQ(operand.U8(4*lanes), r)
	}
	ctx.SUBQ(operand.U8(4*lanes), left)
	ctx.JNZ(operand.LabelRef("vector"))
	for _, r := range p[:4] {
		ctx.ADDQ(width, r)
	}
	ctx.DECQ(pixels)
	ctx.JNZ(operand.LabelRef("pixel"))
	ctx.VZEROUPPER()
	ctx.RET()
}

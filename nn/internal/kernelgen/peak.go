package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// chains is how many independent sums a peak kernel keeps going, more than any
// CPU's multiply-add latency times its throughput. Each is 2·chains·lanes
// operations per round.
const chains = 12

// peaks generates loops of nothing but multiply-adds on registers.
func peaks(ctx *build.Context) {
	peak(ctx, "roundsAVX512", ctx.ZMM)
	peak(ctx, "roundsAVX2", ctx.YMM)
}

func peak(ctx *build.Context, name string, register func() reg.VecVirtual) {
	begin(ctx, name, "(count int, data *float32)")
	count := ctx.Load(ctx.Param("count"), ctx.GP64())
	data := ctx.Load(ctx.Param("data"), ctx.GP64())
	var sums []reg.VecVirtual
	for range chains {
		r := register()
		ctx.VXORPS(r.AsY(), r.AsY(), r.AsY())
		sums = append(sums, r)
	}
	x, y := register(), register()
	ctx.VMOVUPS(operand.Mem{Base: data}, x)
	ctx.VMOVUPS(operand.Mem{Base: data, Disp: 64}, y)
	ctx.Label("loop")
	for range 4 {
		for _, r := range sums {
			ctx.VFMADD231PS(x, y, r)
		}
	}
	ctx.DECQ(count)
	ctx.JNZ(operand.LabelRef("loop"))
	ctx.VZEROUPPER()
	ctx.RET()
}

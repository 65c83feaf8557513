// Package fmapeak measures how many multiply-adds one core of this machine can
// do, as the yardstick for benchmarks of the matrix kernels. Nothing else uses
// it.
package fmapeak

import "time"

// Peak measures, for some tens of milliseconds, the floating-point operations
// per second of a loop that does nothing but multiply-adds on registers. Take
// the largest of several calls. It is 0 on CPUs for which there is no such loop.
func Peak() (flops float64, instructions string) {
	rounds, lanes, name := best()
	if rounds == nil {
		return 0, name
	}
	// Numbers like those of a real product: a CPU may run faster on zeros.
	var data [32]float32
	for i := range data {
		data[i] = float32(i%7-3) * 1.2345678
	}
	const count = 20_000
	for range 5 {
		start := time.Now()
		rounds(count, &data[0])
		flops = max(flops, count*perRound*2*float64(lanes)/time.Since(start).Seconds())
	}
	return flops, name
}

// perRound is the number of vector multiply-adds in one round of a loop.
const perRound = 48

// Package fmapeak measures how many multiply-adds one core of this machine can
// do, as the yardstick for benchmarks of the matrix kernels. Nothing else uses
// it.
package fmapeak

import "time"

// Peak returns the most floating-point operations per second seen in several
// short runs of a loop that does nothing but multiply-adds on registers, and
// the instruction set that it used. It is 0 on CPUs without such a loop.
func Peak() (flops float64, name string) {
	rounds, lanes, name := best()
	if rounds == nil {
		return 0, name
	}
	const count = 200_000
	for range 20 {
		start := time.Now()
		rounds(count)
		flops = max(flops, count*perRound*2*float64(lanes)/time.Since(start).Seconds())
	}
	return flops, name
}

// perRound is the number of vector multiply-adds in one round of a loop.
const perRound = 48

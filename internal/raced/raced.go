// Package raced tells tests whether the race detector is on. It slows
// arithmetic tenfold and finds nothing in it: long comparisons of numbers take
// fewer cases then.
package raced

// Cases returns how many of n cases a test should take: a tenth under the race
// detector.
func Cases(n int) int {
	if Enabled {
		return max(1, n/10)
	}
	return n
}

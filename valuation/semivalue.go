package valuation

import (
	"fmt"
	"math"
)

// Semivalue returns Σ over S ∌ n of weight[|S|]·(v(S ∪ n) − v(S)) for every
// member n. There is one weight for every size from 0 to N−1.
//
// The sum takes N·2^(N−1) steps: the table is cut into tiles which fit into
// the processor's cache, and the weight of a coalition is looked up by its
// place within the tile.
func Semivalue(t Table, weight []float64) ([]float64, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	n := t.Members()
	if len(weight) != n {
		return nil, fmt.Errorf("%w: %d weights for %d members", ErrSettings, len(weight), n)
	}
	return semivalue(t, n, weight), nil
}

// tileBits is the logarithm of the tile length: 2^10 worths and as many
// weights take 16 KiB.
const tileBits = 10

func semivalue(t Table, n int, weight []float64) []float64 {
	low := min(n, tileBits)
	tile := 1 << low
	weights := tileWeights(weight, n, low)
	values := make([]float64, n)
	for start := 0; start < len(t); start += tile {
		outside := Coalition(start).Size()
		row := weights[outside*tile : (outside+1)*tile]
		here := t[start : start+tile]
		// Members within the tile: both coalitions of a pair are here.
		for i := range low {
			values[i] += pairs(here, row, 1<<i)
		}
		// Members outside it: the partner of each worth is in another tile.
		for i := low; i < n; i++ {
			if start>>i&1 == 0 {
				with := start | 1<<i
				values[i] += weighted(t[with:with+tile], here, row)
			}
		}
	}
	return values
}

// tileWeights returns, for every number k of members outside the tile, the
// weights of the tile's coalitions: weight[k + |j|] at place j. A coalition of
// all members joins nobody and weighs nothing.
func tileWeights(weight []float64, n, low int) []float64 {
	tile := 1 << low
	rows := make([]float64, (n-low+1)*tile)
	for k := range n - low + 1 {
		for j := range tile {
			if size := k + Coalition(j).Size(); size < n {
				rows[k*tile+j] = weight[size]
			}
		}
	}
	return rows
}

// pairs sums over the coalitions of a tile which lack the member whose bit is
// the stride.
func pairs(v, weight []float64, stride int) float64 {
	switch stride {
	case 1:
		return neighbours(v, weight)
	case 2:
		return seconds(v, weight)
	}
	sum := 0.0
	for b := 0; b < len(v); b += 2 * stride {
		sum += weighted(v[b+stride:b+2*stride], v[b:b+stride], weight[b:b+stride])
	}
	return sum
}

// neighbours is pairs with stride 1.
func neighbours(v, weight []float64) float64 {
	var s0, s1 float64
	weight = weight[:len(v)]
	for len(v) >= 4 && len(weight) >= 4 {
		s0 += weight[0] * (v[1] - v[0])
		s1 += weight[2] * (v[3] - v[2])
		v, weight = v[4:], weight[4:]
	}
	if len(v) == 2 {
		s0 += weight[0] * (v[1] - v[0])
	}
	return s0 + s1
}

// seconds is pairs with stride 2.
func seconds(v, weight []float64) float64 {
	var s0, s1 float64
	weight = weight[:len(v)]
	for len(v) >= 4 && len(weight) >= 4 {
		s0 += weight[0] * (v[2] - v[0])
		s1 += weight[1] * (v[3] - v[1])
		v, weight = v[4:], weight[4:]
	}
	return s0 + s1
}

// weighted returns Σ weight·(with − without), in four chains of sums which do
// not wait for each other.
func weighted(with, without, weight []float64) float64 {
	var s0, s1, s2, s3 float64
	for len(with) >= 4 && len(without) >= 4 && len(weight) >= 4 {
		s0 += weight[0] * (with[0] - without[0])
		s1 += weight[1] * (with[1] - without[1])
		s2 += weight[2] * (with[2] - without[2])
		s3 += weight[3] * (with[3] - without[3])
		with, without, weight = with[4:], without[4:], weight[4:]
	}
	for j := range with {
		s0 += weight[j] * (with[j] - without[j])
	}
	return (s0 + s1) + (s2 + s3)
}

// Shapley returns the Shapley values φ_n: the mean of the member's marginal
// contribution over all orders in which the members can arrive. They add up to
// v(N) − v(∅).
func Shapley(t Table) ([]float64, error) { return Beta(t, 1, 1) }

// Banzhaf returns the Banzhaf values: the mean marginal contribution over all
// coalitions of the others.
func Banzhaf(t Table) ([]float64, error) {
	return Semivalue(t, banzhafWeights(t.Members()))
}

func banzhafWeights(n int) []float64 {
	weight := make([]float64, max(0, n))
	for k := range weight {
		weight[k] = math.Ldexp(1, 1-n)
	}
	return weight
}

// Beta returns the Beta(α, β) Shapley values (Kwon & Zou 2022): the weight of a
// coalition of k others is B(k+β, N−1−k+α)/B(α, β). Beta(1, 1) is the Shapley
// value; a larger α puts more weight on small coalitions, a larger β on large
// ones.
func Beta(t Table, alpha, beta float64) ([]float64, error) {
	if !(alpha > 0 && beta > 0) || math.IsInf(alpha, 1) || math.IsInf(beta, 1) {
		return nil, fmt.Errorf("%w: Beta(%v, %v) needs positive numbers", ErrSettings, alpha, beta)
	}
	return Semivalue(t, betaWeights(t.Members(), alpha, beta))
}

// betaWeights starts from the weight of no others, a product of n−1 factors,
// and goes from size to size by the ratio of neighbouring beta functions.
func betaWeights(n int, alpha, beta float64) []float64 {
	weight := make([]float64, max(0, n))
	first := 1.0
	for j := range n - 1 {
		first *= (alpha + float64(j)) / (alpha + beta + float64(j))
	}
	for k := range weight {
		weight[k] = first
		first *= (beta + float64(k)) / (alpha + float64(n-2-k))
	}
	return weight
}

// LeaveOneOut returns v(N) − v(N ∖ n) for every member.
func LeaveOneOut(t Table) ([]float64, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	everyone := Everyone(t.Members())
	values := make([]float64, t.Members())
	for n := range values {
		values[n] = t[everyone] - t[everyone.Without(n)]
	}
	return values, nil
}

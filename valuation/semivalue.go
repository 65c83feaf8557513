package valuation

import (
	"fmt"
	"math"
)

// Semivalue returns Σ over S ∌ n of weight[|S|]·(v(S ∪ n) − v(S)) for every
// member n. There is one weight for every size from 0 to N−1.
//
// The sum has N·2^(N−1) terms: the table is cut into tiles which fit into the
// processor's cache, the weight of a coalition is looked up by its place
// within the tile, and members are taken in pairs, so that a worth once loaded
// serves two of them.
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
	rows := tileWeights(weight, n, low)
	row := func(outside int) []float64 { return rows[outside*tile : (outside+1)*tile] }
	values := make([]float64, n)
	for start := 0; start < len(t); start += tile {
		outside := Coalition(start).Size()
		at := func(bits int) []float64 { return t[start|bits : (start|bits)+tile] }
		// Members within the tile: all coalitions that differ are here.
		withinTile(at(0), row(outside), values[:low])
		// Members outside it, two at a time: four tiles differ.
		i := low
		for ; i+1 < n; i += 2 {
			if start>>i&3 == 0 {
				a, b := quads(at(0), at(1<<i), at(2<<i), at(3<<i), row(outside), row(outside+1))
				values[i] += a
				values[i+1] += b
			}
		}
		if i < n && start>>i&1 == 0 {
			values[i] += weighted(at(1<<i), at(0), row(outside))
		}
	}
	return values
}

// withinTile adds the marginal contributions of the members whose bits are
// within a tile, two members at a time.
func withinTile(v, weight, values []float64) {
	i := 0
	for ; i+1 < len(values); i += 2 {
		stride := 1 << i
		var a, b float64
		if stride == 1 {
			a, b = neighbours(v, weight)
		} else {
			for at := 0; at < len(v); at += 4 * stride {
				x, y := quads(v[at:at+stride], v[at+stride:at+2*stride], v[at+2*stride:at+3*stride], v[at+3*stride:at+4*stride],
					weight[at:at+stride], weight[at+stride:at+2*stride])
				a += x
				b += y
			}
		}
		values[i] += a
		values[i+1] += b
	}
	if i < len(values) { // an odd number: the last member's bit halves the tile
		half := len(v) / 2
		values[i] += weighted(v[half:], v[:half], weight[:half])
	}
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

// neighbours is quads for the two lowest members, whose coalitions lie side by
// side.
func neighbours(v, weight []float64) (a, b float64) {
	for len(v) >= 4 && len(weight) >= 4 {
		a += weight[0]*(v[1]-v[0]) + weight[1]*(v[3]-v[2])
		b += weight[0]*(v[2]-v[0]) + weight[1]*(v[3]-v[1])
		v, weight = v[4:], weight[4:]
	}
	return a, b
}

// quads sums the marginal contributions of two members, a and b, over
// coalitions with neither, a, b, and both of them. The coalitions of others
// weigh w; with one of the two besides, w1.
func quads(none, a, b, both, w, w1 []float64) (sumA, sumB float64) {
	var a0, a1, b0, b1 float64
	a, b, both, w, w1 = a[:len(none)], b[:len(none)], both[:len(none)], w[:len(none)], w1[:len(none)]
	for j := 0; j+1 < len(none); j += 2 {
		a0 += w[j]*(a[j]-none[j]) + w1[j]*(both[j]-b[j])
		b0 += w[j]*(b[j]-none[j]) + w1[j]*(both[j]-a[j])
		a1 += w[j+1]*(a[j+1]-none[j+1]) + w1[j+1]*(both[j+1]-b[j+1])
		b1 += w[j+1]*(b[j+1]-none[j+1]) + w1[j+1]*(both[j+1]-a[j+1])
	}
	return a0 + a1, b0 + b1
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

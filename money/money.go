// Package money splits amounts exactly. An amount is a whole number of minor
// units, such as cents; the parts of a split add up to the whole, to the unit.
package money

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
)

var (
	// ErrShares is returned for shares that say nothing about who gets what.
	ErrShares = errors.New("money: shares cannot be split by")
	// ErrRange is returned when a part does not fit into an int64.
	ErrRange = errors.New("money: part out of range")
)

// Split divides total minor units in proportion to the shares, by largest
// remainder (Hamilton): everyone gets their quota rounded down, and the units
// left over go one each to the largest fractions, of equal ones to those who
// come first. The arithmetic is exact: each share counts for precisely the
// number that its float64 is.
//
// Shares need not add up to one. Some may be negative, as raw indices are,
// as long as the sum is positive: then a member may owe, and others get more
// than the total. When all shares are zero the total is split equally. A
// negative total, a loss, is split the same way.
func Split(total int64, shares []float64) ([]int64, error) {
	if len(shares) == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrShares)
	}
	weights, sum, err := exact(shares)
	if err != nil {
		return nil, err
	}
	parts := make([]int64, len(shares))
	fraction := make([]*big.Int, len(shares)) // of the quota, times the sum
	left := total
	amount := big.NewInt(total)
	for n, w := range weights {
		// Euclidean division rounds down, as sum is positive.
		quota, rest := new(big.Int).DivMod(new(big.Int).Mul(amount, w), sum, new(big.Int))
		if !quota.IsInt64() || quota.Int64() == math.MaxInt64 {
			return nil, fmt.Errorf("%w: member %d would get %v", ErrRange, n, quota)
		}
		parts[n], fraction[n] = quota.Int64(), rest
		left -= parts[n] // wraps, and comes back: what is left is less than len(shares)
	}
	order := make([]int, len(shares))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return fraction[b].Cmp(fraction[a]) })
	for _, n := range order[:left] {
		parts[n]++
	}
	return parts, nil
}

// exact returns the shares as integers over a common denominator, and their
// sum. Shares that are all zero become all one.
func exact(shares []float64) (weights []*big.Int, sum *big.Int, err error) {
	exponent, zero := math.MaxInt, true
	for n, s := range shares {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return nil, nil, fmt.Errorf("%w: share %d is %v", ErrShares, n, s)
		}
		if s != 0 {
			zero = false
			_, e := math.Frexp(s)
			exponent = min(exponent, e-53)
		}
	}
	sum = new(big.Int)
	for _, s := range shares {
		weight := big.NewInt(1)
		if !zero {
			mantissa, e := math.Frexp(s)
			weight.SetInt64(int64(math.Ldexp(mantissa, 53)))
			if s != 0 {
				weight.Lsh(weight, uint(e-53-exponent))
			}
		}
		weights = append(weights, weight)
		sum.Add(sum, weight)
	}
	if sum.Sign() <= 0 {
		return nil, nil, fmt.Errorf("%w: they add up to %v, and must to more than zero", ErrShares, sumOf(shares))
	}
	return weights, sum, nil
}

func sumOf(shares []float64) float64 {
	sum := 0.0
	for _, s := range shares {
		sum += s
	}
	return sum
}

package money_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"grange/money"
)

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		total  int64
		shares []float64
		want   []int64
	}{
		{100, []float64{1, 1, 1}, []int64{34, 33, 33}},
		{100, []float64{0, 0, 0}, []int64{34, 33, 33}},
		{-100, []float64{1, 1, 1}, []int64{-33, -33, -34}},
		{10, []float64{0.25, 0.25, 0.5}, []int64{3, 2, 5}},
		{5, []float64{0, 1, 0}, []int64{0, 5, 0}},
		{1, []float64{0.2, 0.5, 0.3}, []int64{0, 1, 0}},
		{100, []float64{1.5, -0.5}, []int64{150, -50}},
		{0, []float64{3, 4}, []int64{0, 0}},
		{math.MaxInt64 - 1, []float64{1}, []int64{math.MaxInt64 - 1}},
		{1000, []float64{1e300, 1e-300}, []int64{1000, 0}},
		{7, []float64{5e-324, 5e-324}, []int64{4, 3}},
	} {
		got, err := money.Split(test.total, test.shares)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%d by %v is %v, %v; want %v", test.total, test.shares, got, err, test.want)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, test := range []struct {
		total  int64
		shares []float64
		want   error
	}{
		{1, nil, money.ErrShares},
		{1, []float64{math.NaN(), 1}, money.ErrShares},
		{1, []float64{math.Inf(1), 1}, money.ErrShares},
		{1, []float64{1, -1}, money.ErrShares},
		{1, []float64{1, -2}, money.ErrShares},
		{math.MaxInt64 / 2, []float64{1, -0.9}, money.ErrRange},
	} {
		if parts, err := money.Split(test.total, test.shares); !errors.Is(err, test.want) {
			t.Errorf("%d by %v gives %v, %v; want %v", test.total, test.shares, parts, err, test.want)
		}
	}
}

// The parts add up, nobody is more than one unit from the exact quota, and a
// larger share never gets less.
func TestSplitIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(-1e15, 1e15).Draw(t, "total")
		shares := rapid.SliceOfN(rapid.Float64Range(-0.2, 1), 1, 40).Draw(t, "shares")
		sum := new(big.Rat)
		for _, s := range shares {
			sum.Add(sum, new(big.Rat).SetFloat64(s))
		}
		parts, err := money.Split(total, shares)
		if err != nil {
			if sum.Sign() > 0 && !errors.Is(err, money.ErrRange) {
				t.Fatal(err)
			}
			return
		}
		added := int64(0)
		for n, part := range parts {
			added += part
			if sum.Sign() == 0 {
				continue
			}
			quota := new(big.Rat).SetFloat64(shares[n])
			quota.Mul(quota, new(big.Rat).SetInt64(total)).Quo(quota, sum)
			off := quota.Sub(quota, new(big.Rat).SetInt64(part))
			if off.Abs(off).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Errorf("member %d gets %d, a unit or more from the quota", n, part)
			}
			for m, other := range parts {
				if total > 0 && shares[n] > shares[m] && part < other {
					t.Errorf("member %d has the larger share and gets %d, member %d %d", n, part, m, other)
				}
			}
		}
		if added != total {
			t.Errorf("%d was split, the parts add up to %d", total, added)
		}
	})
}

func ExampleSplit() {
	parts, err := money.Split(10000, []float64{0.5, 0.3, 0.1, 0.1 / 3})
	fmt.Println(parts, err)
	// Output: [5357 3214 1072 357] <nil>
}

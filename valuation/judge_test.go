package valuation_test

import (
	"math"
	"testing"

	"grange/valuation"
)

func TestJudge(t *testing.T) {
	truth := []float64{3, 1, 4}
	shares := []float64{0.375, 0.125, 0.5}
	for _, test := range []struct {
		name           string
		values, shares []float64
		want           valuation.Judgement
	}{
		{"same", truth, shares, valuation.Judgement{Ranks: 1}},
		{"opposite", []float64{-3, -1, -4}, []float64{0, 0, 1}, valuation.Judgement{Error: 2 * math.Sqrt(26.0/3), Share: 0.5, Shares: 1.0 / 3, Ranks: -1}},
		{"one pair swapped", []float64{4, 1, 3}, []float64{0.5, 0.125, 0.375}, valuation.Judgement{Error: math.Sqrt(2.0 / 3), Share: 0.125, Shares: 0.25 / 3, Ranks: 1.0 / 3}},
		{"all alike", []float64{2, 2, 2}, []float64{0.25, 0.25, 0.5}, valuation.Judgement{Error: math.Sqrt(2), Share: 0.125, Shares: 0.25 / 3, Ranks: 0}},
	} {
		got := valuation.Judge(test.values, test.shares, truth, shares)
		for what, off := range map[string]float64{
			"error": got.Error - test.want.Error, "share": got.Share - test.want.Share,
			"shares": got.Shares - test.want.Shares, "ranks": got.Ranks - test.want.Ranks,
		} {
			if math.Abs(off) > 1e-12 {
				t.Errorf("%s: %s is off by %v: %+v", test.name, what, off, got)
			}
		}
	}
	for _, test := range []struct {
		name          string
		values, truth []float64
		want          float64
	}{
		{"ties against themselves", []float64{1, 1, 2, 2}, []float64{1, 1, 2, 2}, 1},
		{"ties but for rounding", []float64{0.3, 0.1 + 0.2, 2}, []float64{1, 1, 2}, 1},
		{"all alike on both sides", []float64{1, 1, 1}, []float64{2, 2, 2}, 1},
		{"one tie broken", []float64{1, 1, 2}, []float64{1, 1.5, 2}, 2 / math.Sqrt(6)},
	} {
		got := valuation.Judge(test.values, make([]float64, 4), test.truth, make([]float64, 4))
		if math.Abs(got.Ranks-test.want) > 1e-12 {
			t.Errorf("%s: τ is %v, want %v", test.name, got.Ranks, test.want)
		}
	}
	if one := valuation.Judge([]float64{1}, []float64{1}, []float64{1}, []float64{1}); one != (valuation.Judgement{}) {
		t.Errorf("a single member: %+v", one)
	}
}

package valuation

import "math"

// Judgement is how far values are from the truth about the same members.
type Judgement struct {
	Error  float64 // of the values: root mean square over members
	Share  float64 // of the shares: the largest of any member
	Shares float64 // of the shares: the mean over members
	Ranks  float64 // Kendall's τ-b between the values: 1 for the same order, −1 for the opposite
}

// Judge compares values and the shares by them with the true ones. Values that
// differ by rounding only are ties; Kendall's τ is τ-b, which takes account of
// them. Where all values of one side tie there is no order to agree with, and τ
// is 0 unless all of the other side tie as well.
func Judge(values, shares, truth, trueShares []float64) Judgement {
	var j Judgement
	n := float64(len(values))
	agree, ordered, trulyOrdered, pairs := 0.0, 0.0, 0.0, 0
	rounding, trueRounding := rounding(values), rounding(truth)
	for i, v := range values {
		j.Error += (v - truth[i]) * (v - truth[i]) / n
		off := math.Abs(shares[i] - trueShares[i])
		j.Share = max(j.Share, off)
		j.Shares += off / n
		for k := range i {
			way, trueWay := sign(v-values[k], rounding), sign(truth[i]-truth[k], trueRounding)
			pairs++
			agree += way * trueWay
			ordered += way * way
			trulyOrdered += trueWay * trueWay
		}
	}
	j.Error = math.Sqrt(j.Error)
	switch {
	case ordered > 0 && trulyOrdered > 0:
		j.Ranks = agree / math.Sqrt(ordered*trulyOrdered)
	case pairs > 0 && ordered == trulyOrdered:
		j.Ranks = 1
	}
	return j
}

// rounding is how far apart values may be that would be equal but for rounding.
func rounding(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = max(most, math.Abs(v))
	}
	return 1e-12 * most
}

// sign is that of x, and 0 where x is no more than rounding.
func sign(x, rounding float64) float64 {
	switch {
	case x > rounding:
		return 1
	case x < -rounding:
		return -1
	}
	return 0
}

package valuation

import "math"

// Judgement is how far values are from the truth about the same members.
type Judgement struct {
	Error  float64 // of the values: root mean square over members
	Share  float64 // of the shares: the largest of any member
	Shares float64 // of the shares: the mean over members
	Ranks  float64 // Kendall's τ between the values: 1 for the same order, −1 for the opposite
}

// Judge compares values and the shares by them with the true ones.
func Judge(values, shares, truth, trueShares []float64) Judgement {
	var j Judgement
	n := float64(len(values))
	agree, pairs := 0.0, 0.0
	for i, v := range values {
		j.Error += (v - truth[i]) * (v - truth[i]) / n
		off := math.Abs(shares[i] - trueShares[i])
		j.Share = max(j.Share, off)
		j.Shares += off / n
		for k := range i {
			pairs++
			agree += sign(v-values[k]) * sign(truth[i]-truth[k])
		}
	}
	j.Error = math.Sqrt(j.Error)
	if pairs > 0 {
		j.Ranks = agree / pairs
	}
	return j
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

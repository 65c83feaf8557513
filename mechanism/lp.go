package mechanism

import (
	"grange/game"
	"grange/interval"
)

// LP is linearly proportional sharing: I_n = (1 − ε_n)·s_n, the correctly
// labelled points a member brings (eq. 2 of the paper).
type LP struct{}

// Name returns "LP".
func (LP) Name() string { return "LP" }

// Indices returns (1 − ε_n)·s_n.
func (LP) Indices(g *game.Game, s game.Profile) ([]float64, error) {
	indices := make([]float64, len(s))
	for n, x := range s {
		indices[n] = (1 - g.Members[n].Noise) * float64(x)
	}
	return indices, nil
}

// Deviate needs one number of the others: Σ (1 − ε)·s.
func (LP) Deviate(g *game.Game, s game.Profile, n int, rest game.Rest) (Deviation, error) {
	return proportional{
		weight: 1 - g.Members[n].Noise,
		rest:   rest.Total - rest.Wrong,
		equal:  1 / float64(len(s)),
	}, nil
}

// proportional is the share w·x/(rest + w·x).
type proportional struct{ weight, rest, equal float64 }

func (d proportional) Share(x int64) float64 {
	own := d.weight * float64(x)
	if own+d.rest == 0 {
		return d.equal
	}
	return own / (d.rest + own)
}

// Bound uses that the share and its derivatives are monotone in x:
// g′ = w·rest/(rest + wx)², g″ = −2w·g′/(rest + wx).
func (d proportional) Bound(lo, hi int64) interval.Jet {
	a := 1 / (d.rest + d.weight*float64(lo))
	b := 1 / (d.rest + d.weight*float64(hi))
	slopeA, slopeB := d.weight*d.rest*a*a, d.weight*d.rest*b*b
	return interval.Jet{
		Value:  interval.Of(d.Share(lo), d.Share(hi)),
		Slope:  interval.Of(slopeA, slopeB),
		Second: interval.Of(-2*d.weight*slopeA*a, -2*d.weight*slopeB*b),
	}
}

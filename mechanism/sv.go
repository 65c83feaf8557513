package mechanism

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"grange/curve"
	"grange/game"
)

// ErrShapley is returned where the Shapley value can be computed neither by
// enumerating coalitions nor by quadrature.
var ErrShapley = errors.New("mechanism: the Shapley value of this game cannot be computed exactly")

const (
	// EnumerationLimit is the largest number of contributing members whose
	// Shapley value is computed by enumerating coalitions.
	EnumerationLimit = 20
	// searchLimit is the largest number for which a best response enumerates
	// coalitions at every candidate; above it the candidates are compared by
	// quadrature, which agrees to about 1e-12.
	searchLimit = 12
)

// SV is the Shapley value of the accuracy over coalitions (eq. 4 of the
// paper): exact by enumeration for up to 20 contributing members, by
// quadrature over a mixture of exponentials beyond.
type SV struct{}

// Name returns "SV".
func (SV) Name() string { return "SV" }

// Indices returns the Shapley values. A member without data is a null player
// and gets zero.
func (m SV) Indices(g *game.Game, s game.Profile) ([]float64, error) {
	indices, _, err := m.Values(g, s)
	return indices, err
}

// Values returns the Shapley values and a bound on their absolute error, zero
// where they were enumerated. Values that are all within that error of zero
// are zero.
func (SV) Values(g *game.Game, s game.Profile) (values []float64, errorBound float64, err error) {
	var who []int
	var held []holding
	for n, x := range s {
		if x > 0 {
			who = append(who, n)
			held = append(held, holding{points: float64(x), noise: g.Members[n].Noise})
		}
	}
	var found []float64
	if len(held) <= EnumerationLimit {
		found = enumerateShapley(&g.Accuracy, held)
	} else {
		mixture, err := mixtureOf(&g.Accuracy, held)
		if err != nil {
			return nil, 0, err
		}
		found, errorBound = integrateShapley(&g.Accuracy, mixture, held)
		if !slices.ContainsFunc(found, func(v float64) bool { return math.Abs(v) > errorBound }) {
			clear(found)
		}
	}
	values = make([]float64, len(s))
	for i, n := range who {
		values[n] = found[i]
	}
	return values, errorBound, nil
}

// Deviate follows member n by enumeration or by quadrature.
func (m SV) Deviate(g *game.Game, s game.Profile, n int, rest game.Rest) (Deviation, error) {
	var others []holding
	for i, x := range s {
		if i != n && x > 0 {
			others = append(others, holding{points: float64(x), noise: g.Members[i].Noise})
		}
	}
	definition := newPlain(m, g, s, n)
	if len(others) < searchLimit {
		return newCoalitionDeviation(g, others, n, definition), nil
	}
	limit := g.Members[n]
	mixture, err := mixtureOf(&g.Accuracy, append(others, holding{points: 1, noise: limit.Noise}, holding{points: float64(limit.Capacity), noise: limit.Noise}))
	if err != nil {
		if len(others) < EnumerationLimit {
			return newCoalitionDeviation(g, others, n, definition), nil
		}
		return nil, err
	}
	return newMixtureDeviation(g, mixture, others, n, rest, definition), nil
}

// mixtureOf returns the accuracy as a mixture of exponentials, which needs a
// form that is one and no clamp within reach of any coalition.
func mixtureOf(a *game.Accuracy, held []holding) (curve.Mixture, error) {
	mixed, ok := a.Clean.(curve.Mixed)
	if !ok || a.Formula != nil {
		return curve.Mixture{}, fmt.Errorf("%w: more than %d members contribute and the accuracy is an expression", ErrShapley, EnumerationLimit)
	}
	mixture, ok := mixed.Mixture()
	if !ok {
		return curve.Mixture{}, fmt.Errorf("%w: more than %d members contribute and the accuracy curve is not finite without data", ErrShapley, EnumerationLimit)
	}
	least, total, noise := held[0].points, 0.0, 0.0
	for _, h := range held {
		least = min(least, h.points)
		noise = max(noise, h.noise)
		total += h.points
	}
	reach := a.Reach(game.Rest{}, 0, least, total)
	clean, cost := reach.Clean().Value, a.Gamma*noise
	if clean.Lo-max(0, cost) <= a.Floor || clean.Hi-min(0, cost) >= a.Ceiling {
		return curve.Mixture{}, fmt.Errorf("%w: more than %d members contribute and the floor or ceiling of the accuracy is within reach", ErrShapley, EnumerationLimit)
	}
	return mixture, nil
}

package lab

import (
	"context"

	"grange/curve"
)

// Region says where in the plane of β1 and γ each of O2 to O5 holds. O5 is
// judged by the fitted curve: nothing is trained for the map.
type Region struct {
	Betas  []float64 // β1
	Gammas []float64 // γ
	// Findings[claim][row of Gammas][column of Betas].
	Findings map[string][][]Finding
	Cycles   [][]int // games of the 44 in which Algorithm 1 went round
	Beta     int     // column of the setting used; -1 where the map has none
	Gamma    int     // row of the fitted γ; -1 where the map has none
}

// RegionClaims are the claims of the map.
var RegionClaims = []string{"O2", "O3", "O4", "O5"}

// Default factors of the map: β1 from a quarter of the setting used to eight
// times it, γ from none to one and a half times the fitted one.
var (
	betaFactors  = []float64{0.25, 0.5, 2.0 / 3, 1, 1.5, 8.0 / 3, 4, 8}
	gammaFactors = []float64{0, 0.25, 0.5, 0.75, 1, 1.5}
)

// region solves both sweeps on a grid around the setting used.
func (s Scale) region(ctx context.Context, rules Rules, fit *curve.Fit, workers int) (*Region, error) {
	r := &Region{Findings: map[string][][]Finding{}, Beta: -1, Gamma: -1}
	betas, gammas := s.BetaFactors, s.GammaFactors
	if betas == nil {
		betas = betaFactors
	}
	if gammas == nil {
		gammas = gammaFactors
	}
	for i, factor := range betas {
		r.Betas = append(r.Betas, factor*s.Beta)
		if factor == 1 {
			r.Beta = i
		}
	}
	for i, factor := range gammas {
		r.Gammas = append(r.Gammas, factor*fit.Gamma.Value)
		if factor == 1 {
			r.Gamma = i
		}
	}
	rows, columns := len(r.Gammas), len(r.Betas)
	for _, claim := range RegionClaims {
		r.Findings[claim] = make([][]Finding, rows)
		for i := range rows {
			r.Findings[claim][i] = make([]Finding, columns)
		}
	}
	r.Cycles = make([][]int, rows)
	for i := range rows {
		r.Cycles[i] = make([]int, columns)
	}
	errs := make([]error, rows*columns)
	each(workers, rows*columns, func(k int) {
		row, column := k/columns, k%columns
		settings, err := s.solveSweeps(ctx, rules, fit.Clean, r.Gammas[row], r.Betas[column], 1)
		if err != nil {
			errs[k] = err
			return
		}
		names := mechanismNames(settings)
		r.Findings["O2"][row][column] = combine(falling(settings, Quality, names), better(settings, Quality, names))
		r.Findings["O3"][row][column] = combine(falling(settings, Privacy, names), better(settings, Privacy, names))
		r.Findings["O4"][row][column] = combine(rewards(settings)...)
		r.Findings["O5"][row][column] = combine(best(settings, "", predicted))
		for _, setting := range settings {
			for _, e := range setting.Equilibria {
				if !stable(&e) {
					r.Cycles[row][column]++
				}
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

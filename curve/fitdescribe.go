package curve

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// poorLackOfFit is the p-value of the lack-of-fit test under which a fit is
// doubted, when the misfit is also large enough to matter.
const (
	poorLackOfFit = 0.01
	materialRMSE  = 0.01
)

// describe turns an optimum into a Fit: natural parameters, standard errors,
// measures of fit and warnings.
func (p *problem) describe(s solution, f Fitter) *Fit {
	fit := &Fit{Form: p.shape.form, Points: p.points}
	linear := p.shape.linear
	natural := p.shape.natural(s.theta, s.coef[:linear], p.top)
	fit.Clean = p.shape.build(natural)
	errs := p.standardErrors(s)

	for i, name := range p.shape.names {
		fit.Parameters = append(fit.Parameters, Estimate{
			Name: name, Value: natural[i], StandardError: errs[i], Fixed: p.shape.fixed[i],
		})
	}
	fit.Gamma = Estimate{Name: "gamma", Fixed: "no point has wrong labels"}
	free := len(s.theta)
	for j, held := range s.held {
		switch {
		case !held:
			free++
		case j == linear:
		default:
			b := p.shape.binds[j]
			fit.Parameters[b.parameter].Fixed = b.reason
			fit.Parameters[b.parameter].StandardError = 0
		}
	}
	if p.gamma {
		fit.Gamma = Estimate{Name: "gamma", Value: s.coef[linear], StandardError: errs[len(errs)-1]}
		if s.held[linear] {
			fit.Gamma.Fixed = "at its bound 0: wrong labels did no measurable harm"
		}
	}

	p.measures(fit, s, free)
	p.warn(fit, s, f)
	return fit
}

// measures fills in residuals, R², AIC and the lack-of-fit test.
func (p *problem) measures(fit *Fit, s solution, free int) {
	n := len(p.points)
	var weights, mean, total float64
	for _, point := range p.points {
		weights += point.weight()
		mean += point.weight() * point.Accuracy
	}
	mean /= weights
	for _, point := range p.points {
		residual := point.Accuracy - fit.At(point.Total, point.WrongShare)
		fit.Residuals = append(fit.Residuals, residual)
		total += point.weight() * (point.Accuracy - mean) * (point.Accuracy - mean)
	}
	fit.RMSE = math.Sqrt(s.rss / weights)
	if total > 0 {
		fit.R2 = 1 - s.rss/total
	}
	fit.DegreesFree = n - free
	// The likelihood of normal errors with variance σ²/weight, σ estimated.
	// An exact fit would make it infinite, so σ is kept above rounding.
	k := float64(free + 1)
	logLikelihood := 0.0
	sigma2 := max(s.rss/float64(n), 1e-24)
	for _, point := range p.points {
		logLikelihood += 0.5 * math.Log(point.weight()/(2*math.Pi*sigma2))
	}
	logLikelihood -= s.rss / sigma2 / 2
	fit.AIC = 2*k - 2*logLikelihood
	fit.AICc = math.Inf(1)
	if rest := float64(n) - k - 1; rest > 0 {
		fit.AICc = fit.AIC + 2*k*(k+1)/rest
	}
	fit.LackOfFit = p.lackOfFit(s.rss, free)
}

// lackOfFit compares the residuals with the scatter between repeats.
func (p *problem) lackOfFit(rss float64, free int) float64 {
	type where struct{ total, wrong float64 }
	groups := map[where][]Point{}
	var order []where
	for _, point := range p.points {
		at := where{point.Total, point.WrongShare}
		if _, seen := groups[at]; !seen {
			order = append(order, at)
		}
		groups[at] = append(groups[at], point)
	}
	pure := 0.0
	for _, at := range order {
		var w, mean float64
		for _, point := range groups[at] {
			w += point.weight()
			mean += point.weight() * point.Accuracy
		}
		mean /= w
		for _, point := range groups[at] {
			pure += point.weight() * (point.Accuracy - mean) * (point.Accuracy - mean)
		}
	}
	pureFree, lackFree := len(p.points)-len(order), len(order)-free
	if pureFree <= 0 || lackFree <= 0 || pure <= 0 {
		return math.NaN()
	}
	ratio := (rss - pure) / float64(lackFree) / (pure / float64(pureFree))
	return 1 - distuv.F{D1: float64(lackFree), D2: float64(pureFree)}.CDF(max(ratio, 0))
}

// standardErrors returns one per natural parameter, then γ's: the inverse of
// the information of the linearised model carried to the natural parameters by
// the delta method. Coefficients held by a constraint count as known.
func (p *problem) standardErrors(s solution) []float64 {
	free := []int{} // indices into theta ++ coef
	for j := range s.theta {
		free = append(free, j)
	}
	for j, held := range s.held {
		if !held {
			free = append(free, len(s.theta)+j)
		}
	}
	joint := append(slices.Clone(s.theta), s.coef...)
	at := func(x []float64, point Point) float64 {
		row := make([]float64, p.columns())
		p.row(x[:len(s.theta)], point, row)
		sum := 0.0
		for j, b := range row {
			sum += b * x[len(s.theta)+j]
		}
		return sum
	}
	natural := func(x []float64) []float64 {
		theta, coef := x[:len(s.theta)], x[len(s.theta):]
		out := p.shape.natural(theta, coef[:p.shape.linear], p.top)
		if p.gamma {
			out = append(out, coef[p.shape.linear])
		}
		return out
	}
	size := len(natural(joint))
	errs := make([]float64, size)

	n := len(p.points)
	jacobian := mat.NewDense(n, len(free), nil)
	for i, point := range p.points {
		root := math.Sqrt(point.weight())
		for c, j := range free {
			jacobian.Set(i, c, root*derivative(joint, j, func(x []float64) float64 { return at(x, point) }))
		}
	}
	scales := make([]float64, len(free))
	for c := range free {
		scales[c] = mat.Norm(jacobian.ColView(c), 2)
		if scales[c] == 0 {
			scales[c] = 1
		}
		for i := range n {
			jacobian.Set(i, c, jacobian.At(i, c)/scales[c])
		}
	}
	var svd mat.SVD
	if n <= len(free) || !svd.Factorize(jacobian, mat.SVDThin) {
		return errs
	}
	var v mat.Dense
	svd.VTo(&v)
	values := svd.Values(nil)
	sigma := math.Sqrt(s.rss / float64(n-len(free)))
	for k := range size {
		variance := 0.0
		gradient := make([]float64, len(free))
		for c, j := range free {
			gradient[c] = derivative(joint, j, func(x []float64) float64 { return natural(x)[k] }) / scales[c]
		}
		for m, value := range values {
			dot := 0.0
			for c := range free {
				dot += v.At(c, m) * gradient[c]
			}
			if value < 1e-10*values[0] {
				if math.Abs(dot) > 1e-8 {
					variance = math.Inf(1)
				}
				continue
			}
			variance += dot * dot / (value * value)
		}
		errs[k] = sigma * math.Sqrt(variance)
	}
	return errs
}

// derivative is the central difference in coordinate j.
func derivative(x []float64, j int, f func([]float64) float64) float64 {
	h := 1e-6 * max(math.Abs(x[j]), 1e-6)
	y := slices.Clone(x)
	y[j] = x[j] + h
	up := f(y)
	y[j] = x[j] - h
	return (up - f(y)) / (2 * h)
}

func (p *problem) warn(fit *Fit, s solution, f Fitter) {
	least := f.MinR2
	if least == 0 {
		least = 0.95
	}
	if fit.R2 < least {
		fit.Warnings = append(fit.Warnings, fmt.Sprintf("poor fit: R² is %.3f, under %.2f", fit.R2, least))
	}
	if fit.LackOfFit < poorLackOfFit && fit.RMSE > materialRMSE {
		fit.Warnings = append(fit.Warnings, fmt.Sprintf(
			"the curve misses by more than the scatter between repeats explains (typical residual %.4f, p = %.2g)", fit.RMSE, fit.LackOfFit))
	}
	var loose []string
	for _, e := range append(slices.Clone(fit.Parameters), fit.Gamma) {
		if !e.Identified() {
			loose = append(loose, fmt.Sprintf("%s = %.3g ± %.3g", e.Name, e.Value, e.StandardError))
		}
	}
	if len(loose) > 0 {
		fit.Warnings = append(fit.Warnings, "not identified by these measurements: "+strings.Join(loose, ", "))
	}
	for j, t := range s.theta {
		margin := 1e-3 * (p.hi[j] - p.lo[j])
		if t < p.lo[j]+margin || t > p.hi[j]-margin {
			fit.Warnings = append(fit.Warnings, fmt.Sprintf(
				"the search for the shape of the %s curve ended at the edge of what the measured range can tell", fit.Form))
		}
	}
	for _, e := range append(slices.Clone(fit.Parameters), fit.Gamma) {
		if strings.HasPrefix(e.Fixed, "at its bound") {
			fit.Warnings = append(fit.Warnings, fmt.Sprintf("%s is %s", e.Name, e.Fixed))
		}
	}
}

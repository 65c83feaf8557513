package curve

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrTooFewPoints is returned when there are not enough measurements for the
// number of parameters.
var ErrTooFewPoints = errors.New("curve: too few points to fit")

// ErrForm is returned for a form that cannot be fitted.
var ErrForm = errors.New("curve: unknown form")

// Point is one measured accuracy: a model trained on Total points of which the
// share WrongShare carried a wrong label. The untrained model is the point with
// Total 0 and accuracy 1/C.
type Point struct {
	Total      float64 // S
	WrongShare float64 // R
	Accuracy   float64
	Weight     float64 // relative to the other points, like 1/variance; 0 means 1
}

func (p Point) weight() float64 {
	if p.Weight == 0 {
		return 1
	}
	return p.Weight
}

// Form names one of the curves of this package.
type Form string

const (
	FormLogLinear   Form = "loglinear"
	FormPower       Form = "power"
	FormExponential Form = "exponential"
)

// Forms returns every form that can be fitted.
func Forms() []Form { return []Form{FormLogLinear, FormPower, FormExponential} }

// Estimate is one fitted parameter.
type Estimate struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// StandardError is from the linearised model at the solution, 0 when the
	// parameter is Fixed.
	StandardError float64 `json:"standard_error"`
	// Fixed says why the parameter was not estimated: a normalisation or a
	// constraint of Assumption 1 that binds. Empty otherwise.
	Fixed string `json:"fixed,omitempty"`
}

// Identified reports whether the measurements determine the parameter at all:
// its standard error is not larger than its value.
func (e Estimate) Identified() bool {
	return e.Fixed != "" || e.StandardError <= math.Abs(e.Value)
}

// Fit is an accuracy curve fitted to measurements, A = clean(S) − γ·R.
type Fit struct {
	Form       Form
	Clean      interface{ At(total float64) float64 }
	Gamma      Estimate   // γ, what a wrong label costs
	Parameters []Estimate // of clean(S), in the order of the scenario file

	Points      []Point
	Residuals   []float64 // measured minus fitted, one per point
	RMSE        float64   // root mean square residual
	R2          float64   // share of the (weighted) variance explained
	AIC         float64
	AICc        float64 // AIC corrected for few points; +Inf when there are too few
	DegreesFree int     // points less free parameters
	// LackOfFit is the p-value of the F test of the residuals against the
	// scatter between repeats of the same point; NaN without repeats.
	LackOfFit float64
	Warnings  []string
}

// At returns the fitted accuracy.
func (f *Fit) At(total, wrongShare float64) float64 {
	return f.Clean.At(total) - f.Gamma.Value*wrongShare
}

// Fitter fits curves by weighted non-linear least squares. The zero value
// works.
//
// Given the parameters inside the logarithm, power or exponential, the model
// is linear in all others, γ included. The linear ones are solved for exactly
// (variable projection), so only one or two parameters are searched, from a
// grid of starts refined by Nelder–Mead. γ is estimated jointly with the
// curve, from clean, noisy and mixed points together: it is linear, so a
// second stage would only throw away what the mixed points say.
//
// Assumption 1 is imposed, not hoped for: the curve is increasing and concave
// on [0, Range] and γ ≥ 0. Within the linear step these are sign constraints,
// and the constrained optimum is found exactly by trying the sets of
// constraints that bind.
//
// Of the paper's α1·ln(α2·S + α3) + α4·S + α5 only α2/α3 and α5 + α1·ln α3 can
// be told from data: scaling α2 and α3 together is undone by α5. The fit fixes
// α3 = 1.
type Fitter struct {
	// Range is the largest S for which the curve must be increasing; default
	// the largest measured.
	Range float64
	// MinR2 is the R² under which a fit is called poor; default 0.95.
	MinR2 float64
}

// Fit fits one form.
func (f Fitter) Fit(form Form, points []Point) (*Fit, error) {
	shape, ok := shapes[form]
	if !ok {
		return nil, fmt.Errorf("%w %q, want one of %v", ErrForm, form, Forms())
	}
	if err := checkPoints(points); err != nil {
		return nil, err
	}
	p := newProblem(shape, f, points)
	if free := p.parameters(); len(p.points) <= free {
		return nil, fmt.Errorf("%w: %d points for the %d parameters of %s", ErrTooFewPoints, len(p.points), free, form)
	}
	solution, err := p.solve()
	if err != nil {
		return nil, err
	}
	return p.describe(solution, f), nil
}

// FitAll fits every form and returns the fits with the best, the one of
// smallest AICc, first. A form for which there are too few points is left out.
func (f Fitter) FitAll(points []Point) ([]*Fit, error) {
	var fits []*Fit
	var firstErr error
	for _, form := range Forms() {
		fit, err := f.Fit(form, points)
		switch {
		case err == nil:
			fits = append(fits, fit)
		case firstErr == nil:
			firstErr = err
		}
	}
	if len(fits) == 0 {
		return nil, firstErr
	}
	slices.SortStableFunc(fits, func(a, b *Fit) int {
		switch {
		case a.AICc < b.AICc:
			return -1
		case a.AICc > b.AICc:
			return 1
		}
		return 0
	})
	return fits, nil
}

func checkPoints(points []Point) error {
	totals := map[float64]bool{}
	for i, p := range points {
		for _, x := range []float64{p.Total, p.WrongShare, p.Accuracy, p.Weight} {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("curve: point %d has a number that is not finite: %+v", i, p)
			}
		}
		if p.Total < 0 || p.Weight < 0 || p.WrongShare < 0 || p.WrongShare > 1 {
			return fmt.Errorf("curve: point %d is out of range: %+v", i, p)
		}
		totals[p.Total] = true
	}
	if len(totals) < 3 {
		return fmt.Errorf("%w: %d different amounts of data, want at least 3", ErrTooFewPoints, len(totals))
	}
	return nil
}

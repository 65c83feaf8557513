package curve_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/integrate/quad"

	"grange/curve"
	"grange/game"
)

var curves = map[string]game.SmoothCurve{
	"loglinear":   curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}},
	"power":       curve.Power{A: 0.95, B: 2, C: 20, D: 0.7},
	"exponential": curve.Exponential{A: 0.9, B: 0.8, C: 0.001},
}

// TestDerivatives compares with finite differences.
func TestDerivatives(t *testing.T) {
	for name, c := range curves {
		for _, s := range []float64{10, 100, 2000, 30000} {
			value, slope, second := c.Derivatives(s)
			h := s * 1e-3
			wantSlope := fd.Derivative(c.At, s, &fd.Settings{Formula: fd.Central, Step: h})
			wantSecond := fd.Derivative(c.At, s, &fd.Settings{Formula: fd.Central2nd, Step: h})
			if value != c.At(s) || math.Abs(slope-wantSlope) > 1e-4*math.Abs(slope)+1e-12 || math.Abs(second-wantSecond) > 1e-3*math.Abs(second)+1e-12 {
				t.Errorf("%s at %v: %v %v %v, by differences %v %v", name, s, value, slope, second, wantSlope, wantSecond)
			}
		}
	}
}

// TestMixtureIsTheCurve integrates the mixture of exponentials and compares it
// with the curve it claims to be.
func TestMixtureIsTheCurve(t *testing.T) {
	for name, c := range curves {
		mixture, ok := c.(curve.Mixed).Mixture()
		if !ok {
			t.Fatalf("%s is no mixture", name)
		}
		part := mixture.Component
		for _, s := range []float64{1, 50, 4000} {
			sum := mixture.Linear * s
			if part.Rate > 0 {
				sum -= part.Weight * math.Expm1(-part.Rate*s)
			} else {
				sum += quad.Fixed(func(u float64) float64 {
					x := math.Exp(u)
					return -x * part.Density(x) * math.Expm1(-x*s)
				}, -40, math.Log(45*part.Cutoff), 400, quad.Legendre{}, 1)
			}
			if want := c.At(s) - c.At(0); math.Abs(sum-want) > 1e-9 {
				t.Errorf("%s: the mixture gains %v by S = %v, the curve %v", name, sum, s, want)
			}
		}
	}
}

func TestMixtureRefusesWhatItCannotBe(t *testing.T) {
	for _, c := range []curve.Mixed{
		curve.LogLinear{Alpha: [5]float64{0.1, 0.1, 0, 0, 0}},
		curve.Power{A: 1, B: 1, C: 0, D: 0.5},
		curve.Exponential{A: 1, B: 1, C: -1},
	} {
		if _, ok := c.Mixture(); ok {
			t.Errorf("%+v says it is a mixture", c)
		}
	}
}

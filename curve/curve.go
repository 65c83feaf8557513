// Package curve has the accuracy curves clean(S): how good a model becomes
// with S correctly labelled points. Each curve can be evaluated,
// differentiated, and written as a mixture of exponentials e^(−tS), which is what
// makes its Shapley value computable without sampling.
package curve

import "math"

// Component is one part of a mixture of exponentials: the curve contains
//
//	∫ Density(t)·(1 − e^(−tS)) dt   when Rate is 0, or
//	Weight·(1 − e^(−Rate·S))        otherwise.
type Component struct {
	Density func(t float64) float64 // weight of e^(−tS) in the integral over t > 0
	Order   float64                 // t·Density(t)·t behaves like t^Order as t → 0
	Cutoff  float64                 // Density decays like e^(−t/Cutoff)
	Rate    float64                 // a single exponential instead
	Weight  float64
}

// Mixture says that clean(S) = clean(0) + Linear·S + the component.
type Mixture struct {
	Linear    float64
	Component Component
}

// Mixed is a curve that is a mixture of exponentials. Its second result is
// false when the parameters do not allow it.
type Mixed interface {
	Mixture() (Mixture, bool)
}

// LogLinear is the paper's curve α1·ln(α2·S + α3) + α4·S + α5.
type LogLinear struct{ Alpha [5]float64 }

// At returns clean(S).
func (c LogLinear) At(s float64) float64 {
	a := &c.Alpha
	return a[0]*math.Log(a[1]*s+a[2]) + a[3]*s + a[4]
}

// Derivatives returns clean, clean′ and clean″ at S, NaN where there is no
// logarithm.
func (c LogLinear) Derivatives(s float64) (value, slope, second float64) {
	a := &c.Alpha
	y := a[1]*s + a[2]
	if y <= 0 {
		y = math.NaN()
	}
	relative := a[1] / y
	slope = a[0] * relative
	return a[0]*math.Log(y) + a[3]*s + a[4], slope + a[3], -slope * relative
}

// Mixture writes the logarithm by Frullani's integral:
// ln(1 + κS) = ∫ e^(−t/κ)·(1 − e^(−tS))/t dt with κ = α2/α3.
func (c LogLinear) Mixture() (Mixture, bool) {
	a := c.Alpha
	if !(a[1] > 0 && a[2] > 0) {
		return Mixture{}, false
	}
	kappa := a[1] / a[2]
	return Mixture{Linear: a[3], Component: Component{
		Density: func(t float64) float64 { return a[0] * math.Exp(-t/kappa) / t },
		Order:   1,
		Cutoff:  kappa,
	}}, true
}

// Power is a − b·(S + c)^(−d).
type Power struct{ A, B, C, D float64 }

// At returns clean(S).
func (c Power) At(s float64) float64 { return c.A - c.B*math.Pow(s+c.C, -c.D) }

// Derivatives returns clean, clean′ and clean″ at S, NaN from the pole at
// S = −c down.
func (c Power) Derivatives(s float64) (value, slope, second float64) {
	y := s + c.C
	if y <= 0 {
		y = math.NaN()
	}
	loss := c.B * math.Pow(y, -c.D)
	slope = c.D * loss / y
	return c.A - loss, slope, -(c.D + 1) * slope / y
}

// Mixture writes the power by the Gamma integral:
// (S + c)^(−d) = ∫ t^(d−1)·e^(−tc)·e^(−tS) dt / Γ(d).
func (c Power) Mixture() (Mixture, bool) {
	if !(c.C > 0 && c.D > 0) {
		return Mixture{}, false
	}
	logGamma, _ := math.Lgamma(c.D)
	return Mixture{Component: Component{
		Density: func(t float64) float64 {
			return c.B * math.Exp((c.D-1)*math.Log(t)-t*c.C-logGamma)
		},
		Order:  1 + c.D,
		Cutoff: 1 / c.C,
	}}, true
}

// Exponential is a − b·e^(−c·S).
type Exponential struct{ A, B, C float64 }

// At returns clean(S).
func (c Exponential) At(s float64) float64 { return c.A - c.B*math.Exp(-c.C*s) }

// Derivatives returns clean, clean′ and clean″ at S.
func (c Exponential) Derivatives(s float64) (value, slope, second float64) {
	loss := c.B * math.Exp(-c.C*s)
	return c.A - loss, c.C * loss, -c.C * c.C * loss
}

// Mixture is the exponential itself.
func (c Exponential) Mixture() (Mixture, bool) {
	return Mixture{Component: Component{Rate: c.C, Weight: c.B}}, c.C >= 0
}

// Func makes a curve of a plain function of S. It has no derivatives
// and no mixture.
type Func func(total float64) float64

// At returns clean(S).
func (f Func) At(total float64) float64 { return f(total) }

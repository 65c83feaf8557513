// Package curve has the accuracy curves clean(S): how good a model becomes
// with S correctly labelled points. Each curve can be evaluated, enclosed over
// an interval, and written as a mixture of exponentials e^(−tS), which is what
// makes its Shapley value computable without sampling.
package curve

import (
	"math"

	"grange/interval"
)

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

// Bound encloses the curve on [lo, hi]: the logarithm and each of its
// derivatives are monotone, so the ends enclose them.
func (c LogLinear) Bound(lo, hi float64) interval.Jet {
	a := &c.Alpha
	yl, yh := a[1]*lo+a[2], a[1]*hi+a[2]
	if !(yl > 0 && yh > 0) {
		return interval.Unknown
	}
	il, ih := a[1]/yl, a[1]/yh
	logarithm := interval.Jet{
		Value:  interval.Of(a[0]*math.Log(yl), a[0]*math.Log(yh)),
		Slope:  interval.Of(a[0]*il, a[0]*ih),
		Second: interval.Of(-a[0]*il*il, -a[0]*ih*ih),
	}
	logarithm.Value = logarithm.Value.Add(interval.Of(a[3]*lo, a[3]*hi)).Add(interval.Point(a[4]))
	logarithm.Slope = logarithm.Slope.Add(interval.Point(a[3]))
	return logarithm
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

// Bound encloses the curve on [lo, hi].
func (c Power) Bound(lo, hi float64) interval.Jet {
	yl, yh := lo+c.C, hi+c.C
	if !(yl > 0 && yh > 0) {
		return interval.Unknown
	}
	pl, ph := c.B*math.Pow(yl, -c.D), c.B*math.Pow(yh, -c.D)
	sl, sh := c.D*pl/yl, c.D*ph/yh
	return interval.Jet{
		Value:  interval.Of(c.A-pl, c.A-ph),
		Slope:  interval.Of(sl, sh),
		Second: interval.Of(-(c.D+1)*sl/yl, -(c.D+1)*sh/yh),
	}
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

// Bound encloses the curve on [lo, hi].
func (c Exponential) Bound(lo, hi float64) interval.Jet {
	el, eh := c.B*math.Exp(-c.C*lo), c.B*math.Exp(-c.C*hi)
	return interval.Jet{
		Value:  interval.Of(c.A-el, c.A-eh),
		Slope:  interval.Of(c.C*el, c.C*eh),
		Second: interval.Of(-c.C*c.C*el, -c.C*c.C*eh),
	}
}

// Mixture is the exponential itself.
func (c Exponential) Mixture() (Mixture, bool) {
	return Mixture{Component: Component{Rate: c.C, Weight: c.B}}, c.C >= 0
}

// Func makes a curve of a plain function of S. It can be neither bounded nor
// mixed.
type Func func(total float64) float64

// At returns clean(S).
func (f Func) At(total float64) float64 { return f(total) }

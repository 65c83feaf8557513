package game

import "grange/interval"

// Curve is clean(S), the accuracy of a model trained on S points with correct
// labels. Package curve has the forms.
type Curve interface {
	At(total float64) float64
}

// BoundedCurve is a Curve whose value and derivatives can be enclosed.
type BoundedCurve interface {
	Curve
	// Bound encloses the curve for S in [lo, hi].
	Bound(lo, hi float64) interval.Jet
}

// Accuracy is A(s, ε) = clean(S) − γ·R with R = Σ ε_n·s_n / S.
type Accuracy struct {
	Clean     Curve
	Gamma     float64 // γ: what a wrong label costs
	Untrained float64 // A of a coalition without data
	Floor     float64 // −Unbounded when there is none
	Ceiling   float64 // Unbounded when there is none
	// Formula, when set, replaces clean(S) − γ·R by a user's function of S
	// and R. It cannot be bounded, so every candidate is tried.
	Formula func(total, wrongShare float64) float64
}

// At returns the accuracy of S = total points of which wrong = Σ ε·s carry a
// wrong label.
func (a *Accuracy) At(total, wrong float64) float64 {
	if total == 0 {
		return a.Untrained
	}
	var v float64
	if a.Formula != nil {
		v = a.Formula(total, wrong/total)
	} else {
		v = a.Clean.At(total) - a.Gamma*(wrong/total)
	}
	// Not min and max: a NaN must survive.
	if v < a.Floor {
		return a.Floor
	}
	if v > a.Ceiling {
		return a.Ceiling
	}
	return v
}

// Bounded reports whether Bound knows anything.
func (a *Accuracy) Bounded() bool {
	_, ok := a.Clean.(BoundedCurve)
	return ok && a.Formula == nil
}

// Bound encloses A as one member with noise rate noise goes from lo to hi
// points while the others hold total points, wrong of them mislabelled. It
// needs total + lo > 0 and Bounded.
func (a *Accuracy) Bound(total, wrong, noise, lo, hi float64) interval.Jet {
	jet := a.Clean.(BoundedCurve).Bound(total+lo, total+hi)
	if a.Gamma != 0 {
		jet = jet.Sub(WrongShare(total, wrong, noise, lo, hi).Scale(a.Gamma))
	}
	if jet.Value.Lo < a.Floor || jet.Value.Hi > a.Ceiling {
		jet = jet.Clamp(a.Floor, a.Ceiling)
	}
	return jet
}

// WrongShare encloses R(x) = (wrong + noise·x)/(total + x) for x in [lo, hi].
// R is monotone in x, and so are its derivatives
// R′ = (noise·total − wrong)/(total + x)² and R″ = −2R′/(total + x): each is
// enclosed by its values at the ends.
func WrongShare(total, wrong, noise, lo, hi float64) interval.Jet {
	a, b := 1/(total+lo), 1/(total+hi)
	turn := noise*total - wrong
	slopeA, slopeB := turn*a*a, turn*b*b
	return interval.Jet{
		Value:  interval.Of((wrong+noise*lo)*a, (wrong+noise*hi)*b),
		Slope:  interval.Of(slopeA, slopeB),
		Second: interval.Of(-2*slopeA*a, -2*slopeB*b),
	}
}

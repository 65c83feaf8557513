package game

// Curve is clean(S), the accuracy of a model trained on S points with correct
// labels. Package curve has the forms.
type Curve interface {
	At(total float64) float64
}

// SmoothCurve is a Curve whose first and second derivative are monotone in S,
// and so are their differences over a fixed shift of S. (The logarithm, the
// power and the exponential are so, with a linear term too: their derivatives
// alternate in sign.) What is monotone is enclosed by its values at the ends.
// The curve itself may turn once: more data can make the paper's fit worse.
type SmoothCurve interface {
	Curve
	// Derivatives returns clean, clean′ and clean″ at S, NaN outside the range
	// of S in which they are monotone.
	Derivatives(total float64) (value, slope, second float64)
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

// Smooth reports whether Reach may be used.
func (a *Accuracy) Smooth() bool {
	_, ok := a.Clean.(SmoothCurve)
	return ok && a.Formula == nil
}

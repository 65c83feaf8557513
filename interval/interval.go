// Package interval encloses values and derivatives of smooth functions over
// an interval of their argument.
//
// An exact global maximiser must rule out candidates it never evaluates. It
// does so with enclosures: a Jet holds intervals that contain a function's
// value and its first two derivatives everywhere on [a, b]. From a Jet one
// reads whether the function can beat a known value, rises, falls, or is
// concave there.
//
// Arithmetic rounds to nearest, not outward. Callers that compare an enclosure
// with a computed value leave room for rounding (see equilibrium).
package interval

import "math"

// Interval is the closed interval [Lo, Hi]. An interval with a NaN end
// contains everything.
type Interval struct{ Lo, Hi float64 }

// Whole is the interval that contains every number.
var Whole = Interval{math.Inf(-1), math.Inf(1)}

// Point returns the interval that holds x alone.
func Point(x float64) Interval { return Interval{x, x} }

// Of returns the smallest interval that contains a and b, or Whole when
// either is NaN.
func Of(a, b float64) Interval {
	switch {
	case a <= b:
		return Interval{a, b}
	case b < a:
		return Interval{b, a}
	}
	return Whole
}

// Contains reports whether x lies in i.
func (i Interval) Contains(x float64) bool { return !(x < i.Lo || x > i.Hi) }

// Add returns the sum of two intervals.
func (i Interval) Add(j Interval) Interval { return sane(i.Lo+j.Lo, i.Hi+j.Hi) }

// Sub returns the difference of two intervals.
func (i Interval) Sub(j Interval) Interval { return sane(i.Lo-j.Hi, i.Hi-j.Lo) }

// Scale returns k·i.
func (i Interval) Scale(k float64) Interval {
	switch {
	case k == 0:
		return Interval{}
	case k < 0:
		return sane(k*i.Hi, k*i.Lo)
	}
	return sane(k*i.Lo, k*i.Hi)
}

// Mul returns the product of two intervals.
func (i Interval) Mul(j Interval) Interval {
	if i.Lo >= 0 && j.Lo >= 0 {
		return sane(i.Lo*j.Lo, i.Hi*j.Hi)
	}
	a, b, c, d := i.Lo*j.Lo, i.Lo*j.Hi, i.Hi*j.Lo, i.Hi*j.Hi
	return sane(min(a, b, c, d), max(a, b, c, d))
}

// Square returns the interval of squares.
func (i Interval) Square() Interval {
	a, b := i.Lo*i.Lo, i.Hi*i.Hi
	if i.Lo <= 0 && i.Hi >= 0 {
		return sane(0, max(a, b))
	}
	return sane(min(a, b), max(a, b))
}

// Inverse returns 1/i, or Whole when i contains zero.
func (i Interval) Inverse() Interval {
	if !(i.Lo > 0 || i.Hi < 0) {
		return Whole
	}
	return sane(1/i.Hi, 1/i.Lo)
}

// Hull returns the smallest interval that contains both.
func (i Interval) Hull(j Interval) Interval { return sane(min(i.Lo, j.Lo), max(i.Hi, j.Hi)) }

// Magnitude returns the largest absolute value in i.
func (i Interval) Magnitude() float64 { return max(math.Abs(i.Lo), math.Abs(i.Hi)) }

// Nearest returns the number in i that is nearest to zero.
func (i Interval) Nearest() float64 { return max(i.Lo, min(i.Hi, 0)) }

// sane turns an interval with a NaN end (∞−∞, 0·∞) into Whole and keeps an end
// that overflowed on its own side.
func sane(lo, hi float64) Interval {
	if lo != lo || hi != hi {
		return Whole
	}
	return Interval{min(lo, math.MaxFloat64), max(hi, -math.MaxFloat64)}
}

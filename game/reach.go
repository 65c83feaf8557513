package game

import "grange/interval"

// Reach encloses the accuracy of one coalition while one of its members goes
// from lo to hi points and the others stand still.
type Reach struct {
	accuracy *Accuracy
	lo, hi   derivatives  // of clean, at both ends
	width    float64      // hi − lo, in points
	share    interval.Jet // R
	inverse  [2]float64   // 1/S at both ends
}

type derivatives struct{ value, slope, second float64 }

// Reach prepares enclosures for a member with noise rate noise that goes from
// lo to hi points while the rest of the coalition is fixed. It needs
// rest.Total + lo > 0 and Smooth.
func (a *Accuracy) Reach(rest Rest, noise, lo, hi float64) Reach {
	r := Reach{accuracy: a, width: hi - lo, inverse: [2]float64{1 / (rest.Total + lo), 1 / (rest.Total + hi)}}
	curve := a.Clean.(SmoothCurve)
	r.lo.value, r.lo.slope, r.lo.second = curve.Derivatives(rest.Total + lo)
	r.hi.value, r.hi.slope, r.hi.second = curve.Derivatives(rest.Total + hi)
	if a.Gamma != 0 {
		r.share = wrongShare(rest, noise, lo, hi, r.inverse)
	}
	return r
}

// Clean encloses clean(S), without noise and clamps.
func (r *Reach) Clean() interval.Jet { return between(r.lo, r.hi, r.width) }

// Bound encloses A.
func (r *Reach) Bound() interval.Jet {
	jet := r.Clean()
	if r.accuracy.Gamma != 0 {
		jet = jet.Sub(r.share.Scale(r.accuracy.Gamma))
	}
	if jet.Value.Lo < r.accuracy.Floor || jet.Value.Hi > r.accuracy.Ceiling {
		jet = jet.Clamp(r.accuracy.Floor, r.accuracy.Ceiling)
	}
	return jet
}

// Gain encloses A(with) − A(without), where with is the coalition without
// joined by a member that holds points with noise rate noise. It is far
// tighter than the difference of the two enclosures: the gain in clean has
// monotone derivatives too, and the gain in R is
// points·(noise − R(with))/S(without).
func Gain(with, without *Reach, points, noise float64) interval.Jet {
	a := with.accuracy
	if a.Floor > -Unbounded || a.Ceiling < Unbounded {
		full, rest := with.Bound(), without.Bound()
		if a.clamped(full.Value) || a.clamped(rest.Value) {
			return full.Sub(rest)
		}
	}
	jet := between(with.lo.minus(without.lo), with.hi.minus(without.hi), with.width)
	if a.Gamma == 0 {
		return jet
	}
	p, q := without.inverse[0], without.inverse[1]
	weight := interval.Jet{
		Value:  interval.Interval{Lo: points * q, Hi: points * p},
		Slope:  interval.Interval{Lo: -points * p * p, Hi: -points * q * q},
		Second: interval.Interval{Lo: 2 * points * q * q * q, Hi: 2 * points * p * p * p},
	}
	gap := interval.Jet{
		Value:  interval.Interval{Lo: a.Gamma * (noise - with.share.Value.Hi), Hi: a.Gamma * (noise - with.share.Value.Lo)},
		Slope:  with.share.Slope.Scale(-a.Gamma),
		Second: with.share.Second.Scale(-a.Gamma),
	}
	return jet.Sub(gap.Mul(weight))
}

// clamped reports whether an enclosure touches the floor or the ceiling.
func (a *Accuracy) clamped(v interval.Interval) bool {
	return !(v.Lo > a.Floor && v.Hi < a.Ceiling)
}

// between encloses a function with monotone derivatives on an interval of the
// given width. Where its slope changes sign it turns once, and not beyond the
// point at which the tangents at both ends meet.
func between(lo, hi derivatives, width float64) interval.Jet {
	value := interval.Of(lo.value, hi.value)
	if lo.slope*hi.slope < 0 {
		meet := (hi.value - lo.value - hi.slope*width) / (lo.slope - hi.slope)
		value = value.Hull(interval.Point(lo.value + lo.slope*meet))
	}
	return interval.Jet{
		Value:  value,
		Slope:  interval.Of(lo.slope, hi.slope),
		Second: interval.Of(lo.second, hi.second),
	}
}

func (d derivatives) minus(e derivatives) derivatives {
	return derivatives{d.value - e.value, d.slope - e.slope, d.second - e.second}
}

// wrongShare encloses R(x) = (wrong + noise·x)/(total + x) for x in [lo, hi].
// R is monotone in x, and so are its derivatives
// R′ = (noise·total − wrong)/(total + x)² and R″ = −2R′/(total + x).
func wrongShare(rest Rest, noise, lo, hi float64, inverse [2]float64) interval.Jet {
	a, b := inverse[0], inverse[1]
	turn := noise*rest.Total - rest.Wrong
	slopeA, slopeB := turn*a*a, turn*b*b
	return interval.Jet{
		Value:  interval.Of((rest.Wrong+noise*lo)*a, (rest.Wrong+noise*hi)*b),
		Slope:  interval.Of(slopeA, slopeB),
		Second: interval.Of(-2*slopeA*a, -2*slopeB*b),
	}
}

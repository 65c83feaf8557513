package interval

import "math"

// Jet encloses a function and its first two derivatives on an interval.
type Jet struct {
	Value  Interval // f
	Slope  Interval // f′
	Second Interval // f″
}

// Constant returns the jet of a constant function.
func Constant(c float64) Jet { return Jet{Value: Point(c)} }

// Variable returns the jet of f(x) = x on [a, b].
func Variable(a, b float64) Jet {
	return Jet{Value: Interval{a, b}, Slope: Point(1)}
}

// Unknown is the jet about which nothing is known.
var Unknown = Jet{Whole, Whole, Whole}

// Add returns the jet of f + g.
func (f Jet) Add(g Jet) Jet {
	return Jet{f.Value.Add(g.Value), f.Slope.Add(g.Slope), f.Second.Add(g.Second)}
}

// Sub returns the jet of f − g.
func (f Jet) Sub(g Jet) Jet {
	return Jet{f.Value.Sub(g.Value), f.Slope.Sub(g.Slope), f.Second.Sub(g.Second)}
}

// Scale returns the jet of k·f.
func (f Jet) Scale(k float64) Jet {
	return Jet{f.Value.Scale(k), f.Slope.Scale(k), f.Second.Scale(k)}
}

// Shift returns the jet of f + c.
func (f Jet) Shift(c float64) Jet {
	f.Value = f.Value.Add(Point(c))
	return f
}

// Mul returns the jet of f·g: (fg)″ = f″g + 2f′g′ + fg″.
func (f Jet) Mul(g Jet) Jet {
	return Jet{
		Value: f.Value.Mul(g.Value),
		Slope: f.Slope.Mul(g.Value).Add(f.Value.Mul(g.Slope)),
		Second: f.Second.Mul(g.Value).
			Add(f.Slope.Mul(g.Slope).Scale(2)).
			Add(f.Value.Mul(g.Second)),
	}
}

// Div returns the jet of f/g, unknown where g may vanish. With the quotient
// v = f/g: v′ = (f′ − v·g′)/g and v″ = (f″ − 2v′g′ − v·g″)/g.
func (f Jet) Div(g Jet) Jet {
	inverse := g.Value.Inverse()
	if inverse == Whole {
		return Unknown
	}
	value := f.Value.Mul(inverse)
	slope := f.Slope.Sub(value.Mul(g.Slope)).Mul(inverse)
	second := f.Second.Sub(slope.Mul(g.Slope).Scale(2)).Sub(value.Mul(g.Second)).Mul(inverse)
	return Jet{value, slope, second}
}

// PositivePart returns the jet of max(f, 0). Where f may change sign the
// function has a convex kink there, so its second derivative has no upper
// bound.
func (f Jet) PositivePart() Jet {
	switch {
	case f.Value.Lo >= 0:
		return f
	case f.Value.Hi <= 0:
		return Jet{}
	}
	return Jet{
		Value:  Interval{0, f.Value.Hi},
		Slope:  f.Slope.Hull(Interval{}),
		Second: Interval{min(f.Second.Lo, 0), math.Inf(1)},
	}
}

// Clamp returns the jet of f held between floor and ceiling.
func (f Jet) Clamp(floor, ceiling float64) Jet {
	if f.Value.Lo < floor {
		f = f.Shift(-floor).PositivePart().Shift(floor)
	}
	if f.Value.Hi > ceiling {
		f = Constant(ceiling).Sub(Constant(ceiling).Sub(f).PositivePart())
	}
	return f
}

// Power returns the jet of max(f, 0)^p for p > 0.
func (f Jet) Power(p float64) Jet {
	f = f.PositivePart()
	lo, hi := max(f.Value.Lo, 0), f.Value.Hi
	value := Interval{math.Pow(lo, p), math.Pow(hi, p)}
	first := Of(p*math.Pow(lo, p-1), p*math.Pow(hi, p-1))
	if p == 1 {
		first = Point(1)
	}
	second := Interval{}
	if p != 1 {
		second = Of(p*(p-1)*math.Pow(lo, p-2), p*(p-1)*math.Pow(hi, p-2))
	}
	if p == 2 {
		second = Point(2)
	}
	return f.compose(value, first, second)
}

// compose applies the chain rule to h∘f, given enclosures of h, h′ and h″ on
// the range of f.
func (f Jet) compose(value, first, second Interval) Jet {
	return Jet{
		Value:  value,
		Slope:  first.Mul(f.Slope),
		Second: second.Mul(f.Slope.Square()).Add(first.Mul(f.Second)),
	}
}

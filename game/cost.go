package game

import (
	"math"

	"grange/interval"
)

// Cost is f(s), the shape of the privacy cost C_n(s) = μ_n·f(s).
type Cost interface {
	At(contribution float64) float64
}

// BoundedCost is a Cost that can be enclosed.
type BoundedCost interface {
	Cost
	Bound(lo, hi float64) interval.Jet
}

// PowerCost is s^k: 1 is the paper's linear cost, 2 the quadratic one. The
// zero value is linear.
type PowerCost struct{ Exponent float64 }

// At returns f(s).
func (c PowerCost) At(s float64) float64 {
	switch c.Exponent {
	case 0, 1:
		return s
	case 2:
		return s * s
	}
	return math.Pow(s, c.Exponent)
}

// Bound encloses f on [lo, hi].
func (c PowerCost) Bound(lo, hi float64) interval.Jet {
	k := c.Exponent
	if k == 0 {
		k = 1
	}
	return interval.Variable(lo, hi).Power(k)
}

// CostFunc makes a cost of a plain function. It cannot be bounded.
type CostFunc func(contribution float64) float64

// At returns f(s).
func (f CostFunc) At(s float64) float64 { return f(s) }

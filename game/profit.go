package game

import (
	"math"

	"grange/interval"
)

// Profit is Π(A): what a model of accuracy A earns.
type Profit interface {
	At(accuracy float64) float64
}

// BoundedProfit is a Profit that can be enclosed.
type BoundedProfit interface {
	Profit
	Bound(accuracy interval.Jet) interval.Jet
}

// LinearProfit is β1·A + β2.
type LinearProfit struct{ Slope, Base float64 }

// At returns Π(A).
func (p LinearProfit) At(accuracy float64) float64 { return p.Slope*accuracy + p.Base }

// Bound encloses Π(A).
func (p LinearProfit) Bound(a interval.Jet) interval.Jet { return a.Scale(p.Slope).Shift(p.Base) }

// PowerProfit is β1·max(A, 0)^p + β2. Exponent 2 is the paper's quadratic
// profit. The surrogate accuracy can be negative for a little data with many
// wrong labels; without the max, profit would fall as accuracy rises there.
type PowerProfit struct{ Slope, Base, Exponent float64 }

// At returns Π(A).
func (p PowerProfit) At(accuracy float64) float64 {
	if accuracy < 0 {
		accuracy = 0
	}
	if p.Exponent == 2 {
		return p.Slope*(accuracy*accuracy) + p.Base
	}
	return p.Slope*math.Pow(accuracy, p.Exponent) + p.Base
}

// Bound encloses Π(A).
func (p PowerProfit) Bound(a interval.Jet) interval.Jet {
	return a.Power(p.Exponent).Scale(p.Slope).Shift(p.Base)
}

// ProfitFunc makes a profit of a plain function. It cannot be bounded.
type ProfitFunc func(accuracy float64) float64

// At returns Π(A).
func (f ProfitFunc) At(accuracy float64) float64 { return f(accuracy) }

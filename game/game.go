// Package game is the data contribution game as plain values: members, the
// accuracy their data buys, the profit it earns, what privacy costs, and how
// indices become shares and shares become payoffs. It holds no algorithms;
// package mechanism says how indices arise and package equilibrium what the
// members will do.
package game

import (
	"fmt"
	"math"
)

// Member is one data silo, player n of the game.
type Member struct {
	Name     string
	Capacity int64   // D_n: the data points it owns
	Noise    float64 // ε_n: the share of its labels that are wrong, in [0, 1)
	Privacy  float64 // μ_n: its privacy sensitivity, ≥ 0
	Outside  float64 // the payoff it would have without taking part
}

// Profile is one contribution per member, s.
type Profile []int64

// Game is everything that determines payoffs, except the mechanism.
type Game struct {
	Members  []Member
	Accuracy Accuracy
	Profit   Profit
	Cost     Cost
	Minimum  int64 // the least contribution: 1 as in Algorithm 1, or 0
	Negative Negative
}

// Totals returns S = Σ s and E = Σ ε·s.
func (g *Game) Totals(s Profile) (total int64, wrong float64) {
	for n, x := range s {
		total += x
		wrong += g.Members[n].Noise * float64(x)
	}
	return total, wrong
}

// AccuracyAt returns A(s, ε).
func (g *Game) AccuracyAt(s Profile) float64 {
	total, wrong := g.Totals(s)
	return g.Accuracy.At(float64(total), wrong)
}

// CostOf returns C_n(x) = μ_n·f(x).
func (g *Game) CostOf(n int, x int64) float64 {
	return g.Members[n].Privacy * g.Cost.At(float64(x))
}

// Payoffs returns U_n = g_n·Π − C_n for every member.
func (g *Game) Payoffs(s Profile, shares []float64, profit float64) []float64 {
	payoffs := make([]float64, len(s))
	for n, x := range s {
		payoffs[n] = shares[n]*profit - g.CostOf(n, x)
	}
	return payoffs
}

// Welfare returns Π(A(s)) − Σ C_n(s_n): what the members earn together,
// however they share it.
func (g *Game) Welfare(s Profile) float64 {
	welfare := g.Profit.At(g.AccuracyAt(s))
	for n, x := range s {
		welfare -= g.CostOf(n, x)
	}
	return welfare
}

// Contains reports whether s is a profile of g: one contribution per member,
// each between the minimum and the member's capacity.
func (g *Game) Contains(s Profile) error {
	if len(s) != len(g.Members) {
		return fmt.Errorf("game: %d contributions for %d members", len(s), len(g.Members))
	}
	for n, x := range s {
		if m := g.Members[n]; x < g.Minimum || x > m.Capacity {
			return fmt.Errorf("game: contribution %d of %s is outside %d … %d", x, m.Name, g.Minimum, m.Capacity)
		}
	}
	return nil
}

// Finite reports whether x is neither NaN nor infinite.
func Finite(x float64) bool { return x-x == 0 }

// Unbounded is the value of Accuracy.Ceiling, and with its sign turned of
// Accuracy.Floor, when there is none.
var Unbounded = math.Inf(1)

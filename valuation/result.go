package valuation

import (
	"math"
	"slices"

	"grange/game"
)

// Status says how an estimation ended.
type Status int

// The ways to end.
const (
	Running   Status = iota // it has not: the result is one on the way
	Satisfied               // the stopping rule was met
	Exact                   // all coalitions were valued: the values carry no error
	Deadline                // the context's time was up
	Failed                  // the utility failed or the context was cancelled; see the error
)

// String returns the status as a word.
func (s Status) String() string {
	return [...]string{"running", "satisfied", "exact", "deadline", "failed"}[s]
}

// Estimate is one value per member with its uncertainty.
type Estimate struct {
	Values []float64 // the estimated index I_n
	Errors []float64 // its standard error: +Inf while unknown
	Spread []float64 // half the width of its 95% interval
}

// Result is what a valuation found, or has found so far.
type Result struct {
	Method string
	Names  []string // of the members; nil when the game has none
	Estimate
	Empty       float64 // v(∅)
	Whole       float64 // v(N)
	Evaluations int     // coalitions valued, each counted once
	Samples     int     // the method's own units: permutations, draws, pairs
	Status      Status
	Reason      string // why it ended, in words
	Warnings    []string
}

// Interval returns the 95% interval of member n.
func (r *Result) Interval(n int) (low, high float64) {
	return r.Values[n] - r.Spread[n], r.Values[n] + r.Spread[n]
}

// Shares returns the members' shares g_n of the profit (see game.Shares).
func (r *Result) Shares(negative game.Negative) []float64 {
	return game.Shares(r.Values, negative)
}

// Ranks returns each member's rank, 1 for the largest value. Equal values are
// ranked in the members' order.
func (r *Result) Ranks() []int { return ranks(r.Values) }

func ranks(values []float64) []int {
	order := make([]int, len(values))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case values[a] > values[b]:
			return -1
		case values[a] < values[b]:
			return 1
		}
		return 0
	})
	rank := make([]int, len(values))
	for place, n := range order {
		rank[n] = place + 1
	}
	return rank
}

// newEstimate returns an estimate of which nothing is known.
func newEstimate(members int) Estimate {
	e := Estimate{make([]float64, members), make([]float64, members), make([]float64, members)}
	for n := range members {
		e.Errors[n], e.Spread[n] = math.Inf(1), math.Inf(1)
	}
	return e
}

// set stores a value with its standard error and degrees of freedom.
func (e *Estimate) set(n int, value, standardError, freedom float64) {
	e.Values[n] = value
	if math.IsNaN(standardError) {
		return
	}
	e.Errors[n] = standardError
	e.Spread[n] = standardError * spread95(freedom)
}

// exactEstimate returns values without error.
func exactEstimate(values []float64) Estimate {
	return Estimate{values, make([]float64, len(values)), make([]float64, len(values))}
}

package valuation

import (
	"fmt"
	"math"
	"slices"
)

// Progress is what a rule may look at.
type Progress struct {
	Evaluations int
	// Result computes the result so far; it costs as much as the method's
	// estimate does.
	Result func() *Result
}

// Rule says when an estimator has seen enough. Rules are combined by Any and
// All; time is the context's deadline.
type Rule interface {
	// Bound returns the number of evaluations that must not be exceeded, and
	// math.MaxInt when there is no such number.
	Bound() int
	// Begin starts watching one run. The function it returns is called after
	// every batch that brought samples, and says why to stop, or nothing to go
	// on.
	Begin() func(Progress) (reason string)
}

type rule struct {
	bound int
	begin func() func(Progress) string
}

func (r rule) Bound() int                            { return r.bound }
func (r rule) Begin() func(Progress) (reason string) { return r.begin() }

func stateless(bound int, check func(Progress) string) Rule {
	return rule{bound, func() func(Progress) string { return check }}
}

// Evaluations stops when the given number of coalitions has been valued. It is
// never exceeded, and up to one sample's worth of it may be left over.
func Evaluations(most int) Rule {
	return stateless(most, func(p Progress) string {
		if p.Evaluations >= most {
			return fmt.Sprintf("%d evaluations", p.Evaluations)
		}
		return ""
	})
}

// StandardError stops when no member's standard error is above the target.
func StandardError(target float64) Rule {
	return stateless(math.MaxInt, func(p Progress) string {
		if worst := slices.Max(p.Result().Errors); worst <= target {
			return fmt.Sprintf("standard errors up to %.3g", worst)
		}
		return ""
	})
}

// RelativeError stops when no member's standard error is above the given
// fraction of |v(N) − v(∅)|.
func RelativeError(fraction float64) Rule {
	return stateless(math.MaxInt, func(p Progress) string {
		r := p.Result()
		if worst := slices.Max(r.Errors); worst <= fraction*math.Abs(r.Whole-r.Empty) {
			return fmt.Sprintf("standard errors up to %.3g of the whole", worst/math.Abs(r.Whole-r.Empty))
		}
		return ""
	})
}

// RankStable stops when the members' ranks have been the same after the given
// number of batches in a row.
func RankStable(batches int) Rule {
	return rule{math.MaxInt, func() func(Progress) string {
		var last []int
		same := 0
		return func(p Progress) string {
			now := p.Result().Ranks()
			if slices.Equal(now, last) {
				same++
			} else {
				last, same = now, 1
			}
			if same >= batches {
				return fmt.Sprintf("ranks unchanged for %d batches", same)
			}
			return ""
		}
	}}
}

// Any stops when one of the rules does.
func Any(rules ...Rule) Rule {
	bound := math.MaxInt
	for _, r := range rules {
		bound = min(bound, r.Bound())
	}
	return rule{bound, func() func(Progress) string {
		watches := beginAll(rules)
		return func(p Progress) (reason string) {
			for _, watch := range watches { // all of them look every time
				if why := watch(p); why != "" && reason == "" {
					reason = why
				}
			}
			return reason
		}
	}}
}

// All stops when every rule would. Evaluations among them bound the run only
// when all the rules are bounded.
func All(rules ...Rule) Rule {
	bound := 0
	for _, r := range rules {
		bound = max(bound, r.Bound())
	}
	return rule{bound, func() func(Progress) string {
		watches := beginAll(rules)
		return func(p Progress) (reason string) {
			met := true
			for _, watch := range watches {
				why := watch(p)
				met = met && why != ""
				if reason != "" && why != "" {
					reason += " and "
				}
				reason += why
			}
			if !met {
				return ""
			}
			return reason
		}
	}}
}

func beginAll(rules []Rule) []func(Progress) string {
	watches := make([]func(Progress) string, len(rules))
	for i, r := range rules {
		watches[i] = r.Begin()
	}
	return watches
}

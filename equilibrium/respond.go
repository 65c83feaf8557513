package equilibrium

import (
	"context"
	"math"
)

// The best response is the smallest maximiser of U_n over all integers of
// [lo, hi], payoffs compared as the float64 numbers they are. respond finds it
// by branch and bound: an interval is dropped once its enclosure shows that
// the payoff cannot reach the best found, is monotone, convex or concave
// there, and halved otherwise. Enclosures are of the real-valued payoff, so
// wherever rounding could change the order, candidates are tried one by one.

const (
	leaf     = 8       // this many integers are tried rather than bounded
	rounding = 0x1p-44 // bound on the relative rounding error of a payoff
	flat     = 1 << 12 // more integers than this within rounding count as equal
	patience = 8       // candidates between two looks at the context
)

// search is the state of one branch and bound.
type search struct {
	ctx   context.Context
	at    func(x int64) float64
	best  int64
	value float64
	tried int
	err   error // first candidate that is not finite, or the context's error
	bad   int64
}

func newSearch(ctx context.Context, at func(int64) float64) *search {
	return &search{ctx: ctx, at: at, best: math.MaxInt64, value: math.Inf(-1)}
}

// respond finds the smallest maximiser of p over [lo, hi]. hints are
// candidates worth trying first.
func (s *search) respond(p *payoff, lo, hi int64, hints ...int64) {
	if p.bounded == nil {
		s.enumerate(lo, hi)
		return
	}
	for _, x := range hints {
		s.try(x)
	}
	if lo == 0 { // the untrained model: a jump that no bound covers
		s.try(0)
		lo = 1
	}
	if lo > hi {
		return
	}
	s.branch(p, lo, hi, s.try(lo), s.try(hi))
}

// try evaluates one candidate.
func (s *search) try(x int64) float64 {
	u := s.at(x)
	if s.tried++; s.tried%patience == 0 && s.err == nil {
		s.err = s.ctx.Err()
	}
	if u-u != 0 && s.err == nil {
		s.err, s.bad = ErrNotFinite, x
	}
	if u > s.value || (u == s.value && x < s.best) {
		s.best, s.value = x, u
	}
	return u
}

// enumerate tries every integer of [lo, hi].
func (s *search) enumerate(lo, hi int64) {
	for x := lo; x <= hi && s.err == nil; x++ {
		s.try(x)
	}
}

// branch searches [lo, hi], whose ends have been tried and have payoffs ulo
// and uhi.
func (s *search) branch(p *payoff, lo, hi int64, ulo, uhi float64) {
	if s.err != nil {
		return
	}
	if hi-lo <= leaf {
		s.enumerate(lo+1, hi-1)
		return
	}
	jet, size := p.bound(lo, hi)
	slack := rounding * size
	width := float64(hi - lo)
	most := min(jet.Value.Hi, ulo+jet.Slope.Hi*width, uhi-jet.Slope.Lo*width)
	if most+slack < s.value {
		return
	}
	switch {
	case jet.Slope.Hi <= 0:
		s.monotone(lo, hi, -jet.Slope.Hi, slack, true)
		return
	case jet.Slope.Lo >= 0:
		s.monotone(lo, hi, jet.Slope.Lo, slack, false)
		return
	case jet.Second.Lo >= 0:
		return // convex: an end is best, and both were tried
	case jet.Second.Hi < 0 && s.concave(lo, hi, -jet.Second.Hi, slack):
		return
	}
	middle := split(lo, hi)
	u := s.try(middle)
	s.branch(p, lo, middle, ulo, u)
	s.branch(p, middle, hi, u, uhi)
}

// split halves an interval: by ratio while it spans scales, as logarithms and
// shares do, else in the middle.
func split(lo, hi int64) int64 {
	if lo > 0 && hi/lo >= 16 {
		return int64(math.Sqrt(float64(lo) * float64(hi)))
	}
	return lo + (hi-lo)/2
}

// monotone handles a payoff that falls (or rises) by at least steep per point:
// beyond the points that rounding could confuse with the better end, nothing
// needs trying.
func (s *search) monotone(lo, hi int64, steep, slack float64, falls bool) {
	reach := slack / steep // NaN or +Inf where the payoff may be constant
	if !(reach < flat) {
		if hi-lo <= flat {
			reach = float64(hi - lo)
		} else {
			if !falls {
				s.firstOf(lo, hi)
			}
			return
		}
	}
	points := min(int64(reach), hi-lo-1)
	if falls {
		s.enumerate(lo+1, lo+points)
	} else {
		s.enumerate(hi-points, hi-1)
	}
}

// firstOf finds the smallest x of a payoff that rises to a plateau, flat to
// the last bit.
func (s *search) firstOf(lo, hi int64) {
	target := s.at(hi)
	for lo+1 < hi {
		middle := lo + (hi-lo)/2
		if s.at(middle) >= target {
			hi = middle
		} else {
			lo = middle
		}
	}
	s.try(hi)
}

// concave handles a payoff whose second derivative is at most −bend: it climbs
// to the top and tries every point that rounding could confuse with it. It
// reports false where there are too many of those.
func (s *search) concave(lo, hi int64, bend, slack float64) bool {
	reach := 2*math.Sqrt(2*slack/bend) + 2
	if !(reach < flat) || reach > float64(hi-lo)/4 {
		return false
	}
	left, right := lo, hi
	for right-left > 1 {
		middle := left + (right-left)/2
		if s.try(middle+1) > s.try(middle) {
			left = middle
		} else {
			right = middle
		}
		if s.err != nil {
			return true
		}
	}
	s.enumerate(max(lo, left-int64(reach)), min(hi, right+int64(reach)))
	return true
}

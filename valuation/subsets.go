package valuation

import (
	"math/rand/v2"
)

// subsets draws random subsets of one size, none of them twice.
type subsets struct {
	random *rand.Rand
	n, k   int
	total  float64 // C(n, k)
	drawn  int
	seen   map[Coalition]bool // while drawing blindly
	rest   []Coalition        // once all are listed, shuffled: those left
}

// listLimit is up to how many subsets are listed and shuffled at the start.
const listLimit = 1 << 14

func newSubsets(n, k int, random *rand.Rand) *subsets {
	return &subsets{random: random, n: n, k: k, total: choose(n, k), seen: map[Coalition]bool{}}
}

// left reports whether there is another subset.
func (s *subsets) left() bool { return float64(s.drawn) < s.total }

// next draws one more; there must be one left.
func (s *subsets) next() Coalition {
	if s.rest == nil && (s.total <= listLimit || float64(s.drawn) > s.total/2) {
		s.list()
	}
	s.drawn++
	if s.rest != nil {
		c := s.rest[len(s.rest)-1]
		s.rest = s.rest[:len(s.rest)-1]
		return c
	}
	for {
		c := s.blind()
		if !s.seen[c] {
			s.seen[c] = true
			return c
		}
	}
}

// blind draws any subset of size k, by Floyd's method.
func (s *subsets) blind() Coalition {
	var c Coalition
	for j := s.n - s.k; j < s.n; j++ {
		if x := s.random.IntN(j + 1); c.Has(x) {
			c = c.With(j)
		} else {
			c = c.With(x)
		}
	}
	return c
}

// list writes down all subsets not drawn yet, in random order.
func (s *subsets) list() {
	s.rest = make([]Coalition, 0, int(s.total)-s.drawn)
	if s.k == 0 {
		s.rest = append(s.rest, 0)
		return
	}
	for c, last := Everyone(s.k), Everyone(s.k)<<(s.n-s.k); ; c = following(c) {
		if !s.seen[c] {
			s.rest = append(s.rest, c)
		}
		if c == last {
			break
		}
	}
	s.random.Shuffle(len(s.rest), func(i, j int) { s.rest[i], s.rest[j] = s.rest[j], s.rest[i] })
	s.seen = nil
}

// following returns the next larger set of the same size: the lowest run of
// members moves its top one up and the others down to the bottom.
func following(c Coalition) Coalition {
	lowest := c & -c
	ripple := c + lowest
	return ripple | (c^ripple)/lowest>>2
}

// choose returns the binomial coefficient C(n, k).
func choose(n, k int) float64 {
	if k < 0 || k > n {
		return 0
	}
	c := 1.0
	for i := range min(k, n-k) {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

package valuation

import (
	"math"

	"grange/internal/stream"
)

// pairing draws coalitions together with their complements, without
// repetition, in classes by size: class k has the pairs of a coalition of k
// members, k ≤ N/2, with one of N−k. It is the common design of Kernel, SVARM
// and Adjusted.
//
// They rest on one identity. With Cov over the coalitions S of size k, and
// p = k/N,
//
//	φ_i = (v(N) − v(∅))/N + Σ_{k=1}^{N−1} N/(k(N−k))·Cov_k(1[i∈S], v(S)),
//
// and the two sizes of a pair come together, as Cov_{N−k}(1[i∈S], v(S)) =
// −Cov_k(1[i∈S], v(N∖S)). So only the gap y(S) = v(S) − v(N∖S) matters:
//
//	φ_i = (v(N) − v(∅))/N + Σ_{k≤N/2} factor_k·E_k[(1[i∈S] − p)·y(S)].
type pairing struct {
	start   Start
	classes []*class
	asked   []*class
	pending []Coalition
	samples int
	least   int // how many pairs every class gets before the shares count
}

// class is the pairs of sizes k and N−k.
type class struct {
	k       int
	half    bool    // k = N/2: a pair is drawn by the coalition with member 0
	factor  float64 // N/(k(N−k)), and half of it where k = N/2
	share   float64 // of the pairs this class should get
	draws   *subsets
	planned int
	held    Coalition
	holding bool
	side    []Coalition // S of every pair told
	gap     []float64   // y(S)
}

// newPairing gives each class a share of the pairs in proportion to the
// weight of its size k.
func newPairing(s Start, weight func(k int) float64) *pairing {
	n := s.Members
	p := &pairing{start: s, least: 3}
	sum := 0.0
	for k := 1; k <= n/2; k++ {
		c := &class{k: k, half: 2*k == n, factor: float64(n) / float64(k*(n-k)), share: weight(k)}
		random := stream.New(s.Seed, "valuation pairs", k)
		if c.half {
			c.factor /= 2
			c.share /= 2
			c.draws = newSubsets(n-1, k-1, random)
		} else {
			c.draws = newSubsets(n, k, random)
		}
		sum += c.share
		p.classes = append(p.classes, c)
	}
	for _, c := range p.classes {
		c.share /= sum
	}
	return p
}

func (p *pairing) Samples() int { return p.samples }

func (p *pairing) Ask(q *Query) {
	everyone := Everyone(p.start.Members)
	p.asked, p.pending = p.asked[:0], p.pending[:0]
	for !q.Full() {
		c := p.choose()
		if c == nil {
			return
		}
		if !c.holding {
			c.held = c.draws.next()
			if c.half {
				c.held = c.held<<1 | 1
			}
		}
		c.holding = !q.Add(c.held, everyone&^c.held)
		if c.holding {
			return
		}
		c.planned++
		p.asked = append(p.asked, c)
		p.pending = append(p.pending, c.held)
	}
}

// choose returns the class that is furthest behind its share, or nil when
// every pair was drawn.
func (p *pairing) choose() *class {
	drawn := 1
	for _, c := range p.classes {
		drawn += c.planned
	}
	var best *class
	most := 0.0
	for _, c := range p.classes {
		if !c.holding && !c.draws.left() {
			continue
		}
		behind := c.share*float64(drawn) - float64(c.planned)
		if c.planned < p.least {
			behind += math.MaxInt32
		}
		if best == nil || behind > most {
			best, most = c, behind
		}
	}
	return best
}

func (p *pairing) Tell(worths []float64) {
	for j, c := range p.asked {
		c.side = append(c.side, p.pending[j])
		c.gap = append(c.gap, worths[2*j]-worths[2*j+1])
	}
	p.samples += len(p.asked)
}

// complete reports whether every pair of the class was told.
func (c *class) complete() bool { return float64(len(c.side)) == c.draws.total }

// open is the part of the class not seen, which scales its variance.
func (c *class) open() float64 { return 1 - float64(len(c.side))/c.draws.total }

// lever returns 1[i∈S] − k/N.
func (c *class) lever(s Coalition, i, n int) float64 {
	p := float64(c.k) / float64(n)
	if s.Has(i) {
		return 1 - p
	}
	return -p
}

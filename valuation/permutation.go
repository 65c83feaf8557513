package valuation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"grange/internal/stream"
)

// Permutation lets the members arrive in random orders and averages their
// marginal contributions (Castro et al. 2009). Its zero value works.
type Permutation struct {
	// Antithetic takes every order together with its reverse, as one sample.
	Antithetic bool
	// Guided takes N orders as one sample, in each of which another member
	// comes first (Liu et al. 2022). It excludes Antithetic.
	Guided bool
	// Truncation, when above 0, cuts an order short once the worth of those
	// who arrived is within this fraction of |v(N) − v(∅)| from v(N) (Ghorbani
	// & Zou 2019). What is missing then is split equally among the rest.
	Truncation float64
	// Audit is the chance that an order goes on where it would be cut. What
	// the equal split got wrong there counts 1/Audit times, so that truncation
	// brings no bias, whatever the game. Default: 0.25. At 1 nothing is cut.
	Audit float64
}

// Name returns "permutation", with the variants.
func (m Permutation) Name() string {
	name := "permutation"
	if m.Antithetic {
		name += ", antithetic"
	}
	if m.Guided {
		name += ", guided"
	}
	if m.Truncation > 0 {
		name += ", truncated"
	}
	return name
}

// Begin starts an estimation.
func (m Permutation) Begin(s Start) (Estimation, error) {
	if !(m.Truncation >= 0 && m.Truncation < 1) {
		return nil, fmt.Errorf("%w: truncation at %v, want 0 ≤ truncation < 1", ErrSettings, m.Truncation)
	}
	if m.Guided && m.Antithetic {
		return nil, fmt.Errorf("%w: a permutation is guided or antithetic, not both", ErrSettings)
	}
	if !(m.Audit >= 0 && m.Audit <= 1) {
		return nil, fmt.Errorf("%w: audit of %v, want 0 < audit ≤ 1", ErrSettings, m.Audit)
	}
	if m.Audit == 0 {
		m.Audit = 0.25
	}
	return &permutations{
		start: s, antithetic: m.Antithetic, guided: m.Guided, audit: m.Audit,
		cut: m.Truncation * math.Abs(s.Whole-s.Empty), marginal: make([]moments, s.Members),
	}, nil
}

// permutations walks batches of orders in step: every Ask wants the next
// worth of each walk that goes on, unless nothing is cut, when it wants all at
// once.
type permutations struct {
	start      Start
	antithetic bool
	guided     bool
	audit      float64
	cut        float64
	tasks      int
	walks      []*walk
	asked      []*walk
	marginal   []moments
}

// walk is one order on the way.
type walk struct {
	order   []int
	arrived int
	here    Coalition
	worth   float64
	gain    []float64 // per member
	lot     float64   // uniform on [0, 1): whether it is audited
	cut     int       // how many had arrived where it was, or would have been, cut
	missing float64   // the worth that was missing there
}

func (p *permutations) Samples() int { return p.marginal[0].count }

// perSample is how many orders make one sample.
func (p *permutations) perSample() int {
	switch {
	case p.antithetic:
		return 2
	case p.guided:
		return p.start.Members
	}
	return 1
}

func (p *permutations) Ask(q *Query) {
	if len(p.walks) == 0 {
		p.draw(q)
	}
	p.asked = p.asked[:0]
	for _, w := range p.walks {
		if p.cut == 0 {
			p.asked = append(p.asked, w)
			continue
		}
		if w.arrived < len(w.order)-1 {
			q.Add(w.here.With(w.order[w.arrived]))
			p.asked = append(p.asked, w)
		}
	}
}

// draw begins the walks of the next samples. With truncation, what they ask
// for later is not known yet, so that room is kept for all of it.
func (p *permutations) draw(q *Query) {
	n := p.start.Members
	steps := p.perSample() * (n - 1)
	for len(p.walks) == 0 || !q.Full() {
		room := steps
		if p.cut > 0 {
			room *= len(p.walks)/p.perSample() + 1
		}
		if !q.Fits(room) || p.cut > 0 && len(p.walks) >= max(16, 2*q.batch/steps) {
			return
		}
		sample := p.sample(stream.New(p.start.Seed, "valuation permutation", p.tasks))
		if p.cut == 0 {
			var wanted []Coalition
			for _, w := range sample {
				here := Coalition(0)
				for _, n := range w.order[:n-1] {
					here = here.With(n)
					wanted = append(wanted, here)
				}
			}
			q.Add(wanted...)
		}
		p.walks = append(p.walks, sample...)
		p.tasks++
	}
}

// sample draws the orders of one sample.
func (p *permutations) sample(random *rand.Rand) []*walk {
	n := p.start.Members
	walks := make([]*walk, p.perSample())
	for i := range walks {
		w := &walk{worth: p.start.Empty, gain: make([]float64, n), cut: n}
		if i > 0 && p.antithetic {
			w.order, w.lot = slices.Clone(walks[0].order), walks[0].lot
			slices.Reverse(w.order)
		} else {
			w.order, w.lot = random.Perm(n), random.Float64()
		}
		if p.guided {
			at := slices.Index(w.order, i)
			w.order[0], w.order[at] = w.order[at], w.order[0]
		}
		walks[i] = w
	}
	return walks
}

func (p *permutations) Tell(worths []float64) {
	if p.cut == 0 {
		for _, w := range p.walks {
			for range p.start.Members - 1 {
				w.arrive(worths[0])
				worths = worths[1:]
			}
		}
	} else {
		going := false
		for i, w := range p.asked {
			w.arrive(worths[i])
			if w.cut == len(w.order) && math.Abs(p.start.Whole-w.worth) <= p.cut {
				w.truncate(p.start.Whole, w.lot < p.audit)
			}
			going = going || w.arrived < len(w.order)-1
		}
		if going {
			return
		}
	}
	p.fold()
}

// fold takes the finished walks into the means, in order.
func (p *permutations) fold() {
	for len(p.walks) > 0 {
		sample := p.walks[:p.perSample()]
		p.walks = p.walks[p.perSample():]
		for _, w := range sample {
			if w.arrived < len(w.order) {
				w.arrive(p.start.Whole)
			}
			w.settle(p.audit)
		}
		for n := range p.marginal {
			gain := 0.0
			for _, w := range sample {
				gain += w.gain[n]
			}
			p.marginal[n].add(gain / float64(len(sample)))
		}
	}
	p.walks = nil
}

// arrive lets the next member in.
func (w *walk) arrive(worth float64) {
	n := w.order[w.arrived]
	w.gain[n] = worth - w.worth
	w.here, w.worth = w.here.With(n), worth
	w.arrived++
}

// truncate notes where the walk may be cut, and cuts it there unless it is
// audited.
func (w *walk) truncate(whole float64, audited bool) {
	w.cut, w.missing = w.arrived, whole-w.worth
	if !audited {
		w.arrived = len(w.order)
	}
}

// settle splits what was missing at the cut among those who came after. An
// audited walk adds what that got wrong, for all those not audited as well.
func (w *walk) settle(audit float64) {
	rest := w.order[w.cut:]
	for _, n := range rest {
		split := w.missing / float64(len(rest))
		if w.lot < audit {
			w.gain[n] = split + (w.gain[n]-split)/audit
		} else {
			w.gain[n] = split
		}
	}
}

func (p *permutations) Estimate() Estimate { return meanEstimate(p.marginal, 2) }

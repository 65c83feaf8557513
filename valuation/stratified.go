package valuation

import "math"

// Stratified samples each member's marginal contributions to coalitions of
// each size apart, without repetition, and sends further samples where they
// lower the variance most (Neyman allocation; Castro et al. 2017). Its zero
// value works.
type Stratified struct {
	// Pilot is how many samples each stratum gets before the allocation
	// starts. Default: 3.
	Pilot int
}

// Name returns "stratified".
func (Stratified) Name() string { return "stratified" }

// Begin starts an estimation.
func (m Stratified) Begin(s Start) (Estimation, error) {
	n := s.Members
	e := &strata{start: s, pilot: m.Pilot, all: make([]stratum, n*n)}
	if e.pilot <= 0 {
		e.pilot = 3
	}
	for i := range e.all {
		e.all[i].draws = newSubsets(n-1, i%n, stream(s.Seed, uint64(i)))
	}
	return e, nil
}

type strata struct {
	start   Start
	pilot   int
	all     []stratum // of member i and size k at i·N + k
	asked   []int
	samples int
}

// stratum is the marginal contributions of one member to coalitions of one
// size.
type stratum struct {
	draws   *subsets
	gain    moments
	planned int       // drawn, perhaps not told yet
	held    Coalition // drawn when there was no room for it
	holding bool
}

func (e *strata) Samples() int { return e.samples }

func (e *strata) Ask(q *Query) {
	e.asked = e.asked[:0]
	pooled := e.pooled()
	for !q.Full() {
		i := e.choose(pooled)
		if i < 0 || !e.draw(q, i) {
			return
		}
	}
}

// choose returns the stratum that needs a sample most: one that has not had
// its pilot samples, or else one whose next sample lowers the variance most.
func (e *strata) choose(pooled []float64) int {
	best, most := -1, 0.0
	for round := 1; round <= e.pilot; round++ {
		for i := range e.all {
			if s := &e.all[i]; s.planned < round && (s.holding || s.draws.left()) {
				return i
			}
		}
	}
	for i := range e.all {
		s := &e.all[i]
		if !s.holding && !s.draws.left() {
			continue
		}
		m := float64(s.planned)
		if gain := s.variance(pooled[i/e.start.Members]) / (m * (m + 1)); best < 0 || gain > most {
			best, most = i, gain
		}
	}
	return best
}

// draw asks for both worths of one marginal contribution.
func (e *strata) draw(q *Query, i int) bool {
	s := &e.all[i]
	if !s.holding {
		s.held = s.draws.next()
	}
	n := i / e.start.Members
	low := Coalition(1)<<n - 1
	others := s.held&low | s.held&^low<<1 // numbers from n on make way for member n
	s.holding = !q.Add(others, others.With(n))
	if s.holding {
		return false
	}
	s.planned++
	e.asked = append(e.asked, i)
	return true
}

func (e *strata) Tell(worths []float64) {
	for j, i := range e.asked {
		e.all[i].gain.add(worths[2*j+1] - worths[2*j])
	}
	e.samples += len(e.asked)
}

// priorWeight is how many samples the pooled variance counts for in a
// stratum's own: few samples which happen to agree are no proof of certainty.
const priorWeight = 1.0

// pooled returns, per member, the variance within strata, averaged.
func (e *strata) pooled() []float64 {
	n := e.start.Members
	pooled := make([]float64, n)
	for i := range pooled {
		sum, freedom := 0.0, 0.0
		for _, s := range e.all[i*n : (i+1)*n] {
			if s.gain.count > 1 {
				sum += s.gain.sum2
				freedom += float64(s.gain.count - 1)
			}
		}
		pooled[i] = sum / freedom
	}
	return pooled
}

// variance is the stratum's, with the pooled one as a prior.
func (s *stratum) variance(pooled float64) float64 {
	if s.gain.count < 1 {
		return pooled
	}
	return (s.gain.sum2 + priorWeight*pooled) / (float64(s.gain.count-1) + priorWeight)
}

func (e *strata) Estimate() Estimate {
	n := e.start.Members
	estimate := newEstimate(n)
	pooled := e.pooled()
	for i := range n {
		value, variance, scatter := 0.0, 0.0, 0.0
		for k := range n {
			s := &e.all[i*n+k]
			m := float64(s.gain.count)
			value += s.gain.mean / float64(n)
			switch {
			case m == s.draws.total: // nothing is left to chance
			case m == 0:
				variance = math.NaN()
			default:
				part := s.variance(pooled[i]) / m * (1 - m/s.draws.total) / float64(n*n)
				variance += part
				scatter += part * part / (m - 1 + priorWeight)
			}
		}
		freedom := variance * variance / scatter // Satterthwaite
		if variance == 0 {
			freedom = math.Inf(1)
		}
		estimate.set(i, value, math.Sqrt(variance), freedom)
	}
	return estimate
}

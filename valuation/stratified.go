package valuation

import "math"

// Stratified is sampling in strata by coalition size, where further samples go
// to the sizes in which they lower the variance most, as far as the samples so
// far can tell (Neyman allocation; Castro et al. 2017). Within a stratum every
// worth counts for all members, as in SVARM. Its zero value works.
type Stratified struct {
	// Pilot is how many pairs of coalitions every size gets before the
	// allocation starts. Default: 8.
	Pilot int
}

// Name returns "stratified".
func (Stratified) Name() string { return "stratified" }

// Begin starts an estimation.
func (m Stratified) Begin(s Start) (Estimation, error) {
	e := &stratified{newPairing(s, evenError(s.Members))}
	if e.least = m.Pilot; e.least <= 0 {
		e.least = 8
	}
	return e, nil
}

type stratified struct{ *pairing }

// Ask sets the shares before it draws.
func (e *stratified) Ask(q *Query) {
	e.allocate()
	e.pairing.Ask(q)
}

// allocate gives each class a share in proportion to the standard deviation
// of its part of the values, but no less than a third of the mean, and more in
// larger classes: samples which look alike may have missed the rare one that
// counts, and there is more room for it among many.
func (e *stratified) allocate() {
	deviations := make([]float64, len(e.classes))
	mean, pairs := 0.0, 0.0
	for j, c := range e.classes {
		pairs += c.draws.total / float64(len(e.classes))
		if len(c.side) < e.least && !c.complete() {
			return
		}
		deviations[j] = c.factor * math.Sqrt(c.scatter(e.start.Members))
		mean += deviations[j] / float64(len(e.classes))
	}
	sum := 0.0
	for j, c := range e.classes {
		deviations[j] = max(deviations[j], mean*min(3, c.draws.total/pairs)/3)
		sum += deviations[j]
	}
	if sum == 0 {
		return
	}
	for j, c := range e.classes {
		c.share = deviations[j] / sum
	}
}

// scatter is the variance of the class's scores, added over members.
func (c *class) scatter(n int) float64 {
	rest := c.centred(c.gap).rest
	sum := 0.0
	for i := range n {
		var m moments
		for t, s := range c.side {
			m.add(c.lever(s, i, n) * rest[t])
		}
		sum += m.sum2 / max(1, float64(m.count-1))
	}
	return sum
}

func (e *stratified) Estimate() Estimate { return e.covariances() }

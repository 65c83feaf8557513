package valuation

import "math"

// SVARM lets every worth count for all members at once, those in the coalition
// and those outside, in strata by size (Kolpaczki et al. 2024). Coalitions come
// in pairs with their complements and without repetition, sizes 1 and N−1
// first. The values add up to v(N) − v(∅). Its zero value works.
type SVARM struct{}

// Name returns "svarm".
func (SVARM) Name() string { return "svarm" }

// Begin starts an estimation.
func (SVARM) Begin(s Start) (Estimation, error) {
	return &svarm{newPairing(s, evenError(s.Members))}, nil
}

// evenError is the weight of a size by which every class adds alike to the
// error, if the worths of all sizes scatter alike.
func evenError(n int) func(k int) float64 {
	return func(k int) float64 { return 1 / math.Sqrt(float64(k*(n-k))) }
}

type svarm struct{ *pairing }

func (e *svarm) Estimate() Estimate {
	return e.covariances()
}

// covariances estimates the values by the identity of pairing.
func (p *pairing) covariances() Estimate {
	n := p.start.Members
	e := newEstimate(n)
	parts := make([]classParts, len(p.classes))
	rest := make([][]float64, len(p.classes))
	spent := 0.0
	for j, c := range p.classes {
		parts[j] = c.centred(c.gap)
		rest[j] = parts[j].rest
		spent += parts[j].fitted
	}
	errors := p.errors(rest, spent, false)
	for i := range n {
		value := (p.start.Whole - p.start.Empty) / float64(n)
		for j, c := range p.classes {
			var m moments
			for t, s := range c.side {
				m.add(c.lever(s, i, n) * parts[j].rest[t])
			}
			value += c.factor * parts[j].correction * m.mean
		}
		e.set(i, value, errors[i].error, errors[i].freedom)
	}
	return e
}

// classParts are the numbers of a class less their mean. Where k = N/2 the mean
// is known to be zero, as each pair counts both ways round.
type classParts struct {
	rest       []float64
	correction float64 // makes the covariance unbiased
	fitted     float64 // how many means were taken out
}

func (c *class) centred(numbers []float64) classParts {
	if c.half {
		return classParts{numbers, 1, 0}
	}
	mean := 0.0
	for _, x := range numbers {
		mean += x / float64(len(numbers))
	}
	rest := make([]float64, len(numbers))
	for t, x := range numbers {
		rest[t] = x - mean
	}
	m := float64(len(numbers))
	correction := m / (m - 1) * (c.draws.total - 1) / c.draws.total
	if m < 2 {
		correction = 1
	}
	return classParts{rest, correction, 1}
}

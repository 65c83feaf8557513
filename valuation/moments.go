package valuation

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// moments are the count, mean and spread of a sample, added one by one
// (Welford).
type moments struct {
	count     int
	mean      float64
	sum2      float64 // Σ (x − mean)²
	low, high float64
}

func (m *moments) add(x float64) {
	if m.count == 0 {
		m.low, m.high = x, x
	}
	m.low, m.high = min(m.low, x), max(m.high, x)
	m.count++
	d := x - m.mean
	m.mean += d / float64(m.count)
	m.sum2 += d * (x - m.mean)
}

// variance is the sample variance, and NaN for fewer than two.
func (m *moments) variance() float64 {
	if m.count < 2 {
		return math.NaN()
	}
	return m.sum2 / float64(m.count-1)
}

// reach is how far the sample goes from its mean.
func (m *moments) reach() float64 { return max(m.high-m.mean, m.mean-m.low) }

// priorWeight is how many samples the members' mean variance counts for in
// each member's own: when rare marginal contributions are all that matters, a
// few samples which happen to agree are no proof of certainty.
const priorWeight = 2

// rareEvents is how many more rare events a sample is taken to hold than it
// does, in the manner of Agresti and Coull, who add four to a count: fifty
// samples without one have not shown that there are none.
const rareEvents = 4

// rare is what they add to the sum of squares of a sample. An event is rare
// when it is more than two standard deviations off. Where a sample varies by
// much less than others do, it may have missed what they saw: in a training,
// that of being the first to arrive.
func (m *moments) rare(others float64) float64 {
	if m.reach() < others/3 {
		return rareEvents * others * others
	}
	return rareEvents * max(0, m.reach()*m.reach()-4*m.variance())
}

// meanReach is the mean reach of the samples that vary.
func meanReach(samples []moments) float64 {
	most := 0.0
	for i := range samples {
		most = max(most, samples[i].reach())
	}
	sum, count := 0.0, 0
	for i := range samples {
		if reach := samples[i].reach(); reach > 1e-9*most { // more than by rounding
			sum += reach
			count++
		}
	}
	return sum / float64(max(1, count))
}

// meanEstimate is the estimate by one sample mean per member. Where samples of
// all members do not vary, but for rounding, there is no telling what others
// would be, and the error stays unknown, as it does with fewer than the least
// number of samples.
func meanEstimate(samples []moments, least int) Estimate {
	e := newEstimate(len(samples))
	pooled, scale := 0.0, 0.0
	for _, m := range samples {
		pooled += m.variance() / float64(len(samples))
		scale = max(scale, math.Abs(m.low), math.Abs(m.high))
	}
	reach := meanReach(samples)
	for n, m := range samples {
		freedom := float64(m.count - 1)
		variance := (m.sum2 + m.rare(reach) + priorWeight*pooled) / (freedom + priorWeight)
		if m.count < least || !(reach > 1e-9*scale) {
			variance = math.NaN()
		}
		e.set(n, m.mean, math.Sqrt(variance/float64(m.count)), freedom)
	}
	return e
}

// spread95 is how many standard errors a 95% interval reaches to each side,
// with the given degrees of freedom (Student's t).
func spread95(freedom float64) float64 {
	switch {
	case !(freedom >= 1):
		return spread95(1)
	case freedom > 1e6:
		return 1.959963984540054
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.Quantile(0.975)
}

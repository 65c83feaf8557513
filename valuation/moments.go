package valuation

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// moments are the count, mean and spread of a sample, added one by one
// (Welford).
type moments struct {
	count int
	mean  float64
	sum2  float64 // Σ (x − mean)²
}

func (m *moments) add(x float64) {
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

// priorWeight is how many samples the members' mean variance counts for in
// each member's own: when rare marginal contributions are all that matters, a
// few samples which happen to agree are no proof of certainty.
const priorWeight = 2

// meanEstimate is the estimate by one sample mean per member.
func meanEstimate(samples []moments) Estimate {
	e := newEstimate(len(samples))
	pooled := 0.0
	for _, m := range samples {
		pooled += m.variance() / float64(len(samples))
	}
	for n, m := range samples {
		freedom := float64(m.count - 1)
		variance := (m.sum2 + priorWeight*pooled) / (freedom + priorWeight)
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

package valuation

import "math"

// How much the variance of a class's scores leans on what else is known. A
// sample of a few pairs says little about each member's own: most members are
// on the larger side of all of them.
const (
	// ownWeight is how many samples the class's mean square counts for in the
	// variance of one member.
	ownWeight = 4
	// otherWeight is how many samples the mean square of all classes counts
	// for: a class whose pairs look alike may have missed the rare one that
	// counts.
	otherWeight = 3
	// fittedWeight is the same where a model was fitted to all classes, divided
	// by the number of pairs that are left: the fewer, the more depends on one.
	fittedWeight = 6
	// choiceWeight is by how much a fit that spent all degrees of freedom adds to
	// the variance, for being chosen by the residuals that state the error.
	choiceWeight = 0.5
	// fewWeight is the part of what was to be explained that a fit leaves in
	// doubt, divided by the square of the degrees of freedom it left.
	fewWeight = 0.3
	// leastFreedom is how many degrees of freedom must be left for an error, and
	// leastPairs how many pairs the error of a fit takes.
	leastFreedom = 4
	leastPairs   = 12
	// alike is what part of the largest gap residuals have to reach. Below it
	// the samples agree but for rounding, and say nothing about the rest.
	alike = 1e-5
)

// uncertainty is a standard error with its degrees of freedom. The error is NaN
// while it is unknown.
type uncertainty struct{ error, freedom float64 }

// errors states those of all members' values, by the residuals of the pairs
// and the degrees of freedom that fitting them spent, without the classes' own
// means where nothing else was fitted.
//
// The score of member i is lever·residual. As the squared levers of all members
// add up to N·p(1−p) in every coalition, the members' mean variance is p(1−p)
// times the mean square of the residuals, and known far better than each one's.
func (p *pairing) errors(residuals [][]float64, spent float64, fitted bool) []uncertainty {
	n := p.start.Members
	list := make([]uncertainty, n)
	level := make([]float64, len(p.classes)) // mean squares of the residuals
	mean := 0.0
	left := float64(p.samples) - spent
	known := left >= leastFreedom && (!fitted || p.samples >= leastPairs)
	for j, c := range p.classes {
		freedom := c.freedom()
		if freedom > 0 {
			level[j] = squares(residuals[j]) / freedom
		}
		mean += level[j] / float64(len(p.classes))
		known = known && (c.complete() || freedom >= 2)
	}
	if !known || math.Sqrt(mean) <= alike*p.largest() {
		for i := range list {
			list[i].error = math.NaN()
		}
		return list
	}
	choice, doubt := 1.0, 0.0
	if fitted {
		choice += choiceWeight * spent / float64(p.samples)
		doubt = fewWeight / (left * left)
	}
	for i := range list {
		sum, scatter := 0.0, 0.0 // and Satterthwaite's Σ part²/freedom
		for j, c := range p.classes {
			if c.complete() {
				continue
			}
			var m moments
			for t, s := range c.side {
				m.add(c.lever(s, i, n) * residuals[j][t])
			}
			share := float64(c.k) / float64(n)
			both := share * (1 - share)
			freedom, other := c.freedom()-1, float64(otherWeight)
			if fitted {
				other = fittedWeight / (c.draws.total - float64(m.count))
			}
			scores := (m.sum2 + both*(ownWeight*level[j]+other*mean)) / (freedom + ownWeight + other)
			if fitted {
				scores += doubt * both * squares(c.centred(c.gap).rest) / c.freedom()
			}
			part := choice * c.factor * c.factor * c.open() * scores / float64(m.count)
			sum += part
			scatter += part * part / freedom
		}
		list[i] = uncertainty{math.Sqrt(sum), min(left, sum*sum/scatter)}
	}
	return list
}

// freedom is how many pairs the class has, less its own mean.
func (c *class) freedom() float64 {
	if c.half {
		return float64(len(c.side))
	}
	return float64(len(c.side)) - 1
}

// largest is the largest gap, or difference between the ends.
func (p *pairing) largest() float64 {
	most := math.Abs(p.start.Whole - p.start.Empty)
	for _, c := range p.classes {
		for _, y := range c.gap {
			most = max(most, math.Abs(y))
		}
	}
	return most
}

package valuation

import (
	"fmt"
	"math"
)

// Adjusted is sampling with maximum sample reuse, adjusted by a regression
// (Witter et al. 2025): a simple game is fitted to the sampled worths, its
// Shapley values are known exactly, and only what it leaves unexplained is
// estimated by sampling, as SVARM does. Every pair's residual comes from the
// fit to all the other pairs, so that a fit which is wrong costs accuracy and
// hardly any bias: the model is chosen by the same pairs, which with few
// members leaves some (see docs/valuation.md). Its zero value works.
type Adjusted struct {
	// Degree limits the fitted game: 0, the default, chooses the model which
	// predicts left-out pairs best; 1 takes additive games only, 2 lets a
	// member's part depend on the coalition's size as well, 3 adds terms for
	// triples of members. (Pairs of members do not matter: they cancel between
	// a coalition and its complement.)
	Degree int
}

// Name returns "adjusted".
func (Adjusted) Name() string { return "adjusted" }

// Begin starts an estimation.
func (m Adjusted) Begin(s Start) (Estimation, error) {
	if m.Degree < 0 || m.Degree > 3 {
		return nil, fmt.Errorf("%w: degree %d, want 0 … 3", ErrSettings, m.Degree)
	}
	return &adjusted{newPairing(s, evenError(s.Members)), m.Degree}, nil
}

type adjusted struct {
	*pairing
	degree int
}

// candidates are the models to choose from.
func (e *adjusted) candidates() []model {
	if e.samples == 0 {
		return nil
	}
	if e.degree > 0 {
		return models(e.start.Members, e.degree, e.degree, math.MaxInt)
	}
	return models(e.start.Members, 1, 3, 2*e.samples)
}

func (e *adjusted) Estimate() Estimate {
	best := e.unfitted()
	for _, m := range e.candidates() {
		if f := e.fit(m); f != nil && f.loss < best.loss {
			best = f
		}
	}
	return e.combine(best)
}

// unfitted is the fit of nothing.
func (e *adjusted) unfitted() *fitted {
	f := &fitted{parts: make([]fittedClass, len(e.classes))}
	for j, c := range e.classes {
		rest := c.centred(c.gap)
		f.spent += rest.fitted
		inside := make([]float64, len(c.gap))
		for t := range inside {
			inside[t] = rest.correction * rest.rest[t]
		}
		f.parts[j] = fittedClass{inside: inside, outside: inside, known: make([]float64, e.start.Members)}
	}
	f.loss = e.loss(f)
	return f
}

// fitted is a model with what it says about each class.
type fitted struct {
	parts []fittedClass
	loss  float64 // the variance it leaves, up to a constant
	spent float64 // degrees of freedom of the fit
}

type fittedClass struct {
	known   []float64 // per member: E_k[(1[i∈S] − p)·fit(S)], exactly
	inside  []float64 // residuals of the mean of the fits without one pair
	outside []float64 // residual of each pair by the fit without it
}

// loss is what the residuals add to the variance of the values.
func (e *adjusted) loss(f *fitted) float64 {
	loss := 0.0
	for j, c := range e.classes {
		loss += c.importance(e.start.Members) * squares(f.parts[j].outside) * c.open()
	}
	return loss
}

// importance is the weight of a squared residual of the class in the variance
// of the values.
func (c *class) importance(n int) float64 {
	if len(c.side) == 0 {
		return 0
	}
	p, m := float64(c.k)/float64(n), float64(len(c.side))
	return c.factor * c.factor * p * (1 - p) / (m * m)
}

func squares(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	return sum
}

// combine adds up, class by class, what the model says exactly and the mean of
// its residuals. With m of T pairs seen, that is the sum over those seen, which
// is known, and the mean of the left-out residuals for those not seen:
//
//	E[(1[i∈S] − p)·y] = E[(1[i∈S] − p)·fit] + (1/T)·Σ_seen lever·inside + (1 − m/T)·mean(lever·outside).
func (e *adjusted) combine(f *fitted) Estimate {
	n := e.start.Members
	estimate := newEstimate(n)
	rest := make([][]float64, len(e.classes))
	for j := range rest {
		rest[j] = f.parts[j].outside
	}
	errors := e.errors(rest, f.spent, true)
	for i := range n {
		value := (e.start.Whole - e.start.Empty) / float64(n)
		for j, c := range e.classes {
			part := f.parts[j]
			var outside moments
			inside := 0.0
			for t, s := range c.side {
				lever := c.lever(s, i, n)
				inside += lever * part.inside[t]
				outside.add(lever * part.outside[t])
			}
			value += c.factor * (part.known[i] + inside/c.draws.total + c.open()*outside.mean)
		}
		estimate.set(i, value, errors[i].error, errors[i].freedom)
	}
	return estimate
}

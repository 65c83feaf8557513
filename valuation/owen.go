package valuation

import "grange/internal/stream"

// Owen integrates the multilinear extension (Owen 1972; Okhrati & Lipani
// 2021): the Shapley value is the marginal contribution to a coalition which
// everyone joins with probability q, averaged over q from 0 to 1. One random
// coalition and its neighbours, each with one member more or less, give a
// sample for every member. What the samples of one coalition miss of v(N) − v(∅)
// is split equally among them, so that the values add up to it; in the mean it
// is nothing. Its zero value works.
type Owen struct {
	// Plain samples without the antithetic partner, by which every coalition
	// drawn with q comes with its complement, as drawn with 1−q.
	Plain bool
}

// Name returns "owen", with the variant.
func (m Owen) Name() string {
	if m.Plain {
		return "owen, plain"
	}
	return "owen"
}

// Begin starts an estimation.
func (m Owen) Begin(s Start) (Estimation, error) {
	return &owen{start: s, plain: m.Plain, marginal: make([]moments, s.Members)}, nil
}

type owen struct {
	start    Start
	plain    bool
	tasks    int
	drawn    []Coalition
	marginal []moments
}

func (o *owen) Samples() int { return o.marginal[0].count }

func (o *owen) Ask(q *Query) {
	n := o.start.Members
	o.drawn = o.drawn[:0]
	most := n + 1
	if !o.plain {
		most *= 2
	}
	for !q.Full() && q.Fits(most) {
		random := stream.New(o.start.Seed, "valuation owen", o.tasks)
		chance := random.Float64()
		var c Coalition
		for i := range n {
			if random.Float64() < chance {
				c = c.With(i)
			}
		}
		wanted := neighbourhood(nil, c, n)
		if !o.plain {
			wanted = neighbourhood(wanted, Everyone(n)&^c, n)
		}
		q.Add(wanted...)
		o.drawn = append(o.drawn, c)
		o.tasks++
	}
}

// neighbourhood appends c and every coalition that differs from it by one
// member.
func neighbourhood(list []Coalition, c Coalition, n int) []Coalition {
	list = append(list, c)
	for i := range n {
		list = append(list, c^1<<i)
	}
	return list
}

func (o *owen) Tell(worths []float64) {
	n := o.start.Members
	for _, c := range o.drawn {
		sides := []Coalition{c}
		if !o.plain {
			sides = append(sides, Everyone(n)&^c)
		}
		gain := make([]float64, n)
		for _, side := range sides {
			for i := range n {
				step := worths[1+i] - worths[0]
				if side.Has(i) {
					step = -step
				}
				gain[i] += step / float64(len(sides))
			}
			worths = worths[n+1:]
		}
		missing := o.start.Whole - o.start.Empty
		for _, g := range gain {
			missing -= g
		}
		for i := range n {
			o.marginal[i].add(gain[i] + missing/float64(n))
		}
	}
}

// owenLeast is how many coalitions an error takes. Their sizes are a matter of
// chance, and so is what each can tell: where nearly all that counts happens at
// one size, a few may all have missed it.
const owenLeast = 10

func (o *owen) Estimate() Estimate {
	least := owenLeast
	if !o.plain {
		least /= 2
	}
	return meanEstimate(o.marginal, least)
}

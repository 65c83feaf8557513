package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"

	"grange/valuation"
)

// budget is how many coalitions a sampler values at most, or about how many
// where other rules stop it.
func budget(members int, flags valueFlags) int {
	if flags.evaluations > 0 {
		return flags.evaluations
	}
	return 100 * members
}

// rules are what stops a sampler; the first that is met does.
func rules(members int, flags valueFlags) valuation.Rule {
	var list []valuation.Rule
	if flags.stopError > 0 {
		list = append(list, valuation.StandardError(flags.stopError))
	}
	if flags.stopRanks > 0 {
		list = append(list, valuation.RankStable(flags.stopRanks))
	}
	switch {
	case flags.evaluations > 0 || len(list) == 0 && flags.time == 0:
		list = append(list, valuation.Evaluations(budget(members, flags)))
	case flags.time == 0: // samples that never vary have no error to fall below anything
		list = append(list, valuation.Evaluations(10*budget(members, flags)))
	}
	return valuation.Any(list...)
}

// sampled estimates values, from one sample at least.
func sampled(ctx context.Context, g *valuation.Game, m valuation.Method, seed uint64, stop valuation.Rule, flags valueFlags) (*valuation.Result, error) {
	w := &witness{Method: m}
	r, err := valuation.Estimates(ctx, g, w, valuation.Settings{Seed: seed, Workers: flags.workers, Stop: stop})
	if r != nil && r.Status == valuation.Deadline && r.Samples == 0 {
		return nil, fmt.Errorf("%s has no sample yet: %w", m.Name(), context.DeadlineExceeded)
	}
	if err == nil {
		err = w.check(ctx, r.Evaluations)
	}
	if errors.Is(err, errFew) {
		return nil, err
	}
	return r, err
}

// witness is a method that remembers the estimations it began.
type witness struct {
	valuation.Method
	starts []valuation.Start
	begun  []valuation.Estimation
}

// Begin starts an estimation.
func (w *witness) Begin(s valuation.Start) (valuation.Estimation, error) {
	e, err := w.Method.Begin(s)
	if err == nil {
		w.starts, w.begun = append(w.starts, s), append(w.begun, e)
	}
	return e, err
}

// errFew is matched by what tells that a sampler had too few evaluations.
var errFew = errors.New("too few evaluations")

// check complains when an estimation ended without a sample: then its values
// say nothing, and nobody is to be paid by them. It is told how many coalitions
// each estimation came to value; those that valued all need no sample.
func (w *witness) check(ctx context.Context, evaluations ...int) error {
	need := 0
	for i, valued := range evaluations {
		if members := w.starts[i].Members; w.begun[i].Samples() == 0 && (members > valuation.ExactLimit || valued < 1<<members) {
			need = max(need, leastEvaluations(context.WithoutCancel(ctx), w.Method, w.starts[i]))
		}
	}
	if need == 0 {
		return nil
	}
	return &hintError{err: fmt.Errorf("%w: one sample of %s takes up to %d with %d members", errFew, w.Name(), need, w.starts[0].Members), code: exitUsage,
		try: fmt.Sprintf("--evaluations %d, or more", need)}
}

// leastEvaluations returns how many evaluations are enough for a sample. It
// plays a game in which only everyone together is worth anything, so that no
// order is cut short.
func leastEvaluations(ctx context.Context, m valuation.Method, start valuation.Start) int {
	everyone := valuation.Everyone(start.Members)
	g := &valuation.Game{Members: start.Members, Utility: valuation.UtilityFunc(func(_ context.Context, c valuation.Coalition) (float64, error) {
		if c == everyone {
			return 1, nil
		}
		return 0, nil
	})}
	enough := func(evaluations int) bool {
		r, err := valuation.Estimates(ctx, g, m, valuation.Settings{Seed: start.Seed, Stop: valuation.Evaluations(max(2, evaluations))})
		return err != nil || r.Samples > 0 || r.Status == valuation.Exact
	}
	high := 4
	for high < math.MaxInt32 && !enough(high) {
		high *= 2
	}
	return sort.Search(high, enough)
}

package valuation

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
)

// Method is a way to estimate values from the worths of some coalitions. It
// asks, is told, and can say at any time what it knows; it runs nothing
// itself, so that the same code serves any number of workers.
type Method interface {
	// Name is a word for results, such as "permutation".
	Name() string
	// Begin starts an estimation.
	Begin(Start) (Estimation, error)
}

// Start is what an estimation starts from.
type Start struct {
	Members      int
	Seed         uint64
	Empty, Whole float64 // v(∅) and v(N)
}

// Estimation is a Method at work.
type Estimation interface {
	// Ask adds the coalitions of the next samples to the query. When it adds
	// none there is nothing more that the query has room for.
	Ask(*Query)
	// Tell gives the worths of the coalitions asked for, in order.
	Tell(worths []float64)
	// Samples counts the samples told.
	Samples() int
	// Estimate returns the values by all samples told so far.
	Estimate() Estimate
}

// Query collects the coalitions of one batch.
type Query struct {
	coalitions []Coalition
	fresh      map[Coalition]bool
	known      map[Coalition]float64
	room       int
	rest       float64 // how many coalitions are not known
	batch      int
}

// Add adds the coalitions of one sample, all or none: it reports false when
// valuing those which are not known yet would exceed the bound.
func (q *Query) Add(sample ...Coalition) bool {
	var added []Coalition
	for _, c := range sample {
		if _, known := q.known[c]; !known && !q.fresh[c] {
			q.fresh[c] = true
			added = append(added, c)
		}
	}
	if len(q.fresh) > q.room {
		for _, c := range added {
			delete(q.fresh, c)
		}
		return false
	}
	q.coalitions = append(q.coalitions, sample...)
	return true
}

// Full reports whether the batch is large enough.
func (q *Query) Full() bool { return len(q.coalitions) >= q.batch }

// Fits reports whether there is room for so many coalitions more, whichever
// they are. A sample must not depend on what happens to be known: near the
// bound those that cost nothing would be the only ones left.
func (q *Query) Fits(coalitions int) bool {
	return coalitions <= q.room-len(q.fresh) || q.rest <= float64(q.room)
}

// Settings say how an estimation runs. The zero value works.
type Settings struct {
	// Seed determines all chance. The same seed gives the same result.
	Seed uint64
	// Workers is how many coalitions are valued at once. It does not change
	// the result. Default: 1.
	Workers int
	// Stop says when to stop. Default: after 100·N evaluations.
	Stop Rule
}

// Estimates runs the method and returns its result when the rule is met. It
// comes with a result whenever v(∅) and v(N) are known: when the context's
// deadline passes, that of the samples so far, and when the utility fails the
// same beside the error.
func Estimates(ctx context.Context, g *Game, method Method, settings Settings) (*Result, error) {
	r, err := newRun(ctx, g, method, settings)
	if err != nil {
		return nil, err
	}
	for r.step(ctx) {
	}
	return r.result(), r.err
}

// Steps runs the method and yields its result after every batch; the last one
// is that of Estimates. A caller may stop at any of them.
func Steps(ctx context.Context, g *Game, method Method, settings Settings) iter.Seq2[*Result, error] {
	return func(yield func(*Result, error) bool) {
		r, err := newRun(ctx, g, method, settings)
		if err != nil {
			yield(nil, err)
			return
		}
		for r.step(ctx) {
			if !yield(r.result(), nil) {
				return
			}
		}
		yield(r.result(), r.err)
	}
}

// run is one estimation with its worths.
type run struct {
	game       *Game
	method     Method
	settings   Settings
	known      map[Coalition]float64
	estimation Estimation
	watch      func(Progress) string
	bound      int
	asked      int // the samples there were when the rule was last asked
	exact      []float64
	status     Status
	reason     string
	err        error
}

func newRun(ctx context.Context, g *Game, method Method, settings Settings) (*run, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	if settings.Workers < 0 {
		return nil, fmt.Errorf("%w: %d workers", ErrSettings, settings.Workers)
	}
	settings.Workers = max(1, settings.Workers)
	if settings.Stop == nil {
		settings.Stop = Evaluations(100 * g.Members)
	}
	r := &run{game: g, method: method, settings: settings, known: map[Coalition]float64{}, bound: settings.Stop.Bound(), watch: settings.Stop.Begin()}
	if r.bound < 2 {
		return nil, fmt.Errorf("%w: a bound of %d evaluations, want at least 2", ErrSettings, r.bound)
	}
	ends := []Coalition{0, Everyone(g.Members)}
	if err := r.value(ctx, ends); err != nil {
		return nil, err
	}
	var err error
	r.estimation, err = method.Begin(Start{Members: g.Members, Seed: settings.Seed, Empty: r.known[0], Whole: r.known[ends[1]]})
	return r, err
}

// value fills in the worths of coalitions not known yet. What was computed
// before a failure is kept.
func (r *run) value(ctx context.Context, fresh []Coalition) error {
	values := make([]float64, len(fresh))
	for i := range values {
		values[i] = math.NaN()
	}
	err := evaluate(ctx, r.game, r.settings.Workers, values, func(i int) Coalition { return fresh[i] })
	for i, v := range values {
		if !math.IsNaN(v) {
			r.known[fresh[i]] = v
		}
	}
	return err
}

// firstBatch is how many coalitions the first batch asks for. Later ones grow
// with what is known, so that estimating on the way costs no more than a few
// times what it costs at the end.
const firstBatch = 64

// step runs one batch and reports whether there is more to do.
func (r *run) step(ctx context.Context) bool {
	if r.complete() { // a single member
		return false
	}
	q := &Query{fresh: map[Coalition]bool{}, known: r.known, room: r.bound - len(r.known), rest: math.Ldexp(1, r.game.Members) - float64(len(r.known)), batch: max(firstBatch, len(r.known)/4)}
	r.estimation.Ask(q)
	if len(q.coalitions) == 0 {
		r.status, r.reason = Satisfied, fmt.Sprintf("%d evaluations: the next sample would exceed %d", len(r.known), r.bound)
		return false
	}
	var fresh []Coalition
	for _, c := range q.coalitions {
		if q.fresh[c] {
			delete(q.fresh, c)
			fresh = append(fresh, c)
		}
	}
	if err := r.value(ctx, fresh); err != nil {
		r.fail(ctx, err)
		return false
	}
	worths := make([]float64, len(q.coalitions))
	for i, c := range q.coalitions {
		worths[i] = r.known[c]
	}
	r.estimation.Tell(worths)
	if r.complete() {
		return false
	}
	if r.estimation.Samples() == r.asked { // nothing new was learnt
		return true
	}
	r.asked = r.estimation.Samples()
	if why := r.watch(Progress{Evaluations: len(r.known), Result: r.result}); why != "" {
		r.status, r.reason = Satisfied, why
		return false
	}
	return !r.finish(ctx)
}

// finish values the rest of the coalitions once most of them are known and the
// bound allows it: then the values are exact.
func (r *run) finish(ctx context.Context) bool {
	n := r.game.Members
	if n > ExactLimit || r.bound < 1<<n || len(r.known) <= 1<<n/2 {
		return false
	}
	var fresh []Coalition
	for c := range Everyone(n) + 1 {
		if _, known := r.known[c]; !known {
			fresh = append(fresh, c)
		}
	}
	if err := r.value(ctx, fresh); err != nil {
		r.fail(ctx, err)
		return true
	}
	return r.complete()
}

// complete gives the exact values if every coalition is known.
func (r *run) complete() bool {
	n := r.game.Members
	if n > ExactLimit || len(r.known) < 1<<n {
		return false
	}
	table := make(Table, 1<<n)
	for c := range table {
		table[c] = r.known[Coalition(c)]
	}
	values, err := Shapley(table)
	if err != nil {
		r.status, r.reason, r.err = Failed, err.Error(), err
		return true
	}
	r.exact, r.status, r.reason = values, Exact, fmt.Sprintf("all %d coalitions are valued", len(table))
	return true
}

// fail notes why there are no more worths. Only the run's own time can be up: a
// utility that ran out of a time it set itself has failed.
func (r *run) fail(ctx context.Context, err error) {
	up := errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	if up && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		r.status, r.reason = Deadline, "the time was up"
		return
	}
	r.status, r.reason, r.err = Failed, err.Error(), err
}

func (r *run) result() *Result {
	result := &Result{
		Method: r.method.Name(), Names: r.game.Names,
		Empty: r.known[0], Whole: r.known[Everyone(r.game.Members)],
		Evaluations: len(r.known), Samples: r.estimation.Samples(),
		Status: r.status, Reason: r.reason,
	}
	if r.exact != nil {
		result.Estimate = exactEstimate(r.exact)
		return result
	}
	result.Estimate = r.estimation.Estimate()
	for _, e := range result.Errors {
		if math.IsInf(e, 1) {
			result.Warnings = append(result.Warnings, fmt.Sprintf("too few samples (%d), or too much alike, for a standard error", result.Samples))
			break
		}
	}
	return result
}

package reconstruct

import (
	"context"
	"fmt"
	"math"
	"slices"

	"grange/valuation"
)

// Outcome is the values added up over the rounds. Its errors speak of the
// rounds that were valued; when some were skipped, the status is never Exact,
// a warning says how many, and errors of zero become unknown ones.
type Outcome struct {
	valuation.Result
	Rounds  []RoundOutcome
	Skipped int // how many of the rounds were not valued
}

// RoundOutcome is one round's part.
type RoundOutcome struct {
	Round         int
	Before, After float64   // how good the global model was
	Skipped       bool      // the round moved too little to be valued
	Values        []float64 // taken to be zero where it was skipped
	Evaluations   int
}

// MultiRound values every round exactly, by rebuilding a model for each of the
// 2^N coalitions. Its zero value works.
type MultiRound struct {
	valuation.Tabulation
}

// Value returns the Shapley values of all rounds, added up. When it fails, the
// rounds valued so far come with the error.
func (m MultiRound) Value(ctx context.Context, h History, evaluate Evaluate) (*Outcome, error) {
	sum, err := begin("multi-round", h)
	if err != nil {
		return nil, err
	}
	for round := 1; round <= h.Rounds(); round++ {
		r, err := load(ctx, h, round)
		if err != nil {
			return sum.fail(err)
		}
		table, err := m.Table(ctx, sum.game(r, evaluate))
		if err != nil {
			return sum.fail(fmt.Errorf("round %d: %w", round, err))
		}
		values, err := valuation.Shapley(table)
		if err != nil {
			return sum.fail(fmt.Errorf("round %d: %w", round, err))
		}
		n := len(values)
		sum.add(RoundOutcome{Round: round, Before: table[0], After: table[len(table)-1], Values: values, Evaluations: len(table)},
			make([]float64, n), make([]float64, n))
	}
	return sum.finish(valuation.Exact, "all coalitions of all rounds are valued"), nil
}

// GTG is guided truncation: in each round random orders of the members, in
// which everyone comes first equally often, are followed until the coalition's
// model is about as good as the round's; rounds that moved nothing are skipped.
// Its zero value works.
type GTG struct {
	// Between is how much a round has to change the worth of the global model
	// for being valued. Default: 0.002. Negative: every round is valued.
	Between float64
	// Method samples the coalitions of a round. Default: guided permutations,
	// cut short within 2% of what the round brought, as in the paper. With
	// valuation.Adjusted the errors are several times smaller at the same cost.
	Method valuation.Method
	// Settings are those of every round; the seed of each is derived from
	// Settings.Seed. Default of Settings.Stop: up to 100·N evaluations a round,
	// or all 2^N, which is exact, where these are fewer.
	Settings valuation.Settings
}

// Value returns the estimated Shapley values of all rounds, added up. When it
// fails, the rounds valued so far come with the error.
func (m GTG) Value(ctx context.Context, h History, evaluate Evaluate) (*Outcome, error) {
	if m.Between == 0 {
		m.Between = 0.002
	}
	if m.Method == nil {
		m.Method = valuation.Permutation{Guided: true, Truncation: 0.02}
	}
	if m.Settings.Stop == nil {
		n := len(h.Members())
		m.Settings.Stop = valuation.Evaluations(int(min(100*float64(n), math.Ldexp(1, n))))
	}
	sum, err := begin("gtg", h)
	if err != nil {
		return nil, err
	}
	for round := 1; round <= h.Rounds(); round++ {
		r, err := load(ctx, h, round)
		if err != nil {
			return sum.fail(err)
		}
		if err := m.round(ctx, sum, r, round, evaluate); err != nil {
			return sum.fail(fmt.Errorf("round %d: %w", round, err))
		}
	}
	reason := fmt.Sprintf("all %d rounds are valued or skipped", h.Rounds())
	if skipped := sum.outcome.Skipped; skipped > 0 {
		reason = fmt.Sprintf("%d rounds are valued, %d skipped", h.Rounds()-skipped, skipped)
	}
	return sum.finish(valuation.Satisfied, reason), nil
}

// round values one round, or skips it.
func (m GTG) round(ctx context.Context, sum *total, r *Round, round int, evaluate Evaluate) error {
	game := sum.game(r, evaluate)
	cache := valuation.Cached(game.Utility)
	game.Utility = cache
	everyone := valuation.Everyone(game.Members)
	outcome := RoundOutcome{Round: round, Values: make([]float64, game.Members), Evaluations: 2}
	var err error
	if outcome.Before, err = cache.Value(ctx, 0); err != nil {
		return err
	}
	if outcome.After, err = cache.Value(ctx, everyone); err != nil {
		return err
	}
	if math.Abs(outcome.After-outcome.Before) <= m.Between {
		outcome.Skipped = true
		sum.skipped(m.Between)
		sum.add(outcome, outcome.Values, outcome.Values)
		return nil
	}
	settings := m.Settings
	settings.Seed += uint64(round) * 0x9e3779b97f4a7c15
	result, err := valuation.Estimates(ctx, game, m.Method, settings)
	if err != nil {
		return err
	}
	outcome.Values, outcome.Evaluations = result.Values, result.Evaluations
	sum.add(outcome, result.Errors, result.Spread)
	if len(result.Warnings) > 0 {
		sum.outcome.Warnings = append(sum.outcome.Warnings, fmt.Sprintf("round %d: %s", round, result.Warnings[0]))
	}
	return nil
}

// total adds up rounds.
type total struct {
	outcome Outcome
	names   []string
	limit   float64 // of a round's change, up to which it was skipped
}

func begin(method string, h History) (*total, error) {
	n := len(h.Members())
	if err := valuation.CheckMembers(n); err != nil {
		return nil, err
	}
	if h.Rounds() == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrShape)
	}
	t := &total{names: h.Members()}
	t.outcome.Method, t.outcome.Names = method, slices.Clone(h.Members())
	t.outcome.Estimate = valuation.Estimate{Values: make([]float64, n), Errors: make([]float64, n), Spread: make([]float64, n)}
	return t, nil
}

func (t *total) game(r *Round, evaluate Evaluate) *valuation.Game {
	return &valuation.Game{Members: len(t.names), Names: t.names, Utility: r.Utility(evaluate)}
}

// add takes a round. Rounds are sampled independently, so that squared errors
// add up.
func (t *total) add(round RoundOutcome, errors, spread []float64) {
	o := &t.outcome
	if len(o.Rounds) == 0 {
		o.Empty = round.Before
	}
	o.Whole = round.After
	o.Rounds = append(o.Rounds, round)
	o.Evaluations += round.Evaluations
	o.Samples++
	for n := range o.Values {
		o.Values[n] += round.Values[n]
		o.Errors[n] = math.Hypot(o.Errors[n], errors[n])
		o.Spread[n] = math.Hypot(o.Spread[n], spread[n])
	}
}

// skipped notes that a round is not valued. That its parts add up to little
// does not make each of them small.
func (t *total) skipped(limit float64) {
	t.outcome.Skipped++
	t.limit = limit
}

func (t *total) finish(status valuation.Status, reason string) *Outcome {
	o := &t.outcome
	o.Status, o.Reason = status, reason
	if o.Skipped == 0 {
		return o
	}
	o.Warnings = append(o.Warnings, fmt.Sprintf("%d of %d rounds changed the worth by no more than %g and were skipped: they count as zero, and the errors do not speak of them",
		o.Skipped, len(o.Rounds), t.limit))
	for n, e := range o.Errors {
		if e == 0 {
			o.Errors[n], o.Spread[n] = math.Inf(1), math.Inf(1)
		}
	}
	return o
}

func (t *total) fail(err error) (*Outcome, error) {
	return t.finish(valuation.Failed, err.Error()), err
}

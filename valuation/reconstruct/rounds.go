package reconstruct

import (
	"context"
	"fmt"
	"math"
	"slices"

	"grange/valuation"
)

// Outcome is the values added up over the rounds.
type Outcome struct {
	valuation.Result
	Rounds []RoundOutcome
}

// RoundOutcome is one round's part.
type RoundOutcome struct {
	Round         int
	Before, After float64   // how good the global model was
	Skipped       bool      // the round moved too little to be valued
	Values        []float64 // zero where it was skipped
	Evaluations   int
}

// MultiRound values every round exactly, by rebuilding a model for each of the
// 2^N coalitions. Its zero value works.
type MultiRound struct {
	valuation.Tabulation
	// Decay is what a round counts for, relative to the one before. Default: 1.
	Decay float64
}

// Value returns the Shapley values of all rounds, added up. When it fails, the
// rounds valued so far come with the error.
func (m MultiRound) Value(ctx context.Context, h History, evaluate Evaluate) (*Outcome, error) {
	sum, err := begin("multi-round", h, m.Decay)
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
	// Decay is what a round counts for, relative to the one before. Default: 1.
	Decay float64
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
	sum, err := begin("gtg", h, m.Decay)
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
	return sum.finish(valuation.Satisfied, fmt.Sprintf("all %d rounds are valued or skipped", h.Rounds())), nil
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
	decay   float64
	weight  float64 // of the next round
}

func begin(method string, h History, decay float64) (*total, error) {
	if decay == 0 {
		decay = 1
	}
	n := len(h.Members())
	if err := valuation.CheckMembers(n); err != nil {
		return nil, err
	}
	switch {
	case h.Rounds() == 0:
		return nil, fmt.Errorf("%w: there are none", ErrShape)
	case !(decay > 0 && decay <= 1):
		return nil, fmt.Errorf("%w: decay of %v, want 0 < decay ≤ 1", valuation.ErrSettings, decay)
	}
	t := &total{names: h.Members(), decay: decay, weight: 1}
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
		o.Values[n] += t.weight * round.Values[n]
		o.Errors[n] = math.Hypot(o.Errors[n], t.weight*errors[n])
		o.Spread[n] = math.Hypot(o.Spread[n], t.weight*spread[n])
	}
	t.weight *= t.decay
}

func (t *total) finish(status valuation.Status, reason string) *Outcome {
	t.outcome.Status, t.outcome.Reason = status, reason
	return &t.outcome
}

func (t *total) fail(err error) (*Outcome, error) {
	return t.finish(valuation.Failed, err.Error()), err
}

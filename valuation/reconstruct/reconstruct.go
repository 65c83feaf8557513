// Package reconstruct values the members of a federated training from the
// updates they uploaded, without training anything again. What a coalition
// would have reached is rebuilt by averaging its members' updates only, and
// evaluated on a validation set.
//
// OneRound rebuilds one final model per coalition from all rounds together and
// MultiRound one per coalition and round (Song et al. 2019). GTG does as
// MultiRound, but samples the coalitions, cuts orders short within a round,
// and skips rounds which moved nothing (Liu et al. 2022). Replay rebuilds final
// models too, and lets what sets a coalition apart fade from round to round, as
// training does.
package reconstruct

import (
	"context"
	"errors"
	"fmt"
	"math"

	"grange/valuation"
)

var (
	// ErrMissing is returned when the update of a member that took part in a
	// round is not there.
	ErrMissing = errors.New("reconstruct: update missing")
	// ErrShape is returned for rounds that do not fit together.
	ErrShape = errors.New("reconstruct: rounds do not fit together")
	// ErrNotFinite is returned for a model with a weight that is NaN or
	// infinite, such as that of a training which diverged.
	ErrNotFinite = errors.New("reconstruct: model is not finite")
)

// Round is one round of a federated training.
type Round struct {
	// Global is the model ω^{r−1} that the members started from.
	Global []float32
	// Updates are the models ω_n^r that the members uploaded, one per member.
	// Only that of a member with weight 0 may be nil.
	Updates [][]float32
	// Weights are the members' weights in the average, s_n: 0 for a member
	// that took no part in the round.
	Weights []float64
	// Rate is the global rate η_g. Default: 1.
	Rate float64
}

// History is a finished training, round by round. Rounds count from 1.
type History interface {
	// Members returns the members' names.
	Members() []string
	// Rounds returns the number of rounds.
	Rounds() int
	// Round returns one round. It may be read from a disk: it is asked for
	// once by each method.
	Round(ctx context.Context, round int) (*Round, error)
}

// Recording is a History in memory.
type Recording struct {
	Names    []string
	Finished []Round
}

// Members returns the members' names.
func (r *Recording) Members() []string { return r.Names }

// Rounds returns the number of rounds.
func (r *Recording) Rounds() int { return len(r.Finished) }

// Round returns one round.
func (r *Recording) Round(_ context.Context, round int) (*Round, error) {
	return &r.Finished[round-1], nil
}

// Evaluate says how good a model is on the validation set, such as its
// accuracy. It must not change or keep the weights, and with several workers
// it is called from several goroutines.
type Evaluate func(ctx context.Context, weights []float32) (float64, error)

// load asks for a round and makes sure that it is whole.
func load(ctx context.Context, h History, round int) (*Round, error) {
	r, err := h.Round(ctx, round)
	if err != nil {
		return nil, fmt.Errorf("round %d: %w", round, err)
	}
	names := h.Members()
	if len(r.Updates) != len(names) || len(r.Weights) != len(names) {
		return nil, fmt.Errorf("%w: round %d has %d updates and %d weights for %d members", ErrShape, round, len(r.Updates), len(r.Weights), len(names))
	}
	for n, update := range r.Updates {
		switch {
		case !(r.Weights[n] >= 0) || math.IsInf(r.Weights[n], 1):
			return nil, fmt.Errorf("%w: the weight of %s in round %d is %v", ErrShape, names[n], round, r.Weights[n])
		case r.Weights[n] == 0:
		case update == nil:
			return nil, fmt.Errorf("%w: that of %s in round %d", ErrMissing, names[n], round)
		case len(update) != len(r.Global):
			return nil, fmt.Errorf("%w: the update of %s in round %d has %d values, the model %d", ErrShape, names[n], round, len(update), len(r.Global))
		case !finite(update):
			return nil, fmt.Errorf("%w: the update of %s in round %d", ErrNotFinite, names[n], round)
		}
	}
	if !finite(r.Global) {
		return nil, fmt.Errorf("%w: the global model before round %d", ErrNotFinite, round)
	}
	return r, nil
}

// finite reports whether no weight is NaN or infinite: x−x is zero only then.
func finite(weights []float32) bool {
	sum := float32(0)
	for _, x := range weights {
		sum += x - x
	}
	return sum == 0
}

// rate returns η_g.
func (r *Round) rate() float64 {
	if r.Rate == 0 {
		return 1
	}
	return r.Rate
}

// Model returns the model a coalition would have reached in this round: the
// average (1−η_g)·ω + η_g·Σ s_n·ω_n / Σ s_n over its members. When none of them
// took part it is the model the round started from.
func (r *Round) Model(c valuation.Coalition) []float32 {
	after := make([]float32, len(r.Global))
	total := 0.0
	for n := range c.Members() {
		total += r.Weights[n]
	}
	if total == 0 {
		copy(after, r.Global)
		return after
	}
	const block = 4096
	var sums [block]float64
	for from := 0; from < len(after); from += block {
		part := sums[:min(block, len(after)-from)]
		clear(part)
		for n := range c.Members() {
			if weight := r.Weights[n]; weight > 0 {
				for j, x := range r.Updates[n][from : from+len(part)] {
					part[j] += weight * float64(x)
				}
			}
		}
		for j, sum := range part {
			after[from+j] = float32((1-r.rate())*float64(r.Global[from+j]) + r.rate()*(sum/total))
		}
	}
	return after
}

// Utility is how good the model of a coalition is after this round.
func (r *Round) Utility(evaluate Evaluate) valuation.Utility {
	return valuation.UtilityFunc(func(ctx context.Context, c valuation.Coalition) (float64, error) {
		return evaluate(ctx, r.Model(c))
	})
}

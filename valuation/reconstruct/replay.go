package reconstruct

import (
	"context"
	"fmt"
	"slices"

	"grange/valuation"
)

// Replay rebuilds the final model of every coalition by going through the
// rounds once more with its members' updates alone. Those were trained from the
// common model ω^{r−1}; the coalition stands elsewhere by then, and a part of
// that difference is still there after its members have trained:
//
//	ω_S^r = (average of S in round r) + Carry·(ω_S^{r−1} − ω^{r−1}).
//
// After one round this is what training S would have given, and for everyone it
// is the trained model after any number of rounds. Its zero value works.
type Replay struct {
	// Carry is the part of a difference that outlasts a round of training. With
	// 1 all of it does and the steps just add up, as in OneRound; the longer
	// members train in a round, the less. Negative: none, so that only the last
	// round counts. Default: 0.35, which was closest to retraining where members
	// trained for two to four epochs a round; see docs/valuation.md.
	Carry float64
}

// DefaultCarry is the default of Replay.Carry.
const DefaultCarry = 0.35

// Game returns the game of the final models. Any method of package valuation
// can value it.
func (m Replay) Game(ctx context.Context, h History, evaluate Evaluate) (*valuation.Game, error) {
	carry := m.Carry
	switch {
	case carry == 0:
		carry = DefaultCarry
	case carry < 0:
		carry = 0
	case !(carry <= 1):
		return nil, fmt.Errorf("%w: carry of %v, want at most 1", valuation.ErrSettings, carry)
	}
	if err := valuation.CheckMembers(len(h.Members())); err != nil {
		return nil, err
	}
	if h.Rounds() == 0 {
		return nil, fmt.Errorf("%w: there are none", ErrShape)
	}
	var start []float32
	var spans []*span
	for round := 1; round <= h.Rounds(); round++ {
		r, err := load(ctx, h, round)
		if err != nil {
			return nil, err
		}
		if start == nil {
			start = r.Global
		}
		if len(r.Global) != len(start) {
			return nil, fmt.Errorf("%w: the model has %d values in round %d, %d in round 1", ErrShape, len(r.Global), round, len(start))
		}
		if len(spans) == 0 || !slices.Equal(spans[len(spans)-1].weights, r.Weights) {
			spans = append(spans, newSpan(r))
		}
		spans[len(spans)-1].add(r, carry)
	}
	utility := func(ctx context.Context, c valuation.Coalition) (float64, error) {
		place := make([]float64, len(start))
		for i, x := range start {
			place[i] = float64(x)
		}
		for _, s := range spans {
			s.move(place, c)
		}
		final := make([]float32, len(start))
		for i, x := range place {
			final[i] = float32(x)
		}
		return evaluate(ctx, final)
	}
	return &valuation.Game{Members: len(h.Members()), Names: h.Members(), Utility: valuation.UtilityFunc(utility)}, nil
}

// OneRound returns the game of the final models in which the model of a
// coalition starts from the first round's and takes, in every round, the
// weighted mean of the steps its members took in the real training.
func OneRound(ctx context.Context, h History, evaluate Evaluate) (*valuation.Game, error) {
	return Replay{Carry: 1}.Game(ctx, h, evaluate)
}

// span is rounds in a row in which the members had the same weights, usually
// all of them. Together they move a coalition from x to
// kept·x + common + (weighted mean of its members' own).
type span struct {
	weights []float64
	kept    float64
	common  []float64
	own     [][]float64 // nil for members with weight 0
}

func newSpan(r *Round) *span {
	s := &span{weights: r.Weights, kept: 1, common: make([]float64, len(r.Global)), own: make([][]float64, len(r.Weights))}
	for n, w := range r.Weights {
		if w > 0 {
			s.own[n] = make([]float64, len(r.Global))
		}
	}
	return s
}

// add appends a round: x becomes carry·x + (1−carry)·ω + η_g·(mean − ω).
func (s *span) add(r *Round, carry float64) {
	s.kept *= carry
	for i, x := range r.Global {
		s.common[i] = carry*s.common[i] + (1-carry)*float64(x)
	}
	for n, own := range s.own {
		for i := range own {
			own[i] = carry*own[i] + r.rate()*(float64(r.Updates[n][i])-float64(r.Global[i]))
		}
	}
}

// move takes a coalition through the rounds. One without anybody in them stays
// where it is: nobody trains.
func (s *span) move(place []float64, c valuation.Coalition) {
	total := 0.0
	for n := range c.Members() {
		total += s.weights[n]
	}
	if total == 0 {
		return
	}
	for i, x := range s.common {
		place[i] = s.kept*place[i] + x
	}
	for n := range c.Members() {
		if own := s.own[n]; own != nil {
			share := s.weights[n] / total
			for i, x := range own {
				place[i] += share * x
			}
		}
	}
}

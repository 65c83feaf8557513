package valuation

import (
	"context"
	"fmt"
	"math"
	"math/bits"
)

const (
	// AutomaticLimit is the largest number of members whose coalitions are all
	// valued without being asked to.
	AutomaticLimit = 12
	// ExactLimit is the largest number of members whose coalitions are all
	// valued on request.
	ExactLimit = 24
)

// Table holds the worth of every coalition: element S is v(S), the index being
// the Coalition's bit set. Its length is 2^N.
type Table []float64

// Tabulation values every coalition. Its zero value works.
type Tabulation struct {
	// Limit is the largest number of members accepted, at most ExactLimit.
	// Default: AutomaticLimit.
	Limit int
	// Workers is how many coalitions are valued at once. Default: 1.
	Workers int
}

// Table values all 2^N coalitions of g. When a worth fails, the table comes
// with the error: what was computed is in it, the rest is NaN.
func (t Tabulation) Table(ctx context.Context, g *Game) (Table, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	limit := t.Limit
	if limit == 0 {
		limit = AutomaticLimit
	}
	if limit < 0 || limit > ExactLimit {
		return nil, fmt.Errorf("%w: the limit is %d members, want up to %d", ErrSettings, limit, ExactLimit)
	}
	if g.Members > limit {
		return nil, &TooLargeError{Members: g.Members, Limit: limit}
	}
	table := make(Table, 1<<g.Members)
	for c := range table {
		table[c] = math.NaN()
	}
	return table, evaluate(ctx, g, max(1, t.Workers), table, func(i int) Coalition { return Coalition(i) })
}

// Members returns N.
func (t Table) Members() int { return bits.Len(uint(len(t))) - 1 }

// Value makes a Table a Utility.
func (t Table) Value(_ context.Context, c Coalition) (float64, error) {
	if uint64(c) >= uint64(len(t)) {
		return 0, fmt.Errorf("%w: coalition %v is not among %d", ErrTable, c, len(t))
	}
	return t[c], nil
}

// check reports whether the length is right and every worth a number.
func (t Table) check() error {
	if n := t.Members(); len(t) < 2 || len(t) != 1<<n {
		return fmt.Errorf("%w: there are %d", ErrTable, len(t))
	}
	// x−x is zero, or NaN when x is not finite.
	sum := 0.0
	for _, v := range t {
		sum += v - v
	}
	if sum == 0 {
		return nil
	}
	for c, v := range t {
		if v-v != 0 {
			return &CoalitionError{Coalition: Coalition(c), Err: fmt.Errorf("%w: %v", ErrNotFinite, v)}
		}
	}
	return nil
}

package valuation

import (
	"context"
	"fmt"

	"grange/game"
)

// Utility says what a coalition is worth, v(S). It must give the same worth
// whenever it is asked for the same coalition: chance inside, such as the seed
// of a training run, has to be a function of the coalition (see Averaged).
// With Settings.Workers above 1 it is called from several goroutines at once.
type Utility interface {
	Value(ctx context.Context, c Coalition) (float64, error)
}

// UtilityFunc makes a function a Utility.
type UtilityFunc func(ctx context.Context, c Coalition) (float64, error)

// Value calls f.
func (f UtilityFunc) Value(ctx context.Context, c Coalition) (float64, error) { return f(ctx, c) }

// Game is a cooperative game: members, and what each coalition of them is
// worth.
type Game struct {
	Members int      // N, from 1 to MaxMembers
	Names   []string // for results and errors; nil, or one per member
	Utility Utility
}

// CheckMembers returns ErrMembers for a number of members that no Coalition can
// hold.
func CheckMembers(members int) error {
	if members < 1 || members > MaxMembers {
		return fmt.Errorf("%w: %d, want 1 … %d", ErrMembers, members, MaxMembers)
	}
	return nil
}

// Check says what is wrong with the game. Every method asks it first.
func (g *Game) Check() error {
	if err := CheckMembers(g.Members); err != nil {
		return err
	}
	if g.Names != nil && len(g.Names) != g.Members {
		return fmt.Errorf("%w: %d names for %d members", ErrMembers, len(g.Names), g.Members)
	}
	if g.Utility == nil {
		return fmt.Errorf("%w: the game has no utility", ErrSettings)
	}
	return nil
}

// value asks for one worth and makes sure that it is a number.
func (g *Game) value(ctx context.Context, c Coalition) (float64, error) {
	v, err := g.Utility.Value(ctx, c)
	if err == nil && !game.Finite(v) {
		err = fmt.Errorf("%w: %v", ErrNotFinite, v)
	}
	if err != nil {
		return 0, &CoalitionError{Coalition: c, Names: g.Names, Err: err}
	}
	return v, nil
}

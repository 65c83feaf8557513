package mechanism

import (
	"grange/game"
	"grange/interval"
)

// EG is egalitarian sharing: I_n = 1/N, whatever anyone contributes (eq. 1 of
// the paper).
type EG struct{}

// Name returns "EG".
func (EG) Name() string { return "EG" }

// Indices returns 1/N for everyone.
func (EG) Indices(g *game.Game, s game.Profile) ([]float64, error) {
	indices := make([]float64, len(s))
	for n := range indices {
		indices[n] = 1 / float64(len(s))
	}
	return indices, nil
}

// Deviate follows member n, whose share never changes.
func (EG) Deviate(g *game.Game, s game.Profile, n int, rest game.Rest) (Deviation, error) {
	return equalShare(1 / float64(len(s))), nil
}

type equalShare float64

func (e equalShare) Share(int64) float64 { return float64(e) }

func (e equalShare) Bound(int64, int64) interval.Jet { return interval.Constant(float64(e)) }

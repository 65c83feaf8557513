package mechanism

import (
	"math"
	"slices"

	"grange/game"
)

// plain follows deviations by definition: change the profile, compute all
// indices, share.
type plain struct {
	mechanism Mechanism
	game      *game.Game
	profile   game.Profile
	member    int
}

func newPlain(m Mechanism, g *game.Game, s game.Profile, n int) *plain {
	return &plain{mechanism: m, game: g, profile: slices.Clone(s), member: n}
}

func (p *plain) Share(x int64) float64 {
	p.profile[p.member] = x
	indices, err := p.mechanism.Indices(p.game, p.profile)
	if err != nil {
		return math.NaN()
	}
	return game.Shares(indices, p.game.Negative)[p.member]
}

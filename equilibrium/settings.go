package equilibrium

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"grange/game"
)

// ErrNotFinite is returned when an accuracy, profit or payoff comes out NaN or
// infinite at some profile.
var ErrNotFinite = errors.New("equilibrium: not a finite number")

// Settings are the choices of Algorithm 1. The zero value is the paper's.
type Settings struct {
	Start         game.Profile // where to start; default StartAt(g, 0.1)
	Order         []int        // who moves when; default file order
	Simultaneous  bool         // all members answer the previous profile at once
	Tolerance     float64      // stop when nobody moved by this much; default 1
	MaxIterations int          // default 1000
	Exhaustive    bool         // try every integer instead of bounding; slow, for proof
	Trace         bool         // keep the profile after every pass in Result.Path
	// Progress, when set, is called after every pass.
	Progress func(iteration int)
}

func (s Settings) withDefaults(g *game.Game) Settings {
	if s.Start == nil {
		s.Start = StartAt(g, 0.1)
	}
	if s.Order == nil {
		s.Order = FileOrder(len(g.Members))
	}
	if s.Tolerance == 0 {
		s.Tolerance = 1
	}
	if s.MaxIterations == 0 {
		s.MaxIterations = 1000
	}
	return s
}

// StartAt returns the profile fraction·D_n, rounded, never under the minimum.
func StartAt(g *game.Game, fraction float64) game.Profile {
	s := make(game.Profile, len(g.Members))
	for n, m := range g.Members {
		x := int64(math.Round(fraction * float64(m.Capacity)))
		s[n] = min(max(x, g.Minimum), m.Capacity)
	}
	return s
}

// FileOrder returns 0 … n−1.
func FileOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// ParseOrder reads "file", "reverse" or "random:SEED". A random order is drawn
// once and kept for all passes, so that a cycle can be recognised.
func ParseOrder(word string, n int) ([]int, error) {
	order := FileOrder(n)
	switch {
	case word == "file":
	case word == "reverse":
		for i := range order {
			order[i] = n - 1 - i
		}
	case strings.HasPrefix(word, "random:"):
		seed, err := strconv.ParseUint(strings.TrimPrefix(word, "random:"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("equilibrium: order %q, want random:SEED with a whole number", word)
		}
		Shuffle(order, rand.New(rand.NewPCG(seed, 0)))
	default:
		return nil, fmt.Errorf("equilibrium: order %q, want file, reverse or random:SEED", word)
	}
	return order, nil
}

// Shuffle permutes order at random.
func Shuffle(order []int, rng *rand.Rand) {
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
}

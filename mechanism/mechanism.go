// Package mechanism has the profit-sharing rules: how a profile of
// contributions becomes one contribution index per member. Each rule is one
// small type in one file; a caller can bring another by implementing
// Mechanism, and make it fast by implementing Deviator as well.
package mechanism

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"grange/game"
	"grange/interval"
)

// ErrUnknown is returned for a mechanism nobody knows.
var ErrUnknown = errors.New("mechanism: unknown mechanism")

// Mechanism computes contribution indices I_n(s, ε).
type Mechanism interface {
	// Name is the word used in scenario files and results, such as "LOO".
	Name() string
	// Indices returns one index per member, before clipping.
	Indices(g *game.Game, s game.Profile) ([]float64, error)
}

// Deviator is a Mechanism that can follow one member's deviations cheaply.
type Deviator interface {
	Mechanism
	// Deviate prepares member n's deviations from s. rest is what the others
	// hold at s. The profile must not change while the Deviation is in use.
	Deviate(g *game.Game, s game.Profile, n int, rest game.Rest) (Deviation, error)
}

// Deviation is member n's share of the profit as a function of its own
// contribution, everyone else's being fixed.
type Deviation interface {
	// Share returns g_n when member n contributes x.
	Share(x int64) float64
}

// BoundedDeviation is a Deviation whose share can be enclosed.
type BoundedDeviation interface {
	Deviation
	// Bound encloses the share for x in [lo, hi], lo ≥ 1.
	Bound(lo, hi int64) interval.Jet
}

// Approximate is a Mechanism whose indices may carry an error of their own,
// beyond rounding, and that can state it.
type Approximate interface {
	Mechanism
	// Values returns the indices and a bound on their absolute error.
	Values(g *game.Game, s game.Profile) (indices []float64, errorBound float64, err error)
}

// All returns the paper's four mechanisms, in its order.
func All() []Mechanism { return []Mechanism{EG{}, LP{}, LOO{}, SV{}} }

// Names returns the names of All.
func Names() []string {
	var names []string
	for _, m := range All() {
		names = append(names, m.Name())
	}
	return names
}

// ByName returns the mechanism of that name.
func ByName(name string) (Mechanism, error) {
	for _, m := range All() {
		if m.Name() == name {
			return m, nil
		}
	}
	return nil, fmt.Errorf("%w %q, want one of %s", ErrUnknown, name, strings.Join(Names(), ", "))
}

// Deviate returns member n's deviations under any mechanism: its own where m
// is a Deviator, else by computing all indices anew for every contribution.
func Deviate(m Mechanism, g *game.Game, s game.Profile, n int, rest game.Rest) (Deviation, error) {
	if d, ok := m.(Deviator); ok {
		return d.Deviate(g, s, n, rest)
	}
	return newPlain(m, g, s, n), nil
}

// Plain returns member n's deviations computed from the definition, all
// indices anew for every contribution. It is the slow way that any other must
// agree with.
func Plain(m Mechanism, g *game.Game, s game.Profile, n int) Deviation {
	return newPlain(m, g, s, n)
}

// indistinct reports whether indices that add up to sum, each a difference of
// accuracies of that size, are so small that rounding has a say in the shares.
// There no enclosure of the real numbers is of use: contributions are tried one
// by one, with indices computed as their definition says.
func indistinct(sum, accuracy float64) bool {
	return !(math.Abs(sum) > 1e-6*math.Abs(accuracy))
}

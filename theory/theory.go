// Package theory tests the paper's Assumptions 1–4 on a game, numerically over
// the box of profiles, and says which of its Theorems 1–3 follow for each
// mechanism. A failed assumption comes with a counterexample anyone can
// recompute; one that held at every point tested is evidence, not proof.
//
// Assumption 2 as printed in the paper drops the chain-rule factors. The
// condition tested here is the one its proof needs, that g_n·Π(A) is concave
// in s_n: g″Π + 2g′·Π_A·A′ + g·(Π_AA·A′² + Π_A·A″) ≤ 0.
package theory

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"grange/game"
	"grange/mechanism"
)

// Settings are the choices of Check. The zero value works.
type Settings struct {
	Points int    // pairs of profile and member to test; default 2000
	Seed   uint64 // of the random profiles
}

// Report is the outcome of Check.
type Report struct {
	Assumptions []Assumption
	Theorems    []Theorem
}

// Assumption is the finding on one assumption, for one mechanism where it
// depends on it.
type Assumption struct {
	Number         int
	Statement      string
	Mechanism      string // "" for Assumptions 1 and 3
	Holds          bool   // at every point tested
	Tested         int    // how many points
	Violations     int    // at how many of them it failed
	Counterexample *Counterexample
}

// Counterexample is a point where an assumption fails, the worst one met.
type Counterexample struct {
	Profile  game.Profile
	Member   int
	Quantity string  // what has the wrong sign, such as "∂²A/∂s²"
	Value    float64 // its value there
}

// Theorem says whether a theorem of the paper applies under a mechanism.
type Theorem struct {
	Number    int
	Statement string
	Mechanism string
	Applies   bool
	Failed    []int // the assumptions that failed
}

var statements = map[int]string{
	1: "accuracy rises concavely in each member's contribution",
	2: "the allocated profit g·Π(A) is concave in the member's contribution",
	3: "the privacy cost rises convexly in the contribution",
	4: "accuracy and share fall in the member's wrong-label rate, and so do their slopes in its contribution",
}

var theorems = []struct {
	statement string
	needs     []int
}{
	{"a Nash equilibrium exists", []int{1, 2, 3}},
	{"s* is non-increasing in the member's privacy sensitivity and non-decreasing in its data", []int{1, 2, 3}},
	{"s* is non-increasing in the member's wrong-label rate", []int{1, 2, 3, 4}},
}

// Check tests the assumptions for the given mechanisms.
func Check(ctx context.Context, g *game.Game, mechanisms []mechanism.Mechanism, settings Settings) (*Report, error) {
	if settings.Points == 0 {
		settings.Points = 2000
	}
	points := sample(g, settings)
	report := &Report{}
	add := func(number int, m mechanism.Mechanism, points []point, test func(point) (violation, error)) error {
		a, err := judge(ctx, points, test)
		if err != nil {
			return err
		}
		a.Number, a.Statement = number, statements[number]
		if m != nil {
			a.Mechanism = m.Name()
		}
		report.Assumptions = append(report.Assumptions, a)
		return nil
	}
	if err := add(1, nil, points, func(p point) (violation, error) { return accuracyRises(g, p) }); err != nil {
		return nil, err
	}
	for _, m := range mechanisms {
		if err := add(2, m, affordable(g, m, points), func(p point) (violation, error) { return profitConcave(g, m, p) }); err != nil {
			return nil, err
		}
	}
	if err := add(3, nil, points, func(p point) (violation, error) { return costConvex(g, p) }); err != nil {
		return nil, err
	}
	for _, m := range mechanisms {
		if err := add(4, m, affordable(g, m, points), func(p point) (violation, error) { return qualityPays(g, m, p) }); err != nil {
			return nil, err
		}
	}
	report.conclude(mechanisms)
	return report, nil
}

// conclude derives which theorems apply.
func (r *Report) conclude(mechanisms []mechanism.Mechanism) {
	holds := map[string]bool{}
	for _, a := range r.Assumptions {
		holds[fmt.Sprint(a.Number, a.Mechanism)] = a.Holds
	}
	for i, t := range theorems {
		for _, m := range mechanisms {
			theorem := Theorem{Number: i + 1, Statement: t.statement, Mechanism: m.Name()}
			for _, number := range t.needs {
				name := m.Name()
				if number == 1 || number == 3 {
					name = ""
				}
				if !holds[fmt.Sprint(number, name)] {
					theorem.Failed = append(theorem.Failed, number)
				}
			}
			theorem.Applies = len(theorem.Failed) == 0
			r.Theorems = append(r.Theorems, theorem)
		}
	}
}

// point is a profile and the member whose derivatives are tested.
type point struct {
	profile game.Profile
	member  int
}

// violation is the quantity that has the wrong sign by most; size is its value
// relative to what counts as zero, and a size of at most 1 is none.
type violation struct {
	quantity string
	value    float64
	size     float64
}

// worse keeps the larger violation. A quantity must be ≤ 0; scale says how
// large the numbers are that it was computed from.
func (v *violation) worse(quantity string, value, scale float64) {
	if size := value / (1e-9 * scale); size > max(v.size, 1) {
		*v = violation{quantity, value, size}
	}
}

// sample draws profiles: the corners where nobody and everybody gives, and
// random ones, half uniform, half uniform in the logarithm.
func sample(g *game.Game, settings Settings) []point {
	rng := rand.New(rand.NewPCG(settings.Seed, 4))
	points := make([]point, settings.Points)
	for i := range points {
		s := make(game.Profile, len(g.Members))
		for n, m := range g.Members {
			lo, hi := float64(g.Minimum), float64(m.Capacity)
			switch u := rng.Float64(); {
			case i < len(g.Members):
				s[n] = g.Minimum
			case i < 2*len(g.Members):
				s[n] = m.Capacity
			case i%2 == 0:
				s[n] = int64(math.Round(lo + u*(hi-lo)))
			default:
				s[n] = int64(math.Round(math.Exp(u*math.Log(hi+1-lo)) - 1 + lo))
			}
			s[n] = min(max(s[n], g.Minimum), m.Capacity)
		}
		n := i % len(g.Members)
		s[n] = min(max(s[n], 1), g.Members[n].Capacity)
		points[i] = point{s, n}
	}
	return points
}

// affordable keeps fewer points where a mechanism is costly: the Shapley value
// of many members takes milliseconds a point.
func affordable(g *game.Game, m mechanism.Mechanism, points []point) []point {
	if m.Name() == (mechanism.SV{}).Name() && len(g.Members) > 10 {
		return points[:min(len(points), max(40, 20000/(len(g.Members)*len(g.Members))))]
	}
	return points[:min(len(points), max(100, 4000000/len(g.Members)))]
}

// judge runs a test at every point, in parallel, and keeps the worst violation.
func judge(ctx context.Context, points []point, test func(point) (violation, error)) (Assumption, error) {
	found := make([]violation, len(points))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	const chunk = 16
	for from := 0; from < len(points); from += chunk {
		group.Go(func() error {
			for i := from; i < min(from+chunk, len(points)); i++ {
				if err := ctx.Err(); err != nil {
					return err
				}
				var err error
				if found[i], err = test(points[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Assumption{}, err
	}
	a := Assumption{Tested: len(points)}
	worst := 0.0
	for i, v := range found {
		if v.size <= 1 {
			continue
		}
		a.Violations++
		if v.size > worst {
			worst = v.size
			a.Counterexample = &Counterexample{points[i].profile, points[i].member, v.quantity, v.value}
		}
	}
	a.Holds = a.Violations == 0
	return a, nil
}

// String names the theorem's state in one line.
func (t Theorem) String() string {
	if t.Applies {
		return fmt.Sprintf("Theorem %d applies under %s: %s", t.Number, t.Mechanism, t.Statement)
	}
	failed := make([]string, len(t.Failed))
	for i, number := range t.Failed {
		failed[i] = fmt.Sprint(number)
	}
	word := "Assumption"
	if len(failed) > 1 {
		word = "Assumptions"
	}
	return fmt.Sprintf("Theorem %d does not apply under %s: %s %s fails", t.Number, t.Mechanism, word, strings.Join(failed, " and "))
}

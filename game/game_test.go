package game_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"grange/curve"
	"grange/game"
)

func TestShares(t *testing.T) {
	for _, c := range []struct {
		name     string
		indices  []float64
		negative game.Negative
		want     []float64
	}{
		{"plain", []float64{1, 3}, game.Clip, []float64{0.25, 0.75}},
		{"clip", []float64{-1, 1, 3}, game.Clip, []float64{0, 0.25, 0.75}},
		{"raw", []float64{-1, 2, 3}, game.Raw, []float64{-0.25, 0.5, 0.75}},
		{"all zero", []float64{0, 0}, game.Raw, []float64{0.5, 0.5}},
		{"all negative", []float64{-1, -2, -1, -5}, game.Clip, []float64{0.25, 0.25, 0.25, 0.25}},
	} {
		if diff := cmp.Diff(c.want, game.Shares(c.indices, c.negative)); diff != "" {
			t.Errorf("%s: shares differ (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestAccuracy(t *testing.T) {
	a := game.Accuracy{Clean: curve.Func(func(s float64) float64 { return s / 100 }), Gamma: 0.5, Untrained: 0.1, Floor: 0.05, Ceiling: 0.9}
	for _, c := range []struct{ total, wrong, want float64 }{
		{0, 0, 0.1},    // untrained, whatever the curve says
		{50, 10, 0.4},  // 0.5 − 0.5·0.2
		{100, 0, 0.9},  // the ceiling
		{10, 10, 0.05}, // the floor
		{80, 40, 0.55}, // 0.8 − 0.25
		{1, math.NaN(), math.NaN()},
	} {
		got := a.At(c.total, c.wrong)
		if math.Abs(got-c.want) > 1e-15 || math.IsNaN(got) != math.IsNaN(c.want) {
			t.Errorf("A(%v, %v) = %v, want %v", c.total, c.wrong, got, c.want)
		}
	}
}

func TestQuadraticProfitIgnoresNegativeAccuracy(t *testing.T) {
	p := game.PowerProfit{Slope: 100, Base: 7, Exponent: 2}
	if got := p.At(-0.5); got != 7 {
		t.Errorf("Π(-0.5) = %v, want the base 7", got)
	}
	if got := p.At(0.5); got != 32 {
		t.Errorf("Π(0.5) = %v, want 32", got)
	}
}

func TestContains(t *testing.T) {
	g := &game.Game{Minimum: 1, Members: []game.Member{{Name: "north", Capacity: 10}, {Name: "south", Capacity: 5}}}
	if err := g.Contains(game.Profile{1, 5}); err != nil {
		t.Error(err)
	}
	for _, s := range []game.Profile{{1}, {0, 1}, {1, 6}} {
		if err := g.Contains(s); err == nil {
			t.Errorf("%v is no profile of the game, but Contains does not say so", s)
		}
	}
	if err := g.Contains(game.Profile{1, 6}); !strings.Contains(err.Error(), "south") {
		t.Errorf("the error does not name the member: %v", err)
	}
}

// TestStateFollowsProfile checks that partial sums agree with plain ones after
// any sequence of moves.
func TestStateFollowsProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 400).Draw(t, "members")
		g := &game.Game{}
		s := make(game.Profile, n)
		for i := range s {
			g.Members = append(g.Members, game.Member{Noise: float64(i%7) / 10})
			s[i] = int64(i)
		}
		state := game.NewState(g, s)
		for range rapid.IntRange(0, 20).Draw(t, "moves") {
			i := rapid.IntRange(0, n-1).Draw(t, "member")
			x := rapid.Int64Range(0, 1e9).Draw(t, "contribution")
			s[i] = x
			state.Set(i, x)
		}
		out := rapid.IntRange(0, n-1).Draw(t, "out")
		rest := state.Without(out)
		s[out] = 0
		total, wrong := g.Totals(s)
		if rest.Total != float64(total) || math.Abs(rest.Wrong-wrong) > 1e-9*(1+wrong) {
			t.Fatalf("without %d: %+v, plain sums %d and %v", out, rest, total, wrong)
		}
	})
}

// TestReachEncloses draws curves with any parameters, turning, falling or with a
// pole within reach, and looks for an accuracy outside its enclosure.
func TestReachEncloses(t *testing.T) {
	number := func(t *rapid.T, name string, lo, hi float64) float64 { return rapid.Float64Range(lo, hi).Draw(t, name) }
	rapid.Check(t, func(t *rapid.T) {
		var clean game.Curve
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			clean = curve.LogLinear{Alpha: [5]float64{number(t, "a1", -1, 1), number(t, "a2", -0.01, 0.1), number(t, "a3", -1, 5), number(t, "a4", -1e-3, 1e-3), number(t, "a5", -1, 1)}}
		case 1:
			clean = curve.Power{A: number(t, "a", -1, 1), B: number(t, "b", -5, 5), C: number(t, "c", -500, 500), D: number(t, "d", -2, 3)}
		case 2:
			clean = curve.Exponential{A: number(t, "a", -1, 1), B: number(t, "b", -1, 1), C: number(t, "c", -1e-3, 0.1)}
		}
		a := game.Accuracy{Clean: clean, Gamma: number(t, "gamma", -1, 2), Floor: -game.Unbounded, Ceiling: game.Unbounded}
		if rapid.Bool().Draw(t, "clamped") {
			a.Floor, a.Ceiling = number(t, "floor", -1, 0.3), number(t, "ceiling", 0.3, 1)
		}
		total := number(t, "total", 0, 2000)
		rest := game.Rest{Total: total, Wrong: total * number(t, "wrong", 0, 1)}
		noise := number(t, "noise", 0, 1)
		lo := number(t, "lo", 1, 1000)
		hi := lo + number(t, "width", 0, 2000)
		reach := a.Reach(rest, noise, lo, hi)
		bound := reach.Bound().Value
		for range 20 {
			x := lo + number(t, "at", 0, 1)*(hi-lo)
			got := a.At(rest.Total+x, rest.Wrong+noise*x)
			slack := 1e-9 * (1 + math.Abs(got))
			if game.Finite(got) && !(got >= bound.Lo-slack && got <= bound.Hi+slack) {
				t.Fatalf("A at %v is %v, outside [%v, %v]", x, got, bound.Lo, bound.Hi)
			}
		}
	})
}

func TestSoundShares(t *testing.T) {
	for _, c := range []struct {
		name     string
		indices  []float64
		negative game.Negative
		want     []float64 // nil for an error
	}{
		{"clipped", []float64{3, 1, -2}, game.Clip, []float64{0.75, 0.25, 0}},
		{"raw", []float64{3, 1, -2}, game.Raw, []float64{1.5, 0.5, -1}},
		{"a loss would pay the worst best", []float64{0.1, -0.2, -0.4}, game.Raw, nil},
		{"clipped, it pays whoever gave something", []float64{0.1, -0.2, -0.4}, game.Clip, []float64{1, 0, 0}},
		{"nothing in all", []float64{0.3, -0.3, 0}, game.Raw, nil},
		{"nothing but rounding in all", []float64{0.1, 0.2, -0.30000000000000004 + 1e-15}, game.Raw, nil},
		{"nothing anywhere", []float64{0, 0}, game.Raw, []float64{0.5, 0.5}},
		{"nothing but rounding, and losses", []float64{1e-17, -0.2, -0.1}, game.Clip, []float64{1. / 3, 1. / 3, 1. / 3}},
		{"not a number", []float64{math.NaN(), 1}, game.Clip, nil},
		{"infinite", []float64{math.Inf(1), 1}, game.Raw, nil},
	} {
		got, err := game.SoundShares(c.indices, c.negative)
		if (err == nil) != (c.want != nil) || err != nil && !errors.Is(err, game.ErrNoShares) {
			t.Errorf("%s: error %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func ExampleShares() {
	fmt.Println(game.Shares([]float64{3, 1, -2}, game.Clip))
	// Output: [0.75 0.25 0]
}

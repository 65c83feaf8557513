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

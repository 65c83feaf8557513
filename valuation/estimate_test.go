package valuation_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grange/valuation"
	"grange/valuation/games"
)

func TestEstimatorsAreWithinFourErrors(t *testing.T) {
	for _, g := range sampled() {
		for _, method := range estimators {
			r, err := valuation.Estimates(t.Context(), g.Game(), method, valuation.Settings{Seed: 1, Stop: valuation.Evaluations(800)})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != valuation.Satisfied || r.Evaluations > 800 || r.Evaluations < 700 {
				t.Errorf("%s, %s: %v after %d evaluations (%s)", g.Name, method.Name(), r.Status, r.Evaluations, r.Reason)
			}
			for n, want := range g.Shapley {
				if off := math.Abs(r.Values[n] - want); !(off <= 4*r.Errors[n]+1e-12) {
					t.Errorf("%s, %s: member %d gets %v ± %v, exactly %v", g.Name, method.Name(), n, r.Values[n], r.Errors[n], want)
				}
			}
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	g := sampled()[2].Game()
	for _, method := range append(estimators, valuation.Permutation{Guided: true, Truncation: 0.02}) {
		var first *valuation.Result
		for _, workers := range []int{1, 2, 7} {
			r, err := valuation.Estimates(t.Context(), g, method, valuation.Settings{Seed: 3, Workers: workers, Stop: valuation.Evaluations(300)})
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = r
			}
			if diff := cmp.Diff(first, r); diff != "" {
				t.Errorf("%s: %d workers change the result: %s", method.Name(), workers, diff)
			}
		}
		other, err := valuation.Estimates(t.Context(), g, method, valuation.Settings{Seed: 4, Stop: valuation.Evaluations(300)})
		if err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(first.Values, other.Values) {
			t.Errorf("%s: another seed gives the same values", method.Name())
		}
	}
}

// With all coalitions within the bound, every estimator ends with exact values.
func TestEnoughEvaluationsAreExact(t *testing.T) {
	for _, g := range games.All() {
		for _, method := range estimators {
			r, err := valuation.Estimates(t.Context(), g.Game(), method, valuation.Settings{Stop: valuation.Evaluations(1 << g.Members)})
			if err != nil {
				t.Fatal(err)
			}
			if r.Status != valuation.Exact || r.Evaluations != 1<<g.Members {
				t.Errorf("%s, %s: %v after %d evaluations", g.Name, method.Name(), r.Status, r.Evaluations)
			}
			near(t, g.Name+", "+method.Name(), r.Values, g.Shapley, 1e-12)
		}
	}
}

func TestFewMembersAndFewEvaluations(t *testing.T) {
	for members := 1; members <= 5; members++ {
		worth := make([]float64, members+1)
		for k := range worth {
			worth[k] = float64(k * k)
		}
		g := games.Symmetric(worth)
		for _, method := range estimators {
			for bound := 2; bound <= 1<<members+1; bound++ {
				r, err := valuation.Estimates(t.Context(), g.Game(), method, valuation.Settings{Stop: valuation.Evaluations(bound)})
				if err != nil {
					t.Fatal(err)
				}
				if r.Evaluations > bound {
					t.Errorf("%s, %d members: %d evaluations, at most %d allowed", method.Name(), members, r.Evaluations, bound)
				}
				for n, v := range r.Values {
					if math.IsNaN(v) || math.IsNaN(r.Errors[n]) || math.IsNaN(r.Spread[n]) {
						t.Errorf("%s, %d members, bound %d: member %d gets %v ± %v", method.Name(), members, bound, n, v, r.Errors[n])
					}
				}
			}
		}
	}
}

// A coalition has room for 64 members; no method may run out of bits.
func TestSixtyFourMembers(t *testing.T) {
	worth := make([]float64, valuation.MaxMembers+1)
	for k := range worth {
		worth[k] = math.Sqrt(float64(k))
	}
	g := games.Symmetric(worth)
	for _, method := range append(estimators, valuation.Permutation{Guided: true, Truncation: 0.02}) {
		bound := 1000
		if strings.Contains(method.Name(), "guided") {
			bound = 3 * 64 * 63
		}
		r, err := valuation.Estimates(t.Context(), g.Game(), method, valuation.Settings{Seed: 2, Stop: valuation.Evaluations(bound)})
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range g.Shapley {
			most := 5*r.Errors[n] + 1e-12
			if math.IsInf(most, 1) { // the pairs of one size are all alike, which gives no error
				most = 1e-12
			}
			if off := math.Abs(r.Values[n] - want); !(off <= most) {
				t.Errorf("%s: member %d gets %v ± %v, exactly %v", method.Name(), n, r.Values[n], r.Errors[n], want)
			}
		}
	}
}

func TestRules(t *testing.T) {
	needs := []float64{1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144}
	airport, additive := games.Airport(needs).Game(), games.Additive(needs).Game()
	for _, test := range []struct {
		name   string
		game   *valuation.Game
		rule   valuation.Rule
		reason string
	}{
		{"error", airport, valuation.Any(valuation.StandardError(6), valuation.Evaluations(900)), "standard errors"},
		{"relative", airport, valuation.RelativeError(0.05), "of the whole"},
		{"ranks", additive, valuation.Any(valuation.RankStable(2), valuation.Evaluations(900)), "ranks unchanged for 2 batches"},
		{"both", airport, valuation.All(valuation.StandardError(5), valuation.Evaluations(400)), " and 402 evaluations"},
	} {
		r, err := valuation.Estimates(t.Context(), test.game, valuation.Adjusted{}, valuation.Settings{Stop: test.rule})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Reason, test.reason) || r.Status != valuation.Satisfied {
			t.Errorf("%s: %v because of %q, want %q", test.name, r.Status, r.Reason, test.reason)
		}
	}
}

// Truncated orders take many batches before the first of them counts. No rule
// may look at what is not there yet.
func TestRulesWaitForSamples(t *testing.T) {
	g := games.Additive([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}).Game()
	for _, method := range []valuation.Method{valuation.Permutation{Truncation: 0.02}, valuation.Permutation{Guided: true, Truncation: 0.02}} {
		r, err := valuation.Estimates(t.Context(), g, method, valuation.Settings{Stop: valuation.Any(valuation.RankStable(2), valuation.Evaluations(600))})
		if err != nil {
			t.Fatal(err)
		}
		if r.Samples < 2 || r.Ranks()[9] != 1 {
			t.Errorf("%s stops after %d samples, %s: %v", method.Name(), r.Samples, r.Reason, r.Values)
		}
	}
}

// Once the rule is met nothing more is valued, even where most coalitions are
// known.
func TestTheRuleComesBeforeTheRest(t *testing.T) {
	g := sampled()[0].Game()
	met := valuation.All(valuation.Evaluations(600), valuation.RelativeError(0.5))
	r, err := valuation.Estimates(t.Context(), g, valuation.SVARM{}, valuation.Settings{Stop: met})
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != valuation.Satisfied || r.Evaluations >= 1<<10 {
		t.Errorf("%v after %d evaluations: %s", r.Status, r.Evaluations, r.Reason)
	}
}

func TestStepsEndAsEstimatesDo(t *testing.T) {
	g := sampled()[1].Game()
	settings := valuation.Settings{Seed: 9, Stop: valuation.Evaluations(400)}
	want, err := valuation.Estimates(t.Context(), g, valuation.Kernel{}, settings)
	if err != nil {
		t.Fatal(err)
	}
	var last *valuation.Result
	steps := 0
	for r, err := range valuation.Steps(t.Context(), g, valuation.Kernel{}, settings) {
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && r.Evaluations < last.Evaluations {
			t.Errorf("evaluations fall from %d to %d", last.Evaluations, r.Evaluations)
		}
		last = r
		steps++
	}
	if steps < 3 {
		t.Errorf("only %d results on the way", steps)
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Error(diff)
	}
}

func TestDeadlineKeepsTheResult(t *testing.T) {
	closed := sampled()[0]
	ctx, cancel := context.WithCancelCause(t.Context())
	calls := 0
	utility := valuation.UtilityFunc(func(_ context.Context, c valuation.Coalition) (float64, error) {
		if calls++; calls > 300 {
			cancel(context.DeadlineExceeded)
			return 0, context.Cause(ctx)
		}
		return closed.Worth(c), nil
	})
	r, err := valuation.Estimates(ctx, &valuation.Game{Members: closed.Members, Utility: utility}, valuation.SVARM{}, valuation.Settings{Stop: valuation.Evaluations(1000)})
	if err != nil || r.Status != valuation.Deadline {
		t.Fatalf("%v, %v, want the deadline and no error", r, err)
	}
	if r.Samples == 0 || math.IsInf(r.Errors[0], 1) {
		t.Errorf("the result so far is lost: %v", r)
	}
}

// A utility that runs out of its own time has failed; the run has not.
func TestTheUtilitysOwnTimeout(t *testing.T) {
	calls := 0
	utility := valuation.UtilityFunc(func(_ context.Context, c valuation.Coalition) (float64, error) {
		if calls++; calls > 100 {
			return 0, fmt.Errorf("rpc: %w", context.DeadlineExceeded)
		}
		return float64(c.Size() * c.Size()), nil
	})
	r, err := valuation.Estimates(t.Context(), &valuation.Game{Members: 10, Utility: utility}, valuation.SVARM{}, valuation.Settings{Stop: valuation.Evaluations(500)})
	var named *valuation.CoalitionError
	if !errors.As(err, &named) || r == nil || r.Status != valuation.Failed {
		t.Errorf("%+v, %v; want a failure that names the coalition", r, err)
	}
}

func TestFailureNamesTheCoalition(t *testing.T) {
	broken := errors.New("out of memory")
	closed := sampled()[0]
	g := &valuation.Game{Members: 10, Names: strings.Fields("a b c d e f g h i j"), Utility: valuation.UtilityFunc(
		func(_ context.Context, c valuation.Coalition) (float64, error) {
			if c.Size() == 3 {
				return 0, broken
			}
			return closed.Worth(c), nil
		})}
	for _, workers := range []int{1, 4} {
		r, err := valuation.Estimates(t.Context(), g, valuation.Permutation{}, valuation.Settings{Workers: workers})
		var named *valuation.CoalitionError
		if !errors.As(err, &named) || !errors.Is(err, broken) || named.Coalition.Size() != 3 {
			t.Fatalf("error %v, want one that names a coalition of three", err)
		}
		if !strings.Contains(err.Error(), named.Coalition.Label(g.Names)) {
			t.Errorf("%q does not name the members", err)
		}
		if r == nil || r.Status != valuation.Failed || r.Evaluations < 3 {
			t.Errorf("what was computed is lost: %+v", r)
		}
	}
	g.Utility = valuation.UtilityFunc(func(_ context.Context, c valuation.Coalition) (float64, error) {
		if c == valuation.CoalitionOf(1, 9) {
			return math.NaN(), nil
		}
		return 1, nil
	})
	table, err := valuation.Tabulation{Workers: 2}.Table(t.Context(), g)
	if !errors.Is(err, valuation.ErrNotFinite) || !strings.Contains(err.Error(), "{b, j}") {
		t.Errorf("error %v, want NaN of {b, j}", err)
	}
	if table[3] != 1 || !math.IsNaN(table[len(table)-1]) {
		t.Error("the table does not hold just what was computed")
	}
}

func TestTooLarge(t *testing.T) {
	g := &valuation.Game{Members: 30, Utility: valuation.Table{}}
	_, err := valuation.Tabulation{Limit: 24}.Table(t.Context(), g)
	if !errors.Is(err, valuation.ErrTooLarge) {
		t.Fatalf("error %v, want ErrTooLarge", err)
	}
	for _, want := range []string{"30 members", "1.074e+09 evaluations", "12.4 days at 1 ms", "34 years at 1 s", "8 GiB", "Try: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	g.Members = 13
	if _, err := (valuation.Tabulation{}).Table(t.Context(), g); err == nil || !strings.Contains(err.Error(), "set Limit to 13") {
		t.Errorf("error %v does not say how to get 13 members", err)
	}
}

func TestBadSettings(t *testing.T) {
	g := sampled()[0].Game()
	for name, run := range map[string]func() error{
		"no members": func() error {
			_, err := valuation.Estimates(t.Context(), &valuation.Game{Utility: g.Utility}, valuation.SVARM{}, valuation.Settings{})
			return err
		},
		"65 members": func() error {
			_, err := valuation.Tabulation{}.Table(t.Context(), &valuation.Game{Members: 65, Utility: g.Utility})
			return err
		},
		"65, to be checked": func() error { return valuation.CheckMembers(65) },
		"no utility": func() error {
			_, err := valuation.Tabulation{}.Table(t.Context(), &valuation.Game{Members: 3})
			return err
		},
		"names": func() error {
			_, err := valuation.Tabulation{}.Table(t.Context(), &valuation.Game{Members: 3, Names: []string{"a"}, Utility: g.Utility})
			return err
		},
		"limit": func() error { _, err := valuation.Tabulation{Limit: 25}.Table(t.Context(), g); return err },
		"workers": func() error {
			_, err := valuation.Estimates(t.Context(), g, valuation.SVARM{}, valuation.Settings{Workers: -1})
			return err
		},
		"bound": func() error {
			_, err := valuation.Estimates(t.Context(), g, valuation.SVARM{}, valuation.Settings{Stop: valuation.Evaluations(1)})
			return err
		},
		"truncation": func() error {
			_, err := valuation.Permutation{Truncation: 1}.Begin(valuation.Start{Members: 3})
			return err
		},
		"audit": func() error {
			_, err := valuation.Permutation{Audit: -1}.Begin(valuation.Start{Members: 3})
			return err
		},
		"both": func() error {
			_, err := valuation.Permutation{Guided: true, Antithetic: true}.Begin(valuation.Start{Members: 3})
			return err
		},
		"degree":       func() error { _, err := valuation.Adjusted{Degree: 4}.Begin(valuation.Start{Members: 3}); return err },
		"beta":         func() error { _, err := valuation.Beta(make(valuation.Table, 4), 0, 1); return err },
		"weights":      func() error { _, err := valuation.Semivalue(make(valuation.Table, 4), []float64{1}); return err },
		"three worths": func() error { _, err := valuation.Shapley(make(valuation.Table, 3)); return err },
	} {
		err := run()
		known := cmp.Equal(err, valuation.ErrSettings, cmpopts.EquateErrors()) || errors.Is(err, valuation.ErrMembers) || errors.Is(err, valuation.ErrTable)
		if !known {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grange/game"
	"grange/scenario"
)

const full = `name: two
members:
  - {name: a, data: 1000, noise: 0.1, privacy: 0.4, outside: 3}
  - {name: b, data: 1e9, noise: 0, privacy: 0}
accuracy: {form: loglinear, alpha: [0.1736, 0.002363, 1, -2.07e-6, 0.0999], gamma: 0.92}
profit: {form: quadratic, beta: [15_000, 0]}
cost: {form: power, exponent: 1.5}
mechanisms: [SV, LP]
negative: raw
solver: {start: [5, 7], minimum: 0, tolerance: 2, max_iterations: 9}
training:
  dataset: folder:pictures
  model: cnn
  rounds: 3
  split: {kind: shares, shares: [0.25, 0.5]}
`

func parse(t *testing.T, text string) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReadsEverySection(t *testing.T) {
	s := parse(t, full)
	if s.Name != "two" || s.Negative != game.Raw {
		t.Errorf("name %q, negative %v", s.Name, s.Negative)
	}
	wantMembers := []scenario.Member{
		{Name: "a", Data: 1000, Noise: 0.1, Privacy: 0.4, Outside: 3},
		{Name: "b", Data: 1_000_000_000},
	}
	if d := cmp.Diff(wantMembers, s.Members); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"SV", "LP"}, s.Mechanisms); d != "" {
		t.Error(d)
	}
	wantSolver := scenario.Solver{StartFraction: 0.1, Start: game.Profile{5, 7}, Tolerance: 2, MaxIterations: 9}
	if d := cmp.Diff(wantSolver, s.Solver); d != "" {
		t.Error(d)
	}
	wantTraining := scenario.Training{Dataset: "folder:pictures", Model: "cnn", Start: "he", Rounds: 3, Epochs: 5, Batch: 64, Rate: 0.05,
		GlobalRate: 1, Repeats: 1, Backend: "cpu", Seed: 1, Given: true,
		Split: scenario.Split{Kind: "shares", Shares: []float64{0.25, 0.5}}}
	if d := cmp.Diff(wantTraining, s.Training); d != "" {
		t.Error(d)
	}
	g, err := s.Game()
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Cost.At(4); got != 8 {
		t.Errorf("f(4) = %v, want 8", got)
	}
	if got := g.Profit.At(0.5); got != 3750 {
		t.Errorf("Π(0.5) = %v, want 3750", got)
	}
	if g.Members[0].Outside != 3 || g.Minimum != 0 {
		t.Errorf("outside %v, minimum %d", g.Members[0].Outside, g.Minimum)
	}
}

func TestReadsWhatEditorsWrite(t *testing.T) {
	for _, text := range []string{"\ufeff" + full, strings.ReplaceAll(full, "\n", "\r\n"), strings.TrimSpace(full), "---\n" + full} {
		if s := parse(t, text); s.Name != "two" || len(s.Members) != 2 || s.Training.Rounds != 3 {
			t.Errorf("%.20q: %+v", text, s)
		}
	}
}

func TestDefaults(t *testing.T) {
	s := parse(t, "members: [{name: a, data: 10, noise: 0, privacy: 1}]\n")
	if s.Name != "test" {
		t.Errorf("name %q, want the file's", s.Name)
	}
	if d := cmp.Diff([]string{"EG", "LP", "LOO", "SV"}, s.Mechanisms); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(scenario.Solver{StartFraction: 0.1, Minimum: 1, Tolerance: 1, MaxIterations: 1000}, s.Solver); d != "" {
		t.Error(d)
	}
	if s.Cost.Form != "linear" || s.Negative != game.Clip || s.Training.Dataset != "fashion" || s.Training.Given {
		t.Errorf("cost %v, negative %v, training %v", s.Cost, s.Negative, s.Training)
	}
	// Such a file can be trained but has no game yet.
	if _, err := s.Game(); !errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), "no accuracy section") {
		t.Errorf("Game: %v", err)
	}
}

func TestForms(t *testing.T) {
	const rest = "members: [{name: a, data: 10, noise: 0, privacy: 1}]\nprofit: {form: linear, beta: [1, 0]}\n"
	tests := []struct {
		accuracy  string
		at10, at0 float64
	}{
		{"{form: power, a: 0.9, b: 0.8, c: 1, d: 1}", 0.9 - 0.8/11, 0.09999999999999998},
		{"{form: exponential, a: 0.9, b: 0.8, c: 0, untrained: 0.2}", 0.09999999999999998, 0.2},
		{"{form: loglinear, alpha: [0, 1, 1, 0.01, 0.5]}", 0.6, 0.5},
		{"{form: loglinear, alpha: [0, 1, 1, 1, 0], ceiling: 0.7}", 0.7, 0},
		{"{form: expression, expression: 'S / (S + 10)'}", 0.5, 0},
		{"{form: expression, expression: 'S > 5 ? min(0.4, 1, S) : R', untrained: -1}", 0.4, -1},
	}
	for _, tt := range tests {
		g, err := parse(t, rest+"accuracy: "+tt.accuracy).Game()
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Accuracy.At(10, 0); got != tt.at10 {
			t.Errorf("%s: A(10) = %v, want %v", tt.accuracy, got, tt.at10)
		}
		if got := g.Accuracy.At(0, 0); got != tt.at0 {
			t.Errorf("%s: A(0) = %v, want %v", tt.accuracy, got, tt.at0)
		}
	}
}

func TestExpressionsOfProfitAndCost(t *testing.T) {
	s := parse(t, `members: [{name: a, data: 10, noise: 0.5, privacy: 2}]
accuracy: {form: expression, expression: "0.5 - 0.1*R", gamma: 0.2}
profit: {form: expression, expression: "10 * max(A, 0)^2 - 1"}
cost: {form: expression, expression: "sqrt(s) + 9223372036854775807 + 1"}
`)
	g, err := s.Game()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.Accuracy.At(4, 2), 0.5-0.1*0.5-0.2*0.5; got != want {
		t.Errorf("A = %v, want %v: gamma counts beside an expression", got, want)
	}
	if got := g.Profit.At(1); got != 9 {
		t.Errorf("Π(1) = %v, want 9", got)
	}
	if got := g.CostOf(0, 4); got < 0 {
		t.Errorf("cost %v: whole numbers overflowed", got)
	}
}

func TestAccuracyYAMLReadsBack(t *testing.T) {
	for _, line := range []string{
		"accuracy: {form: loglinear, alpha: [0.1736, 0.002363, 1, -2.07e-06, 0.0999], gamma: 0.92}\n",
		"accuracy: {form: power, a: 0.9, b: 0.8, c: 1, d: 0.5, untrained: 0.1, floor: 0, ceiling: 1}\n",
		"accuracy: {form: exponential, a: 0.9, b: 0.8, c: 0.001}\n",
		"accuracy: {form: expression, expression: \"S / (S + 10)\", gamma: 1}\n",
	} {
		s := parse(t, "members: [{name: a, data: 10, noise: 0, privacy: 1}]\n"+line)
		if got := s.Accuracy.YAML(); got != line {
			t.Errorf("wrote %q, read %q", got, line)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, make([]byte, scenario.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ path, want string }{
		{filepath.Join(dir, "none.yaml"), "no such file"},
		{dir, "is a directory"},
		{big, "larger than 16 MiB"},
	}
	for _, tt := range tests {
		_, err := scenario.Load(tt.path)
		if !errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("Load(%q) = %v, want %q", tt.path, err, tt.want)
		}
	}
}

func TestExamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../examples/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		s, err := scenario.Load(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Accuracy == nil && s.Training.Given {
			continue // its accuracy is to be measured
		}
		if _, err := s.Game(); err != nil {
			t.Error(err)
		}
	}
}

func TestFederation(t *testing.T) {
	const members = "members: [{name: a, data: 1, noise: 0, privacy: 0}, {name: b, data: 1, noise: 0, privacy: 0}]\n"
	for text, want := range map[string]scenario.Federation{
		"":                                       {Minimum: 1},
		"federation: {}":                         {Minimum: 1},
		"federation: {deadline: 1h30m}":          {Minimum: 1, Deadline: 90 * time.Minute},
		"federation: {minimum: 2, deadline: 9s}": {Minimum: 2, Deadline: 9 * time.Second},
	} {
		if got := parse(t, members+text).Federation; got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

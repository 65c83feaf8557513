package scenario_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grange/scenario"
)

// FuzzParse: whatever the bytes, an ErrInvalid or a scenario that keeps every
// promise of the format.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(valid))
	for _, s := range []string{"", "a: &a [*a]", "a: b: c", "- - -", "? x", "{", "members: [{name: !!str a}]", "|\n a", "%YAML 1.2\n---\n{}",
		"members: [{name: a, data: 0x10, noise: .nan, privacy: 1:30}]", "solver: {minimum: 9007199254740993}", "a: !x !y &z b", "<<: *a",
		strings.Replace(valid, "form: linear", "form: expression, expression: "+strings.Repeat("(", 1<<12)+"s"+strings.Repeat(")", 1<<12), 1)} {
		f.Add([]byte(s))
	}
	files, _ := filepath.Glob("../examples/*.yaml")
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && len(data) < 10_000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenario.Parse("fuzz.yaml", data)
		if err != nil {
			if !errors.Is(err, scenario.ErrInvalid) || err.Error() == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		names := map[string]bool{}
		for _, m := range s.Members {
			if m.Name == "" || names[m.Name] || m.Data < s.Solver.Minimum || s.Solver.Minimum>>1 != 0 || !(m.Noise >= 0 && m.Noise < 1) || !(m.Privacy >= 0) || math.IsInf(m.Privacy, 0) {
				t.Fatalf("member %+v", m)
			}
			names[m.Name] = true
		}
		if len(s.Members) == 0 || len(s.Mechanisms) == 0 || s.Solver.MaxIterations < 1 || !(s.Solver.Tolerance > 0) {
			t.Fatalf("scenario %+v", s)
		}
		if s.Accuracy == nil || s.Profit == nil {
			return
		}
		g, err := s.Game()
		if err != nil {
			t.Fatal(err)
		}
		start := s.Settings(g).Start
		if err := g.Contains(start); err != nil {
			t.Fatal(err)
		}
		g.Profit.At(g.AccuracyAt(start)) // may be anything, but must return
	})
}

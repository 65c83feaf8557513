// Package scenario reads the YAML file in which a data co-operative writes
// down its members, what data buys and what it costs. Reading is strict:
// unknown keys, values out of range and non-finite numbers are errors that
// name the file, the line, the key and what was expected. Nothing is guessed;
// the few defaults there are stand beside the fields below and in format.md.
package scenario

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"grange/equilibrium"
	"grange/game"
	"grange/mechanism"
)

// Format describes the file format for users.
//
//go:embed format.md
var Format string

// MaxBytes is the size of the largest file that is read.
const MaxBytes = 16 << 20

// Scenario is a scenario file that passed every check.
type Scenario struct {
	Name       string    // default: the file's name without directory and extension
	Members    []Member  // at least one
	Accuracy   *Accuracy // nil when the file has none
	Profit     *Profit   // nil when the file has none
	Cost       Cost      // default linear
	Mechanisms []string  // default EG, LP, LOO, SV
	Negative   game.Negative
	Solver     Solver
	Training   Training
	Federation Federation

	file string
	tree *node
}

// Member is one entry of `members`.
type Member struct {
	Name       string
	Data       int64       // D_n
	Noise      float64     // ε_n
	Privacy    float64     // μ_n
	Outside    float64     // payoff without taking part; default 0
	Transition [][]float64 // label transition matrix for training; default uniform noise at rate ε_n
}

// Solver is the section `solver`.
type Solver struct {
	StartFraction float64      // default 0.1; unused when Start is set
	Start         game.Profile // nil unless the file lists contributions
	Minimum       int64        // 1 or 0; default 1
	Tolerance     float64      // default 1
	MaxIterations int          // default 1000
}

// Load reads and checks a scenario file.
func Load(path string) (*Scenario, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{File: path, Problem: "no such file, want a scenario", Hint: "check the path; examples/ has scenarios to start from"}
	case err != nil:
		return nil, &Error{File: path, Problem: fmt.Sprintf("cannot be read: %v", errors.Unwrap(err))}
	case info.IsDir():
		return nil, &Error{File: path, Problem: "is a directory, want a scenario file", Hint: "name a file in it"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, &Error{File: path, Problem: fmt.Sprintf("cannot be read: %v", errors.Unwrap(err))}
	}
	defer f.Close()
	return Read(path, f)
}

// Read reads and checks a scenario. The file name is for error messages.
func Read(file string, from io.Reader) (*Scenario, error) {
	data, err := io.ReadAll(io.LimitReader(from, MaxBytes+1))
	if err != nil {
		return nil, &Error{File: file, Problem: fmt.Sprintf("cannot be read: %v", err)}
	}
	return Parse(file, data)
}

// Parse checks the bytes of a scenario file. The file name is for error
// messages, and gives the scenario its name when it has none of its own.
func Parse(file string, data []byte) (*Scenario, error) {
	if len(data) > MaxBytes {
		return nil, &Error{File: file, Problem: "larger than 16 MiB, want a smaller scenario file"}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin with a byte order mark
	if !utf8.Valid(data) {
		return nil, notUTF8(file, data)
	}
	tree, err := parseTree(file, data)
	if err != nil {
		return nil, err
	}
	return decode(file, tree)
}

// notUTF8 finds the first byte that is not text.
func notUTF8(file string, data []byte) error {
	e := &Error{File: file, Line: 1, Column: 1, Problem: "not text in UTF-8, want a scenario file", Hint: "save the file as UTF-8"}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && size <= 1:
			return e
		case r == '\n':
			e.Line, e.Column = e.Line+1, 1
		default:
			e.Column++
		}
		data = data[size:]
	}
	return e
}

func decode(file string, tree *node) (*Scenario, error) {
	r := &reader{file: file}
	s := &Scenario{file: file, tree: tree}
	top := r.fields(tree, "", "name", "members", "accuracy", "profit", "cost", "mechanisms", "negative", "solver", "training", "federation")
	if top.has("name") {
		s.Name = top.text("name", "the scenario's name")
	} else {
		base := filepath.Base(file)
		s.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	// The minimum bounds what members may own, so the solver comes first.
	solver := r.section(top, "solver", "start", "minimum", "tolerance", "max_iterations")
	s.Solver = solver.solver()
	s.Members = r.members(top, s.Solver.Minimum)
	solver.start(s)
	if top.has("accuracy") {
		s.Accuracy = r.accuracy(top.node.child("accuracy"))
	}
	if top.has("profit") {
		s.Profit = r.profit(top.node.child("profit"))
	}
	s.Cost = Cost{Form: "linear"}
	if top.has("cost") {
		s.Cost = r.cost(top.node.child("cost"))
	}
	s.Mechanisms = r.mechanisms(top)
	if top.choice("negative", true, "clip", "raw") == "raw" {
		s.Negative = game.Raw
	}
	s.Training = r.training(top, len(s.Members))
	s.Federation = r.federation(top, len(s.Members))
	if r.err != nil {
		return nil, r.err
	}
	return s, nil
}

// section returns an optional section, empty when it is absent.
func (r *reader) section(top fields, name string, known ...string) fields {
	if n := top.node.child(name); n != nil {
		return r.fields(n, name, known...)
	}
	return fields{r, &node{kind: mapping}, name}
}

func (r *reader) mechanisms(top fields) []string {
	if !top.has("mechanisms") {
		return mechanism.Names()
	}
	var names []string
	seen := map[string]bool{}
	want := "a list of mechanisms out of " + strings.Join(mechanism.Names(), ", ")
	for i, n := range r.list(top.node.child("mechanisms"), "mechanisms", want) {
		key := fmt.Sprintf("mechanisms[%d]", i)
		name := r.word(n, key, mechanism.Names())
		if seen[name] && name != "" {
			r.fail(n, key, "mechanism %s is listed twice, want each once", name)
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

func (f fields) solver() Solver {
	return Solver{
		StartFraction: 0.1,
		Minimum:       f.minimum(),
		Tolerance:     f.numberOr("tolerance", 1, positive),
		MaxIterations: int(f.integerOr("max_iterations", 1000, 1)),
	}
}

// minimum reads the least contribution: 1 as in Algorithm 1, or 0.
func (f fields) minimum() int64 {
	n := f.node.child("minimum")
	if n == nil {
		return 1
	}
	if n.kind == number && !specialNumeral.MatchString(n.text) {
		if x, whole := parseWhole(n.text); whole && (x == 0 || x == 1) {
			return x
		}
	}
	f.r.fail(n, f.key("minimum"), "%s is %s, want 1, as in Algorithm 1, or 0", f.key("minimum"), n.show())
	return 1
}

// start reads solver.start, which depends on the members.
func (f fields) start(s *Scenario) {
	n := f.node.child("start")
	if n == nil {
		return
	}
	want := fmt.Sprintf("a fraction in [0, 1] or a list of %d contributions", len(s.Members))
	if n.kind != list {
		s.Solver.StartFraction = f.r.number(n, "solver.start", rule{want, fraction.ok})
		return
	}
	items := f.r.list(n, "solver.start", want)
	if len(items) != len(s.Members) {
		f.r.fail(n, "solver.start", "solver.start has %d contributions, want %d, one per member", len(items), len(s.Members))
		return
	}
	for i, item := range items {
		s.Solver.Start = append(s.Solver.Start,
			f.r.integer(item, fmt.Sprintf("solver.start[%d]", i), s.Solver.Minimum, s.Members[i].Data))
	}
}

// File returns the name of the file the scenario was read from.
func (s *Scenario) File() string { return s.file }

// Settings returns how the file wants its equilibria computed.
func (s *Scenario) Settings(g *game.Game) equilibrium.Settings {
	start := s.Solver.Start
	if start == nil {
		start = equilibrium.StartAt(g, s.Solver.StartFraction)
	}
	return equilibrium.Settings{
		Start:         start,
		Tolerance:     s.Solver.Tolerance,
		MaxIterations: s.Solver.MaxIterations,
	}
}

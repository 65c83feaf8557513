package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"grange/internal/spelling"
)

// Vary returns a copy of the scenario with one number, or the same number of
// several members, set to value, and checks it as if it had been read. The key
// is written as in members[0:3].noise (members 0, 1 and 2), members[2].privacy,
// members[north].data, profit.beta[0] or solver.minimum. A key that the file
// leaves to its default can be varied too.
func (s *Scenario) Vary(key string, value float64) (*Scenario, error) {
	steps, err := parseKey(key)
	if err != nil {
		return nil, s.varyError(key, err.Error(), "")
	}
	literal := &node{kind: number, text: strconv.FormatFloat(value, 'g', -1, 64)}
	if !numeral.MatchString(literal.text) {
		return nil, s.varyError(key, fmt.Sprintf("%s is not a finite number", literal.text), "")
	}
	tree, err := set(s.tree, "", steps, literal)
	if err != nil {
		return nil, s.varyError(key, err.Error(), "")
	}
	varied, err := decode(s.file, tree)
	if err == nil {
		return varied, nil
	}
	var e *Error
	if errors.As(err, &e) {
		return nil, s.varyError(key, fmt.Sprintf("at %s, %s", literal.text, e.Problem), e.Hint)
	}
	return nil, err
}

func (s *Scenario) varyError(key, problem, hint string) error {
	return &Error{File: s.file, Key: key, Problem: fmt.Sprintf("cannot vary %s: %s", key, problem), Hint: hint}
}

// step is one part of a key: a name, then possibly which items of its list.
type step struct {
	name     string
	indexed  bool
	from, to string // to is "" without a colon
	colon    bool
}

var stepForm = regexp.MustCompile(`^([a-z_]+)(\[([^\[\]]*)\])?$`)

func parseKey(key string) ([]step, error) {
	var steps []step
	for _, part := range splitKey(key) {
		m := stepForm.FindStringSubmatch(part)
		if m == nil {
			return nil, fmt.Errorf("%q is not a key, want one such as members[0:3].noise or profit.beta[0]", part)
		}
		st := step{name: m[1], indexed: m[2] != ""}
		st.from, st.to, st.colon = strings.Cut(m[3], ":")
		steps = append(steps, st)
	}
	return steps, nil
}

// splitKey splits at dots, except those inside brackets: names may have dots.
func splitKey(key string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range key {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '.' && depth == 0:
			parts = append(parts, key[start:i])
			start = i + 1
		}
	}
	return append(parts, key[start:])
}

// set returns n with the value put where the steps lead. Only the nodes on
// the way are copied. A last key that is absent is added; decoding then
// decides whether it exists at all.
func set(n *node, path string, steps []step, value *node) (*node, error) {
	st, rest := steps[0], steps[1:]
	if n.kind != mapping {
		return nil, fmt.Errorf("%s is %s and has no keys", path, n.show())
	}
	where := st.name
	if path != "" {
		where = path + "." + st.name
	}
	out := *n
	out.entries = slices.Clone(n.entries)
	at := slices.IndexFunc(out.entries, func(e entry) bool { return e.key == st.name })
	if at < 0 {
		if st.indexed {
			return nil, absent(n, where, st.name)
		}
		child := value
		if len(rest) > 0 {
			if !slices.Contains(sectionNames, where) {
				return nil, absent(n, where, st.name)
			}
			built, err := set(&node{kind: mapping}, where, rest, value)
			if err != nil {
				return nil, err
			}
			child = built
		}
		out.entries = append(out.entries, entry{key: st.name, value: child})
		return &out, nil
	}
	child := out.entries[at].value
	var err error
	switch {
	case st.indexed:
		child, err = setItems(child, where, st, rest, value)
	case len(rest) > 0:
		if child.kind == list {
			return nil, fmt.Errorf("%s is a list, want an index such as %s[0]", where, where)
		}
		child, err = set(child, where, rest, value)
	case child.kind == list && where != "solver.start":
		return nil, fmt.Errorf("%s is a list, want an index such as %s[0]", where, where)
	case child.kind == mapping:
		return nil, fmt.Errorf("%s is a section, want one of its keys: %s", where, strings.Join(keysOf(child), ", "))
	default:
		literal := *value
		literal.line, literal.column = child.line, child.column
		child = &literal
	}
	if err != nil {
		return nil, err
	}
	out.entries[at].value = child
	return &out, nil
}

// sectionNames are the sections that a file may leave out altogether.
var sectionNames = []string{"solver", "training", "training.split"}

func keysOf(n *node) []string {
	var keys []string
	for _, e := range n.entries {
		keys = append(keys, e.key)
	}
	return keys
}

func absent(n *node, where, name string) error {
	known := keysOf(n)
	if near := spelling.Nearest(name, known); near != "" {
		return fmt.Errorf("the file has no %s, did you mean %q?", where, near)
	}
	return fmt.Errorf("the file has no %s, want one of %s", where, strings.Join(known, ", "))
}

func setItems(n *node, path string, st step, rest []step, value *node) (*node, error) {
	if n.kind != list {
		return nil, fmt.Errorf("%s is %s, not a list", path, n.show())
	}
	from, to, err := n.bounds(path, st)
	if err != nil {
		return nil, err
	}
	out := *n
	out.items = slices.Clone(n.items)
	for i := from; i < to; i++ {
		item := out.items[i]
		if len(rest) > 0 {
			varied, err := set(item, fmt.Sprintf("%s[%d]", path, i), rest, value)
			if err != nil {
				return nil, err
			}
			out.items[i] = varied
			continue
		}
		if item.kind == list || item.kind == mapping {
			return nil, fmt.Errorf("%s[%d] is %s, want one of its keys", path, i, item.kind)
		}
		literal := *value
		literal.line, literal.column = item.line, item.column
		out.items[i] = &literal
	}
	return &out, nil
}

// bounds returns which items a step means: [i], [i:j] without j, either end
// left out, or [name] for the item of that name.
func (n *node) bounds(path string, st step) (from, to int, err error) {
	length := len(n.items)
	if !st.colon {
		if i, err := strconv.Atoi(st.from); err == nil {
			if i < 0 || i >= length {
				return 0, 0, fmt.Errorf("%s[%d] does not exist, want an index from 0 to %d", path, i, length-1)
			}
			return i, i + 1, nil
		}
		var names []string
		for i, item := range n.items {
			if name := item.child("name"); name != nil {
				if name.text == st.from {
					return i, i + 1, nil
				}
				names = append(names, name.text)
			}
		}
		if near := spelling.Nearest(st.from, names); near != "" {
			return 0, 0, fmt.Errorf("%s has none named %q, did you mean %q?", path, st.from, near)
		}
		return 0, 0, fmt.Errorf("%s[%s] does not exist, want an index from 0 to %d or a name", path, st.from, length-1)
	}
	to = length
	if st.from != "" {
		from, err = strconv.Atoi(st.from)
	}
	if st.to != "" && err == nil {
		to, err = strconv.Atoi(st.to)
	}
	if err != nil || from < 0 || to > length || from >= to {
		return 0, 0, fmt.Errorf("%s[%s:%s] does not exist, want from:to with 0 ≤ from < to ≤ %d", path, st.from, st.to, length)
	}
	return from, to, nil
}

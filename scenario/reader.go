package scenario

import (
	"fmt"
	"slices"
	"strings"

	"grange/internal/spelling"
)

// reader turns the tree into values. It keeps the first complaint and from
// then on returns zero values, so that decoding reads straight through.
type reader struct {
	file string
	err  *Error
}

func (r *reader) fail(at *node, key, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{File: r.file, Line: at.line, Column: at.column, Key: key, Problem: fmt.Sprintf(format, args...)}
		if at.kind == unclear {
			r.hint("write a decimal number without leading zeros, or quote it where it is text: %q", shorten(at.text))
		}
	}
}

// hint says what to do about the complaint just made.
func (r *reader) hint(format string, args ...any) {
	if r.err != nil && r.err.Hint == "" {
		r.err.Hint = fmt.Sprintf(format, args...)
	}
}

// rule is a condition on a number, in words for the error message.
type rule struct {
	want string
	ok   func(float64) bool
}

var (
	anyNumber   = rule{"a number", func(float64) bool { return true }}
	notNegative = rule{"a number ≥ 0", func(x float64) bool { return x >= 0 }}
	positive    = rule{"a number > 0", func(x float64) bool { return x > 0 }}
	rate        = rule{"a number in [0, 1)", func(x float64) bool { return x >= 0 && x < 1 }}
	fraction    = rule{"a number in [0, 1]", func(x float64) bool { return x >= 0 && x <= 1 }}
)

// fields is a mapping whose keys are known.
type fields struct {
	r    *reader
	node *node
	path string // "" at the top
}

// fields checks that n is a mapping with none but the known keys.
func (r *reader) fields(n *node, path string, known ...string) fields {
	f := fields{r, n, path}
	if n.kind != mapping {
		where := path
		if where == "" {
			where = "the file"
		}
		r.fail(n, path, "%s is %s, want a mapping with the keys %s", where, n.show(), strings.Join(known, ", "))
		f.node = &node{kind: mapping, line: n.line, column: n.column}
		return f
	}
	for _, e := range n.entries {
		if slices.Contains(known, e.key) {
			continue
		}
		at := &node{line: e.line, column: e.column}
		in := ""
		if path != "" {
			in = " in " + path
		}
		if near := spelling.Nearest(e.key, known); near != "" {
			r.fail(at, f.key(e.key), "unknown key %q%s, did you mean %q?", shorten(e.key), in, near)
			r.hint("rename the key to %q", near)
		} else {
			r.fail(at, f.key(e.key), "unknown key %q%s, want one of %s", shorten(e.key), in, strings.Join(known, ", "))
		}
	}
	return f
}

// key returns the full name of a key of f.
func (f fields) key(name string) string {
	if f.path == "" {
		return name
	}
	return f.path + "." + name
}

// has reports whether the key is there. A key without a value counts as there.
func (f fields) has(name string) bool { return f.node.child(name) != nil }

// need returns the value of a key that must be there, or nil after complaining.
func (f fields) need(name, want string) *node {
	if n := f.node.child(name); n != nil {
		return n
	}
	in := f.path
	if in == "" {
		in = "the file"
	}
	f.r.fail(f.node, f.key(name), "%s has no key %q, want %s", in, name, want)
	f.r.hint("add %s: … to it", name)
	return nil
}

func (f fields) text(name, want string) string {
	n := f.need(name, want)
	if n == nil {
		return ""
	}
	if n.kind != text {
		f.r.fail(n, f.key(name), "%s is %s, want %s", f.key(name), n.show(), want)
		if n.kind == number || n.kind == boolean {
			f.r.hint("write %s: %q", name, n.text)
		}
		return ""
	}
	if strings.TrimSpace(n.text) == "" {
		f.r.fail(n, f.key(name), "%s is empty, want %s", f.key(name), want)
	}
	return n.text
}

// choice reads a word that must be one of the given ones. An absent key takes
// the first when it is optional.
func (f fields) choice(name string, optional bool, words ...string) string {
	if optional && !f.has(name) {
		return words[0]
	}
	want := "one of " + strings.Join(words, ", ")
	n := f.need(name, want)
	if n == nil {
		return ""
	}
	return f.r.word(n, f.key(name), words)
}

func (r *reader) word(n *node, key string, words []string) string {
	if n.kind == text && slices.Contains(words, n.text) {
		return n.text
	}
	want := "one of " + strings.Join(words, ", ")
	near := ""
	if n.kind == text {
		near = spelling.Nearest(n.text, words)
	}
	if near != "" {
		r.fail(n, key, "%s is %s, want %s; did you mean %q?", key, n.show(), want, near)
		r.hint("write %s there", near)
	} else {
		r.fail(n, key, "%s is %s, want %s", key, n.show(), want)
	}
	return ""
}

func (f fields) number(name string, rule rule) float64 {
	n := f.need(name, rule.want)
	if n == nil {
		return 0
	}
	return f.r.number(n, f.key(name), rule)
}

func (f fields) numberOr(name string, otherwise float64, rule rule) float64 {
	if !f.has(name) {
		return otherwise
	}
	return f.number(name, rule)
}

func (r *reader) number(n *node, key string, rule rule) float64 {
	if n.kind != number {
		r.fail(n, key, "%s is %s, want %s", key, n.show(), rule.want)
		return 0
	}
	x := parseNumeral(n.text)
	want := rule.want
	finite := x-x == 0
	if !finite && rule.ok(x) {
		want = strings.Replace(want, "a number", "a finite number", 1)
	}
	if !finite || !rule.ok(x) {
		r.fail(n, key, "%s is %s, want %s", key, n.show(), want)
		return 0
	}
	return x
}

// exactLimit is 2⁵³: up to here every whole number is a float64.
const exactLimit = 1 << 53

func (f fields) integer(name string, least int64) int64 {
	n := f.need(name, wholeFrom(least))
	if n == nil {
		return 0
	}
	return f.r.integer(n, f.key(name), least, exactLimit)
}

func (f fields) integerOr(name string, otherwise, least int64) int64 {
	if !f.has(name) {
		return otherwise
	}
	return f.integer(name, least)
}

func wholeFrom(least int64) string { return fmt.Sprintf("a whole number ≥ %d", least) }

func (r *reader) integer(n *node, key string, least, most int64) int64 {
	want := wholeFrom(least)
	x, whole := int64(0), false
	if n.kind == number && !specialNumeral.MatchString(n.text) {
		x, whole = parseWhole(n.text)
	}
	if whole && x > most || most < exactLimit {
		want = fmt.Sprintf("a whole number from %d to %d", least, most)
	}
	if !whole || x < least || x > most {
		r.fail(n, key, "%s is %s, want %s", key, n.show(), want)
		return 0
	}
	return x
}

// list returns the values of a list that may not be empty.
func (r *reader) list(n *node, key, want string) []*node {
	switch {
	case n.kind != list:
		r.fail(n, key, "%s is %s, want %s", key, n.show(), want)
	case len(n.items) == 0:
		r.fail(n, key, "%s is an empty list, want %s", key, want)
	}
	return n.items
}

// numbers reads a list of exactly length numbers; any length when it is 0.
func (f fields) numbers(name string, length int, want string, rule rule) []float64 {
	n := f.need(name, want)
	if n == nil {
		return make([]float64, length)
	}
	items := f.r.list(n, f.key(name), want)
	if length > 0 && len(items) != length {
		f.r.fail(n, f.key(name), "%s has %d numbers, want %s", f.key(name), len(items), want)
		return make([]float64, length)
	}
	values := make([]float64, len(items))
	for i, item := range items {
		values[i] = f.r.number(item, fmt.Sprintf("%s[%d]", f.key(name), i), rule)
	}
	return values
}

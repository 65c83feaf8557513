package scenario

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// maxDepth is how deep lists and mappings may nest. The format needs five
// levels.
const maxDepth = 16

type kind int

const (
	null kind = iota
	boolean
	number
	unclear // a numeral that can be read in more than one way
	text
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"nothing", "a truth value", "a number", "an unclear number", "text", "a list", "a mapping"}[k]
}

// node is a YAML value, reduced to what a scenario may contain, with its
// place in the file.
type node struct {
	kind         kind
	line, column int
	text         string // of a number, clear or not, a text or a truth value
	entries      []entry
	items        []*node
}

type entry struct {
	key          string
	line, column int
	value        *node
}

// child returns the value of key in a mapping, or nil.
func (n *node) child(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}
	return nil
}

// show returns the value as an error message shows it.
func (n *node) show() string {
	switch n.kind {
	case number, boolean:
		return shorten(n.text)
	case unclear:
		return shorten(n.text) + ", which can be read in more than one way"
	case text:
		return fmt.Sprintf("%q", shorten(n.text))
	case list:
		return fmt.Sprintf("a list of %d", len(n.items))
	}
	return n.kind.String()
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return s
}

// A number is what YAML 1.2 calls a decimal integer or a float, with
// underscores between digits allowed; those that are not finite are numbers
// too, which no rule lets through. Other notations (hexadecimal, leading
// zeros, sexagesimal) mean different things to different readers.
var numeral = regexp.MustCompile(`^[-+]?((0|[1-9][0-9]*(_[0-9]+)*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$`)

var oddNumeral = regexp.MustCompile(
	`^[-+]?(0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|0[0-9_]+(\.[0-9]*)?|[0-9]+(:[0-9]+)+|[0-9][0-9_]*)$`)

var specialNumeral = regexp.MustCompile(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)

// parseTree reads one YAML document.
func parseTree(file string, data []byte) (tree *node, err error) {
	c := converter{file: file}
	defer func() {
		// The library is trusted to parse, not to survive every byte sequence.
		if r := recover(); r != nil {
			tree, err = nil, c.fail(nil, "not valid YAML: %v", r)
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if err := c.deep(tokens); err != nil {
		return nil, err
	}
	marked := c.marked(tokens)
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	switch {
	case err != nil && marked != nil:
		return nil, marked
	case err != nil:
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			return nil, c.fail(syntax.GetToken(), "not valid YAML: %s", syntax.GetMessage())
		}
		return nil, c.fail(nil, "not valid YAML: %v", err)
	}
	var bodies []ast.Node
	for _, d := range parsed.Docs {
		if d.Body != nil {
			if _, comment := d.Body.(*ast.CommentGroupNode); !comment {
				bodies = append(bodies, d.Body)
			}
		}
	}
	switch {
	case len(bodies) == 0:
		return nil, &Error{File: file, Problem: "empty, want a scenario", Hint: "start from a file in examples/"}
	case len(bodies) > 1 || len(parsed.Docs) > 1 && documents(tokens) > 1:
		return nil, c.fail(bodies[len(bodies)-1].GetToken(), "a second YAML document, want one per file")
	}
	tree, err = c.convert(bodies[0], "")
	if err == nil && marked != nil {
		return nil, marked
	}
	return tree, err
}

// documents counts the --- markers.
func documents(tokens token.Tokens) int {
	n := 0
	for _, t := range tokens {
		if t.Type == token.DocumentHeaderType {
			n++
		}
	}
	return n
}

type converter struct{ file string }

func (c *converter) fail(t *token.Token, format string, args ...any) *Error {
	e := &Error{File: c.file, Problem: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// deep looks at the tokens before anything is built from them: no nesting
// deeper than any scenario's, whether of lists, of mappings or of marks.
func (c *converter) deep(tokens token.Tokens) error {
	depth, line, onLine, marks, last := 0, 0, 0, 0, 0
	for i, t := range tokens {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			// Between an anchor and the next stands its name.
			if i-last > 2 {
				marks = 0
			}
			marks, last = marks+1, i
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			onLine++
		}
		if depth > maxDepth || onLine > maxDepth || marks > maxDepth || t.Position.IndentLevel > maxDepth {
			return c.fail(t, "nested deeper than %d levels", maxDepth)
		}
	}
	return nil
}

// marked complains about the first anchor, alias, merge or tag, or returns
// nil. They are what makes a small file grow without bounds.
func (c *converter) marked(tokens token.Tokens) error {
	for _, t := range tokens {
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType:
			return c.mark(t, "")
		}
	}
	return nil
}

// mark complains about an anchor, alias, merge or tag in the value of a key.
func (c *converter) mark(t *token.Token, path string) error {
	problem, where := "anchors, aliases and merges are not accepted, want the value written out", "the file"
	if t.Type == token.TagType {
		problem = "tags are not accepted, want a plain value"
	}
	if path != "" {
		where = path
	}
	e := c.fail(t, "%s has %q: %s", where, shorten(t.Value), problem)
	e.Key = path
	return e
}

// convert makes a node of the value of the key with the given path.
func (c *converter) convert(in ast.Node, path string) (*node, error) {
	t := in.GetToken()
	out := &node{line: t.Position.Line, column: t.Position.Column}
	switch in := in.(type) {
	case *ast.NullNode:
		return out, nil
	case *ast.BoolNode:
		out.kind, out.text = boolean, t.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind, out.text = scalar(t.Value), t.Value
	case *ast.StringNode:
		out.kind, out.text = text, in.Value
		if t.Type != token.SingleQuoteType && t.Type != token.DoubleQuoteType {
			out.kind, out.text = scalar(t.Value), t.Value
		}
	case *ast.LiteralNode:
		out.kind, out.text = text, in.Value.Value
	case *ast.SequenceNode:
		out.kind = list
		for i, v := range in.Values {
			item, err := c.convert(v, fmt.Sprintf("%s[%d]", path, i))
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
	case *ast.MappingNode:
		return c.mapping(out, in.Values, path)
	case *ast.MappingValueNode:
		return c.mapping(out, []*ast.MappingValueNode{in}, path)
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		return nil, c.mark(t, path)
	default:
		e := c.fail(t, "%s is not accepted here, want a plain value", strings.ToLower(in.Type().String()))
		e.Key = path
		return nil, e
	}
	return out, nil
}

// scalar decides what an unquoted word is.
func scalar(word string) kind {
	switch {
	case numeral.MatchString(word), specialNumeral.MatchString(word):
		return number
	case oddNumeral.MatchString(word):
		return unclear
	}
	return text
}

func (c *converter) mapping(out *node, values []*ast.MappingValueNode, path string) (*node, error) {
	out.kind = mapping
	seen := map[string]int{}
	for i, v := range values {
		t := v.Key.GetToken()
		if i == 0 {
			out.line, out.column = t.Position.Line, t.Position.Column
		}
		switch v.Key.(type) {
		case *ast.StringNode:
		case *ast.MergeKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
			return nil, c.mark(t, path)
		default:
			return nil, c.fail(t, "%s cannot be a key, want a word", shorten(t.Value))
		}
		e := entry{key: t.Value, line: t.Position.Line, column: t.Position.Column}
		if first, twice := seen[e.key]; twice {
			return nil, c.fail(t, "key %q appears twice, first on line %d", shorten(e.key), first)
		}
		seen[e.key] = e.line
		inner := shorten(e.key)
		if path != "" {
			inner = path + "." + inner
		}
		value, err := c.convert(v.Value, inner)
		if err != nil {
			return nil, err
		}
		e.value = value
		out.entries = append(out.entries, e)
	}
	return out, nil
}

// parseNumeral returns the value of a numeral; infinite when it is too large.
func parseNumeral(s string) float64 {
	if specialNumeral.MatchString(s) {
		s = strings.Replace(s, ".", "", 1)
	}
	f, _ := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f
}

// parseWhole returns the value of a numeral digit by digit, so that nothing is
// rounded, and whether it is a whole number; those beyond 18 digits come back
// as the largest of their sign.
func parseWhole(s string) (value int64, whole bool) {
	mantissa, power, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(s, "_", "")), "e")
	exponent, _ := strconv.Atoi(power) // the largest of its sign when it is too large
	negative := strings.HasPrefix(mantissa, "-")
	units, decimals, _ := strings.Cut(strings.TrimLeft(mantissa, "+-"), ".")
	digits := strings.TrimLeft(units+decimals, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return 0, true
	}
	exponent = min(max(exponent, -MaxBytes-18), MaxBytes+18) // more than a file has digits
	zeros := exponent - len(decimals) + len(digits) - len(significant)
	if zeros < 0 {
		return 0, false
	}
	value = math.MaxInt64
	if len(significant)+zeros <= 18 {
		value, _ = strconv.ParseInt(significant+strings.Repeat("0", zeros), 10, 64)
	}
	if negative {
		value = -value
	}
	return value, true
}

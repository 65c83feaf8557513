package scenario

import (
	"errors"
	"fmt"
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
	text
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"nothing", "a truth value", "a number", "text", "a list", "a mapping"}[k]
}

// node is a YAML value, reduced to what a scenario may contain, with its
// place in the file.
type node struct {
	kind         kind
	line, column int
	text         string // of a number, a text or a truth value
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
		return n.text
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
// underscores between digits allowed. Other notations (hexadecimal, leading
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
	if err := c.refuse(tokens); err != nil {
		return nil, err
	}
	parsed, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
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
	return c.convert(bodies[0])
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

func (c *converter) fail(t *token.Token, format string, args ...any) error {
	e := &Error{File: c.file, Problem: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		e.Line, e.Column = t.Position.Line, t.Position.Column
	}
	return e
}

// refuse looks at the tokens before anything is built from them: no anchors,
// aliases, tags or merges, which are what makes a small file grow without
// bounds, and no nesting deeper than any scenario's.
func (c *converter) refuse(tokens token.Tokens) error {
	depth, line, onLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			return c.fail(t, "%q: anchors, aliases and merges are not accepted, want the value written out", shorten(t.Value))
		case token.TagType:
			return c.fail(t, "%q: tags are not accepted, want a plain value", shorten(t.Value))
		case token.SequenceStartType, token.MappingStartType:
			depth++
		case token.SequenceEndType, token.MappingEndType:
			depth--
		case token.SequenceEntryType, token.MappingKeyType:
			onLine++
		}
		if depth > maxDepth || onLine > maxDepth || t.Position.IndentLevel > maxDepth {
			return c.fail(t, "nested deeper than %d levels", maxDepth)
		}
	}
	return nil
}

func (c *converter) convert(in ast.Node) (*node, error) {
	t := in.GetToken()
	out := &node{line: t.Position.Line, column: t.Position.Column}
	switch in := in.(type) {
	case *ast.NullNode:
		return out, nil
	case *ast.BoolNode:
		out.kind, out.text = boolean, t.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return c.scalar(out, t)
	case *ast.StringNode:
		if t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
			out.kind, out.text = text, in.Value
			return out, nil
		}
		return c.scalar(out, t)
	case *ast.LiteralNode:
		out.kind, out.text = text, in.Value.Value
	case *ast.SequenceNode:
		out.kind = list
		for _, v := range in.Values {
			item, err := c.convert(v)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
	case *ast.MappingNode:
		return c.mapping(out, in.Values)
	case *ast.MappingValueNode:
		return c.mapping(out, []*ast.MappingValueNode{in})
	default:
		return nil, c.fail(t, "%s is not accepted here, want a plain value", strings.ToLower(in.Type().String()))
	}
	return out, nil
}

// scalar decides what an unquoted word is.
func (c *converter) scalar(out *node, t *token.Token) (*node, error) {
	out.text = t.Value
	switch {
	case numeral.MatchString(t.Value):
		out.kind = number
		if f := parseNumeral(t.Value); f-f != 0 {
			return nil, c.fail(t, "%s is too large for a number", shorten(t.Value))
		}
	case specialNumeral.MatchString(t.Value):
		return nil, c.fail(t, "%s is not a finite number", t.Value)
	case oddNumeral.MatchString(t.Value):
		return nil, c.fail(t, "%s can be read in more than one way, want a decimal number without leading zeros, or quoted text", shorten(t.Value))
	default:
		out.kind = text
	}
	return out, nil
}

func (c *converter) mapping(out *node, values []*ast.MappingValueNode) (*node, error) {
	out.kind = mapping
	seen := map[string]int{}
	for i, v := range values {
		t := v.Key.GetToken()
		if i == 0 {
			out.line, out.column = t.Position.Line, t.Position.Column
		}
		if _, ok := v.Key.(*ast.StringNode); !ok {
			return nil, c.fail(t, "%s cannot be a key, want a word", shorten(t.Value))
		}
		e := entry{key: t.Value, line: t.Position.Line, column: t.Position.Column}
		if first, twice := seen[e.key]; twice {
			return nil, c.fail(t, "key %q appears twice, first on line %d", shorten(e.key), first)
		}
		seen[e.key] = e.line
		value, err := c.convert(v.Value)
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
	f, _ := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f
}

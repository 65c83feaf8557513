package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"
)

// What an expression may cost: bytes and parts when it is read, and memory
// units of the expression machine when it is run. Expressions have no loops, so
// these bound its time too. The bytes also bound how deep parentheses nest,
// which the library follows with its stack before it counts parts.
const (
	maxExpressionBytes  = 4 << 10
	maxExpressionNodes  = 1000
	maxExpressionMemory = 10_000
)

// functions are what an expression can call.
type functions struct {
	Ln   func(float64) float64          `expr:"ln"`
	Log  func(float64) float64          `expr:"log"`
	Exp  func(float64) float64          `expr:"exp"`
	Sqrt func(float64) float64          `expr:"sqrt"`
	Abs  func(float64) float64          `expr:"abs"`
	Tanh func(float64) float64          `expr:"tanh"`
	Pow  func(float64, float64) float64 `expr:"pow"`
	Min  func(...float64) float64       `expr:"min"`
	Max  func(...float64) float64       `expr:"max"`
}

var library = functions{
	Ln: math.Log, Log: math.Log, Exp: math.Exp, Sqrt: math.Sqrt, Abs: math.Abs, Tanh: math.Tanh, Pow: math.Pow,
	Min: func(xs ...float64) float64 { return fold(math.Min, xs) },
	Max: func(xs ...float64) float64 { return fold(math.Max, xs) },
}

var functionNames = []string{"ln", "log", "exp", "sqrt", "pow", "abs", "min", "max", "tanh"}

func fold(f func(a, b float64) float64, xs []float64) float64 {
	if len(xs) == 0 {
		return math.NaN()
	}
	out := xs[0]
	for _, x := range xs[1:] {
		out = f(out, x)
	}
	return out
}

type accuracyVariables struct {
	functions
	S, R float64
}

type profitVariables struct {
	functions
	A float64
}

type costVariables struct {
	functions
	Contribution float64 `expr:"s"`
}

// frame is one evaluator with its variables; a program keeps a pool of them,
// so that it can be run from many goroutines.
type frame struct {
	machine vm.VM
	env     any
	x, y    *float64
}

// program is a compiled expression of one or two variables.
type program struct {
	code   *vm.Program
	frames sync.Pool
}

// run returns the value, or NaN when the expression fails.
func (p *program) run(x, y float64) float64 {
	f := p.frames.Get().(*frame)
	defer p.frames.Put(f)
	*f.x, *f.y = x, y
	value, err := f.machine.Run(p.code, f.env)
	if v, ok := value.(float64); ok && err == nil {
		return v
	}
	return math.NaN()
}

// compile checks an expression in the given variables: S and R, A, or s.
func compile(source string, variables []string) (*program, error) {
	if len(source) > maxExpressionBytes {
		return nil, fmt.Errorf("%d bytes long, more than the %d an expression may have", len(source), maxExpressionBytes)
	}
	newFrame := func() *frame {
		f := &frame{machine: vm.VM{MemoryBudget: maxExpressionMemory}}
		switch variables[0] {
		case "S":
			v := &accuracyVariables{functions: library}
			f.env, f.x, f.y = v, &v.S, &v.R
		case "A":
			v := &profitVariables{functions: library}
			f.env, f.x, f.y = v, &v.A, new(float64)
		default:
			v := &costVariables{functions: library}
			f.env, f.x, f.y = v, &v.Contribution, new(float64)
		}
		return f
	}
	screen := &screen{names: append(slices.Clone(functionNames), variables...)}
	code, err := expr.Compile(source, expr.Env(newFrame().env), expr.AsFloat64(),
		expr.DisableAllBuiltins(), expr.MaxNodes(maxExpressionNodes), expr.Patch(screen))
	if screen.err != nil {
		return nil, screen.err
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, errors.New(first)
	}
	return &program{code: code, frames: sync.Pool{New: func() any { return newFrame() }}}, nil
}

// screen lets through arithmetic, comparisons, conditions and calls of the
// known functions, and makes every number a float so that integers cannot
// overflow.
type screen struct {
	names []string
	err   error
}

var operators = []string{"+", "-", "*", "/", "^", "**", "<", "<=", ">", ">=", "==", "!=", "&&", "||", "and", "or", "!", "not"}

func (s *screen) Visit(n *ast.Node) {
	switch node := (*n).(type) {
	case *ast.IntegerNode:
		ast.Patch(n, &ast.FloatNode{Value: float64(node.Value)})
	case *ast.FloatNode, *ast.BoolNode, *ast.ConditionalNode:
	case *ast.CallNode:
		if _, ok := node.Callee.(*ast.IdentifierNode); !ok {
			s.refuse("a call of something that is not a function")
		}
	case *ast.IdentifierNode:
		if !slices.Contains(s.names, node.Value) {
			s.refuse(fmt.Sprintf("unknown name %s", node.Value))
		}
	case *ast.UnaryNode:
		s.operator(node.Operator)
	case *ast.BinaryNode:
		s.operator(node.Operator)
	default:
		s.refuse("more than arithmetic, comparisons, conditions (a ? b : c) and functions")
	}
}

func (s *screen) operator(word string) {
	if !slices.Contains(operators, word) {
		s.refuse("operator " + word + " cannot be used")
	}
}

func (s *screen) refuse(why string) {
	if s.err == nil {
		s.err = errors.New(why)
	}
}

// expression reads and compiles the key `expression`.
func (f fields) expression(variables ...string) (string, *program) {
	want := "an expression in " + strings.Join(variables, " and ")
	source := f.text("expression", want)
	if f.r.err != nil {
		return "", nil
	}
	p, err := compile(source, variables)
	if err != nil {
		f.r.fail(f.node.child("expression"), f.key("expression"), "%s %q: %s; want %s with the functions %s",
			f.key("expression"), shorten(source), err, want, strings.Join(functionNames, ", "))
		return "", nil
	}
	return source, p
}

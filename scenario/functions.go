package scenario

import (
	"fmt"

	"grange/curve"
	"grange/game"
)

// Accuracy is the section `accuracy`: A = clean(S) − γ·R.
type Accuracy struct {
	Form       string     // loglinear, power, exponential or expression
	Alpha      [5]float64 // of loglinear
	A, B, C, D float64    // of power; exponential has no D
	Expression string     // of expression, in S and R
	Gamma      float64    // γ; default 0
	Untrained  *float64   // A without data; default clean(0)
	Floor      *float64   // default none
	Ceiling    *float64   // default none

	program *program
}

// Profit is the section `profit`: Π(A).
type Profit struct {
	Form       string     // linear, quadratic, power or expression
	Beta       [2]float64 // β1, β2
	Exponent   float64    // of power
	Expression string     // of expression, in A

	program *program
}

// Cost is the section `cost`: f(s) in C_n(s) = μ_n·f(s).
type Cost struct {
	Form       string  // linear, quadratic, power or expression
	Exponent   float64 // of power
	Expression string  // of expression, in s

	program *program
}

// form returns the form of a function and its fields, with none but the keys
// that this form knows.
func (r *reader) form(n *node, path string, common []string, keys map[string][]string, forms ...string) (string, fields) {
	if n.kind != mapping {
		r.fail(n, path, "%s is %s, want a mapping such as {form: %s, …}", path, n.show(), forms[0])
		return "", fields{r, &node{kind: mapping}, path}
	}
	all := append([]string{"form"}, common...)
	for _, form := range forms {
		all = append(all, keys[form]...)
	}
	f := r.fields(n, path, all...)
	form := f.choice("form", false, forms...)
	if form != "" {
		known := append(append([]string{"form"}, keys[form]...), common...)
		r.fields(n, fmt.Sprintf("%s of form %s", path, form), known...)
	}
	return form, f
}

func (r *reader) accuracy(n *node) *Accuracy {
	form, f := r.form(n, "accuracy", []string{"gamma", "untrained", "floor", "ceiling"}, map[string][]string{
		"loglinear":   {"alpha"},
		"power":       {"a", "b", "c", "d"},
		"exponential": {"a", "b", "c"},
		"expression":  {"expression"},
	}, "loglinear", "power", "exponential", "expression")
	a := &Accuracy{Form: form, Gamma: f.numberOr("gamma", 0, anyNumber)}
	switch form {
	case "loglinear":
		copy(a.Alpha[:], f.numbers("alpha", 5, "a list of five numbers, α1 … α5", anyNumber))
	case "power":
		a.A, a.B, a.C, a.D = f.number("a", anyNumber), f.number("b", anyNumber), f.number("c", anyNumber), f.number("d", anyNumber)
	case "exponential":
		a.A, a.B, a.C = f.number("a", anyNumber), f.number("b", anyNumber), f.number("c", anyNumber)
	case "expression":
		a.Expression, a.program = f.expression("S", "R")
	}
	a.Untrained, a.Floor, a.Ceiling = f.optional("untrained"), f.optional("floor"), f.optional("ceiling")
	if a.Floor != nil && a.Ceiling != nil && *a.Floor > *a.Ceiling {
		r.fail(n.child("floor"), "accuracy.floor", "accuracy.floor is %g, above the ceiling %g; want floor ≤ ceiling", *a.Floor, *a.Ceiling)
	}
	return a
}

func (f fields) optional(name string) *float64 {
	if !f.has(name) {
		return nil
	}
	x := f.number(name, anyNumber)
	return &x
}

func (r *reader) profit(n *node) *Profit {
	form, f := r.form(n, "profit", nil, map[string][]string{
		"linear":     {"beta"},
		"quadratic":  {"beta"},
		"power":      {"beta", "exponent"},
		"expression": {"expression"},
	}, "linear", "quadratic", "power", "expression")
	p := &Profit{Form: form}
	switch form {
	case "linear", "quadratic", "power":
		copy(p.Beta[:], f.numbers("beta", 2, "a list of two numbers, β1 and β2", anyNumber))
		if form == "power" {
			p.Exponent = f.number("exponent", positive)
		}
	case "expression":
		p.Expression, p.program = f.expression("A")
	}
	return p
}

func (r *reader) cost(n *node) Cost {
	form, f := r.form(n, "cost", nil, map[string][]string{
		"power":      {"exponent"},
		"expression": {"expression"},
	}, "linear", "quadratic", "power", "expression")
	c := Cost{Form: form}
	switch form {
	case "power":
		c.Exponent = f.number("exponent", positive)
	case "expression":
		c.Expression, c.program = f.expression("s")
	}
	return c
}

// Game returns the game the scenario describes. A file that only trains may
// lack accuracy or profit; then the error says what to add.
func (s *Scenario) Game() (*game.Game, error) {
	if s.Accuracy == nil {
		return nil, &Error{File: s.file, Key: "accuracy", Problem: "has no accuracy section, which a game needs",
			Hint: fmt.Sprintf("grange run %[1]s does the whole job; or grange measure %[1]s, then grange fit %[1]s --out accuracy.yaml, and add that line to %[1]s", s.file)}
	}
	if s.Profit == nil {
		return nil, &Error{File: s.file, Key: "profit", Problem: "has no profit section, which a game needs",
			Hint: "add one, such as profit: {form: quadratic, beta: [15000, 0]}"}
	}
	g := &game.Game{
		Accuracy: s.Accuracy.game(),
		Profit:   s.Profit.game(),
		Cost:     s.Cost.game(),
		Minimum:  s.Solver.Minimum,
		Negative: s.Negative,
	}
	for _, m := range s.Members {
		g.Members = append(g.Members, game.Member{
			Name: m.Name, Capacity: m.Data, Noise: m.Noise, Privacy: m.Privacy, Outside: m.Outside,
		})
	}
	return g, nil
}

func (a *Accuracy) game() game.Accuracy {
	out := game.Accuracy{Gamma: a.Gamma, Floor: -game.Unbounded, Ceiling: game.Unbounded}
	switch a.Form {
	case "loglinear":
		out.Clean = curve.LogLinear{Alpha: a.Alpha}
	case "power":
		out.Clean = curve.Power{A: a.A, B: a.B, C: a.C, D: a.D}
	case "exponential":
		out.Clean = curve.Exponential{A: a.A, B: a.B, C: a.C}
	case "expression":
		gamma := a.Gamma
		out.Clean = curve.Func(func(total float64) float64 { return a.program.run(total, 0) })
		out.Formula = func(total, wrongShare float64) float64 {
			return a.program.run(total, wrongShare) - gamma*wrongShare
		}
	}
	if a.Floor != nil {
		out.Floor = *a.Floor
	}
	if a.Ceiling != nil {
		out.Ceiling = *a.Ceiling
	}
	if a.Untrained != nil {
		out.Untrained = *a.Untrained
	} else {
		out.Untrained = out.Clean.At(0)
	}
	return out
}

func (p *Profit) game() game.Profit {
	switch p.Form {
	case "linear":
		return game.LinearProfit{Slope: p.Beta[0], Base: p.Beta[1]}
	case "quadratic":
		return game.PowerProfit{Slope: p.Beta[0], Base: p.Beta[1], Exponent: 2}
	case "power":
		return game.PowerProfit{Slope: p.Beta[0], Base: p.Beta[1], Exponent: p.Exponent}
	}
	return game.ProfitFunc(func(accuracy float64) float64 { return p.program.run(accuracy, 0) })
}

func (c Cost) game() game.Cost {
	switch c.Form {
	case "linear":
		return game.PowerCost{Exponent: 1}
	case "quadratic":
		return game.PowerCost{Exponent: 2}
	case "power":
		return game.PowerCost{Exponent: c.Exponent}
	}
	return game.CostFunc(func(contribution float64) float64 { return c.program.run(contribution, 0) })
}

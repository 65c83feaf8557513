package cli

import (
	"context"
	"maps"
	"slices"

	"grange/valuation"
	"grange/valuation/reconstruct"
)

// roundMethods value saved updates round by round.
var roundMethods = map[string]func(context.Context, reconstruct.History, reconstruct.Evaluate, uint64, valueFlags) (*reconstruct.Outcome, error){
	"gtg": func(ctx context.Context, h reconstruct.History, evaluate reconstruct.Evaluate, seed uint64, flags valueFlags) (*reconstruct.Outcome, error) {
		return roundByRound(nil, seed, flags).Value(ctx, h, evaluate)
	},
	"gtg-adjusted": func(ctx context.Context, h reconstruct.History, evaluate reconstruct.Evaluate, seed uint64, flags valueFlags) (*reconstruct.Outcome, error) {
		return roundByRound(valuation.Adjusted{}, seed, flags).Value(ctx, h, evaluate)
	},
	"one-round": func(ctx context.Context, h reconstruct.History, evaluate reconstruct.Evaluate, seed uint64, flags valueFlags) (*reconstruct.Outcome, error) {
		return oneRound(ctx, h, evaluate, seed, flags)
	},
	"multi-round": func(ctx context.Context, h reconstruct.History, evaluate reconstruct.Evaluate, _ uint64, flags valueFlags) (*reconstruct.Outcome, error) {
		m := reconstruct.MultiRound{Tabulation: valuation.Tabulation{Limit: flags.limit, Workers: flags.workers}}
		return m.Value(ctx, h, evaluate)
	},
}

// roundByRound is GTG with a sampler of its own, or nil for the paper's.
func roundByRound(m valuation.Method, seed uint64, flags valueFlags) reconstruct.GTG {
	g := reconstruct.GTG{Method: m, Settings: valuation.Settings{Seed: seed, Workers: flags.workers}}
	if flags.evaluations > 0 {
		g.Settings.Stop = valuation.Evaluations(flags.evaluations)
	}
	return g
}

// oneRound values the final models of added-up steps: exactly where that many
// coalitions are allowed, else by sampling.
func oneRound(ctx context.Context, h reconstruct.History, evaluate reconstruct.Evaluate, seed uint64, flags valueFlags) (*reconstruct.Outcome, error) {
	g, err := reconstruct.OneRound(ctx, h, evaluate)
	if err != nil {
		return nil, err
	}
	n := len(h.Members())
	budget := flags.evaluations
	if budget == 0 {
		budget = 100 * n
		if n <= flags.limit {
			budget = max(budget, 1<<n)
		}
	}
	r, err := valuation.Estimates(ctx, g, valuation.Adjusted{}, valuation.Settings{Seed: seed, Workers: flags.workers, Stop: valuation.Evaluations(budget)})
	if err != nil {
		return nil, err
	}
	r.Method = "one-round"
	return &reconstruct.Outcome{Result: *r}, nil
}

// exactMethods need the worth of every coalition.
var exactMethods = map[string]func(valuation.Table) ([]float64, error){
	"exact":     valuation.Shapley,
	"banzhaf":   valuation.Banzhaf,
	"nucleolus": valuation.Nucleolus,
}

// samplingMethods need the worths of some.
var samplingMethods = map[string]valuation.Method{
	"permutation": valuation.Permutation{},
	"antithetic":  valuation.Permutation{Antithetic: true},
	"truncated":   valuation.Permutation{Truncation: 0.01},
	"stratified":  valuation.Stratified{},
	"owen":        valuation.Owen{},
	"kernel":      valuation.Kernel{},
	"svarm":       valuation.SVARM{},
	"adjusted":    valuation.Adjusted{},
}

// valueMethods lists all of them.
func valueMethods() []string {
	list := []string{"gtg", "gtg-adjusted", "multi-round", "one-round", "exact", "loo", "banzhaf", "nucleolus"}
	return append(list, slices.Sorted(maps.Keys(samplingMethods))...)
}

// wanted lists the coalitions that a method is certain to ask for; none when
// that depends on chance.
func wanted(method string, members int) []valuation.Coalition {
	everyone := valuation.Everyone(members)
	var list []valuation.Coalition
	switch _, all := exactMethods[method]; {
	case method == "loo":
		list = append(list, 0, everyone)
		for n := range members {
			list = append(list, everyone.Without(n))
		}
	case all:
		for c := range everyone + 1 {
			list = append(list, c)
		}
	}
	return list
}

// valueGame values a game by any method but those that go by rounds.
func (a *app) valueGame(ctx context.Context, g *valuation.Game, method string, seed uint64, flags valueFlags) (*valuation.Result, error) {
	budget := flags.evaluations
	if budget == 0 {
		budget = 100 * g.Members
	}
	total := budget
	if known := wanted(method, min(g.Members, valuation.ExactLimit)); known != nil {
		total = len(known)
	}
	bar := a.progress("coalitions", total)
	defer bar.stop()
	watched := *g
	watched.Utility = valuation.Observed(g.Utility, func(valuation.Coalition, float64) { bar.step() })
	if m, samples := samplingMethods[method]; samples {
		return valuation.Estimates(ctx, &watched, m, valuation.Settings{Seed: seed, Workers: flags.workers, Stop: valuation.Evaluations(budget)})
	}
	result := &valuation.Result{Method: method, Names: g.Names, Status: valuation.Exact, Reason: "every coalition it needs is valued"}
	zeros := func() []float64 { return make([]float64, g.Members) }
	if method == "loo" {
		if err := leaveOneOut(ctx, &watched, result); err != nil {
			return nil, err
		}
		return result, nil
	}
	table, err := valuation.Tabulation{Limit: flags.limit, Workers: flags.workers}.Table(ctx, &watched)
	if err != nil {
		return nil, err
	}
	values, err := exactMethods[method](table)
	if err != nil {
		return nil, err
	}
	result.Estimate = valuation.Estimate{Values: values, Errors: zeros(), Spread: zeros()}
	result.Empty, result.Whole, result.Evaluations = table[0], table[len(table)-1], len(table)
	return result, nil
}

// leaveOneOut values N+2 coalitions.
func leaveOneOut(ctx context.Context, g *valuation.Game, result *valuation.Result) error {
	list := wanted("loo", g.Members)
	worths := make([]float64, len(list))
	for i, c := range list {
		var err error
		if worths[i], err = g.Utility.Value(ctx, c); err != nil {
			return &valuation.CoalitionError{Coalition: c, Names: g.Names, Err: err}
		}
	}
	n := g.Members
	result.Empty, result.Whole, result.Evaluations = worths[0], worths[1], len(worths)
	result.Estimate = valuation.Estimate{Values: make([]float64, n), Errors: make([]float64, n), Spread: make([]float64, n)}
	for i, without := range worths[2:] {
		result.Values[i] = result.Whole - without
	}
	return nil
}

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"grange/game"
	"grange/valuation"
)

// updateMethods need saved updates: they ask for other models than the final
// ones by replaying.
var updateMethods = []string{"gtg", "gtg-adjusted", "multi-round", "one-round"}

// tableMethods need the worth of every coalition. Some have a remark about them.
var tableMethods = map[string]func(valuation.Table, valueFlags) (values []float64, remark string, err error){
	"exact":     unremarked(valuation.Shapley),
	"banzhaf":   unremarked(valuation.Banzhaf),
	"nucleolus": unremarked(valuation.Nucleolus),
	"beta": func(t valuation.Table, flags valueFlags) ([]float64, string, error) {
		values, err := valuation.Beta(t, flags.beta[0], flags.beta[1])
		return values, fmt.Sprintf("; α %v, β %v", flags.beta[0], flags.beta[1]), err
	},
	"least-core": func(t valuation.Table, _ valueFlags) ([]float64, string, error) {
		values, epsilon, err := valuation.LeastCore(t)
		return values, fmt.Sprintf("; no coalition would have %.4f more by itself", epsilon), err
	},
}

func unremarked(method func(valuation.Table) ([]float64, error)) func(valuation.Table, valueFlags) ([]float64, string, error) {
	return func(t valuation.Table, _ valueFlags) ([]float64, string, error) {
		values, err := method(t)
		return values, "", err
	}
}

// programs are those of them that solve linear programs.
var programs = []string{"least-core", "nucleolus"}

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
	list := append(slices.Clone(updateMethods), "exact", "loo", "banzhaf", "beta", "least-core", "nucleolus")
	return append(list, slices.Sorted(maps.Keys(samplingMethods))...)
}

// needsAll reports whether a method values every coalition, be it once or in
// every round.
func needsAll(method string) bool {
	_, all := tableMethods[method]
	return all || method == "multi-round"
}

// certain lists the coalitions that a method is sure to ask for; none when
// that depends on chance.
func certain(method string, members int) []valuation.Coalition {
	everyone := valuation.Everyone(members)
	var list []valuation.Coalition
	switch _, all := tableMethods[method]; {
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

// valueGame values a game by any method but those that go by rounds. It must
// be small enough for the method.
func (a *app) valueGame(ctx context.Context, g *valuation.Game, method string, seed uint64, flags valueFlags) (*valuation.Result, error) {
	m, samples := samplingMethods[method]
	total := budget(g.Members, flags)
	switch {
	case method == "loo":
		total = g.Members + 2
	case !samples:
		total = 1 << g.Members
	}
	bar := a.progress("coalitions", total)
	defer bar.stop()
	watched := *g
	watched.Utility = valuation.Observed(g.Utility, func(valuation.Coalition, float64) { bar.step() })
	if samples {
		return sampled(ctx, &watched, m, seed, rules(g.Members, flags), flags)
	}
	worth, err := worths(ctx, &watched, method, flags)
	if err != nil {
		return nil, err
	}
	values, remark, err := formula(method, g.Members, worth, flags)
	if err != nil {
		return nil, err
	}
	zeros := func() []float64 { return make([]float64, g.Members) }
	return &valuation.Result{
		Method: method, Names: g.Names, Estimate: valuation.Estimate{Values: values, Errors: zeros(), Spread: zeros()},
		Empty: worth(0), Whole: worth(valuation.Everyone(g.Members)), Evaluations: total,
		Status: valuation.Exact, Reason: "every coalition it needs is valued" + remark,
	}, nil
}

// worths values all that an exact method needs.
func worths(ctx context.Context, g *valuation.Game, method string, flags valueFlags) (func(valuation.Coalition) float64, error) {
	if method != "loo" {
		table, err := valuation.Tabulation{Limit: flags.limit, Workers: flags.workers}.Table(ctx, g)
		return func(c valuation.Coalition) float64 { return table[c] }, err
	}
	known := map[valuation.Coalition]float64{}
	for _, c := range certain(method, g.Members) {
		v, err := g.Utility.Value(ctx, c)
		if err == nil && !game.Finite(v) {
			err = fmt.Errorf("%w: %v", valuation.ErrNotFinite, v)
		}
		if err != nil {
			return nil, &valuation.CoalitionError{Coalition: c, Names: g.Names, Err: err}
		}
		known[c] = v
	}
	return func(c valuation.Coalition) float64 { return known[c] }, nil
}

// formula is an exact method: the indices by the worths of all that it needs.
func formula(method string, members int, worth func(valuation.Coalition) float64, flags valueFlags) (values []float64, remark string, err error) {
	if method == "loo" {
		values = make([]float64, members)
		everyone := valuation.Everyone(members)
		for n := range values {
			values[n] = worth(everyone) - worth(everyone.Without(n))
		}
		return values, "", nil
	}
	table := make(valuation.Table, 1<<members)
	for c := range table {
		table[c] = worth(valuation.Coalition(c))
	}
	return tableMethods[method](table, flags)
}

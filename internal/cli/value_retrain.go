package cli

import (
	"context"
	"slices"

	"grange/lab"
	"grange/valuation"
)

// retrained is the subject of a scenario whose coalitions are trained as cells,
// which are kept and found again.
func (a *app) retrained(ctx context.Context, file string, flags valueFlags) (*subject, error) {
	b, err := a.openBench(ctx, file, labFlags{results: flags.results, workers: flags.workers, seed: flags.seed, data: flags.data}, planFlags{})
	if err != nil {
		return nil, err
	}
	s := b.scenario
	owned := make([]int, len(s.Members))
	v := &valued{scenario: s.Name, source: "retrained", seed: b.seed}
	for n, m := range s.Members {
		owned[n] = int(m.Data)
		v.members = append(v.members, m.Name)
	}
	contributions, err := parseContributions(flags.contributions, s, owned)
	if err != nil {
		return nil, err
	}
	r := &retraining{bench: b, contributions: contributions, repeats: flags.repeats}
	g := &valuation.Game{Members: len(s.Members), Names: v.members, Utility: valuation.UtilityFunc(r.value)}
	methods := slices.DeleteFunc(valueMethods(), func(m string) bool { _, byRound := roundMethods[m]; return byRound })
	by := func(ctx context.Context, method string) (*valuation.Result, error) {
		if err := r.prepare(ctx, method, g.Members, flags.limit); err != nil {
			return nil, err
		}
		return a.valueGame(ctx, g, method, b.seed, flags)
	}
	return &subject{v, methods, by}, nil
}

// retraining is the utility of training from the start.
type retraining struct {
	bench         *bench
	contributions []int
	repeats       int
}

// prepare trains what a method is certain to need, the longest first.
func (r *retraining) prepare(ctx context.Context, method string, members, limit int) error {
	if _, all := exactMethods[method]; all && members > limit {
		return &valuation.TooLargeError{Members: members, Limit: limit}
	}
	var cells []lab.Cell
	for _, c := range wanted(method, members) {
		cells = append(cells, r.cells(c)...)
	}
	if len(cells) == 0 {
		return nil
	}
	_, err := r.bench.runner.Run(ctx, "coalitions", cells)
	return err
}

// cells are the training runs of a coalition; none when it has no data.
func (r *retraining) cells(c valuation.Coalition) []lab.Cell {
	var cells []lab.Cell
	for repeat := range r.repeats {
		plan := r.bench.study.Plan
		cell := lab.Cell{Training: plan.Training, Capacities: plan.Capacities, Seed: r.bench.seed + uint64(repeat)}
		for n, m := range r.bench.scenario.Members {
			points := int64(0)
			if c.Has(n) {
				points = int64(r.contributions[n])
			}
			cell.Contributions = append(cell.Contributions, points)
			cell.Noise = append(cell.Noise, m.Noise)
			if m.Transition != nil && cell.Transitions == nil {
				cell.Transitions = make([][][]float64, len(r.contributions))
			}
			if m.Transition != nil {
				cell.Transitions[n] = m.Transition
			}
		}
		if cell.Total() > 0 {
			cells = append(cells, cell)
		}
	}
	return cells
}

// value trains a coalition unless it was before, and averages the repeats.
func (r *retraining) value(ctx context.Context, c valuation.Coalition) (float64, error) {
	cells := r.cells(c)
	if len(cells) == 0 {
		return r.bench.study.Plan.Untrained, nil
	}
	quiet := *r.bench.runner
	quiet.Observer, quiet.Workers = nil, 1
	records, err := quiet.Run(ctx, "coalition", cells)
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for _, cell := range cells {
		sum += records[cell.Key()].Outcome.Accuracy
	}
	return sum / float64(len(cells)), nil
}

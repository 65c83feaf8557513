package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"grange/federated"
	"grange/lab"
	"grange/valuation"
)

// retrained is the subject of a scenario whose coalitions are trained as cells,
// which are kept and found again, and trained anew where they are damaged.
func (a *app) retrained(ctx context.Context, file string, flags valueFlags) (*subject, error) {
	lab := labFlags{
		results: flags.results, workers: flags.workers, seed: flags.seed, data: flags.data, device: flags.device, retrain: true,
	}
	b, err := a.openBench(ctx, file, lab, planFlags{})
	if err != nil {
		return nil, err
	}
	s := b.scenario
	if err := checkMembers(len(s.Members)); err != nil {
		return nil, err
	}
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
	r := &retraining{bench: b, names: v.members, contributions: contributions, repeats: flags.repeats, draws: map[valuation.Coalition][]float64{}}
	b.runner.Train = retried(b.runner.Train, flags.retries)
	g := &valuation.Game{Members: len(s.Members), Names: v.members, Utility: valuation.UtilityFunc(r.value)}
	methods := slices.DeleteFunc(valueMethods(), func(m string) bool { return slices.Contains(updateMethods, m) })
	by := func(ctx context.Context, method string) (*valuation.Result, error) {
		if err := checkSize(method, g.Members, 1, flags, r.one); err != nil {
			return nil, err
		}
		if err := r.prepare(ctx, method); err != nil {
			return nil, err
		}
		result, err := a.valueGame(ctx, g, method, b.seed, flags)
		if err != nil {
			return result, err
		}
		return result, r.chance(result, method, flags)
	}
	return &subject{v, methods, by, func() {}}, nil
}

// cellError says which cell could not be trained.
type cellError struct {
	key string
	err error
}

func (e *cellError) Error() string { return e.err.Error() }

func (e *cellError) Unwrap() error { return e.err }

// retried trains again what failed, unless it diverged: that it does every time.
func retried(train lab.Trainer, retries int) lab.Trainer {
	return func(ctx context.Context, c lab.Cell) (lab.Outcome, error) {
		for attempt := 0; ; attempt++ {
			outcome, err := train(ctx, c)
			if err == nil || ctx.Err() != nil {
				return outcome, err
			}
			if attempt >= retries || errors.Is(err, federated.ErrNotFinite) {
				return outcome, &cellError{c.Key(), err}
			}
		}
	}
}

// retraining is the utility of training from the start.
type retraining struct {
	bench         *bench
	names         []string
	contributions []int
	repeats       int
	mu            sync.Mutex
	draws         map[valuation.Coalition][]float64 // the worth by each repeat
}

// one returns how long a training of everyone took, if there was one: an error
// is not worth a training.
func (r *retraining) one() (time.Duration, error) {
	records, _, _, err := r.bench.runner.Store.Inspect(r.cells(valuation.Everyone(len(r.names))))
	seconds := 0.0
	for _, record := range records {
		seconds += record.Outcome.Seconds * float64(r.repeats) / float64(len(records))
	}
	return time.Duration(seconds * float64(time.Second)), err
}

// prepare trains what a method is certain to need, the longest first.
func (r *retraining) prepare(ctx context.Context, method string) error {
	var cells []lab.Cell
	of := map[string]valuation.Coalition{}
	for _, c := range certain(method, len(r.names)) {
		for _, cell := range r.cells(c) {
			cells = append(cells, cell)
			of[cell.Key()] = c
		}
	}
	if len(cells) == 0 {
		return nil
	}
	_, err := r.bench.runner.Run(ctx, "coalitions", cells)
	var failed *cellError
	if errors.As(err, &failed) {
		return &valuation.CoalitionError{Coalition: of[failed.key], Names: r.names, Err: err}
	}
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
	draws := make([]float64, len(cells))
	for i, cell := range cells {
		draws[i] = records[cell.Key()].Outcome.Accuracy
	}
	r.mu.Lock()
	r.draws[c] = draws
	r.mu.Unlock()
	return stat.Mean(draws, nil), nil
}

// draw is the worth of a coalition by one repeat.
func (r *retraining) draw(c valuation.Coalition, repeat int) float64 {
	if draws := r.draws[c]; draws != nil {
		return draws[repeat]
	}
	return r.bench.study.Plan.Untrained
}

// chance puts into the error bars what the chance in training leaves open. All
// coalitions of one repeat share its seed, and with it how the data were dealt
// out and where training began: their worths move together. So the indices are
// computed from every repeat by itself, and compared.
func (r *retraining) chance(result *valuation.Result, method string, flags valueFlags) error {
	warn := func(format string, args ...any) {
		result.Warnings = append(result.Warnings, fmt.Sprintf(format, args...))
	}
	exact := result.Status == valuation.Exact
	switch {
	case r.repeats == 1 && exact:
		for n := range result.Values {
			result.Errors[n], result.Spread[n] = math.Inf(1), math.Inf(1)
		}
		warn("what chance does to a training is not measured; --repeats 2, or more, does and gives error bars")
		return nil
	case r.repeats == 1:
		warn("the intervals speak of the sampling; what chance does to a training is not measured (--repeats)")
		return nil
	case !exact:
		variance := 0.0
		for _, c := range slices.Sorted(maps.Keys(r.draws)) {
			variance += stat.Variance(r.draws[c], nil) / float64(r.repeats*len(r.draws))
		}
		warn("the intervals speak of the sampling; chance in training leaves a standard error of %.4f in every worth, the mean of %d repeats", math.Sqrt(variance), r.repeats)
		return nil
	}
	if _, samples := samplingMethods[method]; samples {
		method = "exact" // it came to value every coalition
	}
	members := len(result.Values)
	indices := make([][]float64, members)
	for repeat := range r.repeats {
		values, _, err := formula(method, members, func(c valuation.Coalition) float64 { return r.draw(c, repeat) }, flags)
		if err != nil {
			return err
		}
		for n, v := range values {
			indices[n] = append(indices[n], v)
		}
	}
	quantile := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(r.repeats - 1)}.Quantile(0.975)
	for n := range indices {
		result.Errors[n] = stat.StdDev(indices[n], nil) / math.Sqrt(float64(r.repeats))
		result.Spread[n] = quantile * result.Errors[n]
	}
	result.Reason += fmt.Sprintf("; error bars by %d repeats", r.repeats)
	return nil
}

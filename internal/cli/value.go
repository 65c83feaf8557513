package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"grange/game"
	"grange/lab/updates"
	split "grange/money"
	"grange/valuation"
	"grange/valuation/reconstruct"
	"grange/valuation/store"
)

type valueFlags struct {
	method        string
	retrain       bool
	compare       bool
	truth         string
	contributions string
	negative      string
	evaluations   int
	limit         int
	beta          []float64
	stopError     float64
	stopRanks     int
	time          time.Duration
	repeats       int
	retries       int
	amount        int64
	json          bool
	csv           string
	plot          string
	report        string
	seed          seed
	workers       int
	data          string
	results       string
	device        deviceFlags
	given         func(flag string) bool // on the command line
	other         func(flag string) bool // and not what it is without
}

func (a *app) value() *cobra.Command {
	var flags valueFlags
	cmd := &cobra.Command{
		Use:   "value DIR | value FILE --retrain",
		Short: "Say who contributed what: an index, a share and an error bar for every member",
		Long: `Value measures what each member's data did for the accuracy on clean test data.

With a folder of updates (grange train FILE --save-updates DIR) nothing is trained: the model of a
coalition is rebuilt by averaging its members' updates. gtg, gtg-adjusted and multi-round do so round
by round and add up; all other methods value the final models, for which the rounds are replayed with
the coalition's members alone (one-round: their steps just added up). What every model is worth is
kept in the folder: a run that was stopped, or another method, goes on from there.

With a scenario and --retrain every coalition is trained from the start. That takes 2^N trainings for
an exact answer, each of which is kept in --results: a run that was stopped goes on where it was. It
is the truth that the cheap methods are judged against.

Methods: ` + strings.Join(valueMethods(), ", ") + `.
Those that sample stop at the first of --evaluations, --stop-error, --stop-ranks and --time; without
any of them, after 100·N evaluations, and never after more than 1,000·N unless --evaluations or --time is given.`,
		Example: "  grange value examples/clinics.yaml --retrain --method loo",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{problem: "value needs a folder of updates, or a scenario with --retrain", try: "grange train FILE --save-updates DIR, then grange value DIR"}
			}
			return nil
		},
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			flags.given = cmd.Flags().Changed
			flags.other = func(name string) bool {
				f := cmd.Flags().Lookup(name)
				return f.Changed && f.Value.String() != f.DefValue
			}
			return valueError(a.runValue(cmd.Context(), args[0], flags), flags)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&flags.method, "method", "", "how to value (default: exact; for updates of more members than --limit: adjusted)")
	f.BoolVar(&flags.retrain, "retrain", false, "train every coalition of the scenario")
	f.BoolVar(&flags.compare, "compare", false, "try all methods and print their cost, error and rank agreement side by side")
	f.StringVar(&flags.truth, "truth", "", "with --compare: judge by the values in this file, written by value --json (default: exact)")
	f.StringVar(&flags.report, "report", "", "with --compare: write a page that shows the methods side by side to this .html file")
	f.StringVar(&flags.contributions, "contributions", "all", "with --retrain: data points each member gives, s1,s2,… or all")
	f.StringVar(&flags.negative, "negative", "clip", "negative indices: clip to 0, or raw")
	f.IntVar(&flags.evaluations, "evaluations", 0, "coalitions to value at most, in each round for gtg (default: 100·N)")
	f.Float64Var(&flags.stopError, "stop-error", 0, "stop once no member's standard error is above this, in accuracy")
	f.IntVar(&flags.stopRanks, "stop-ranks", 0, "stop once the ranks were the same after this many batches in a row")
	f.DurationVar(&flags.time, "time", 0, "stop after this time, such as 90s or 2h; samplers show what they know by then")
	f.Var(numbers{&flags.beta}, "beta", "with --method beta: α,β; a larger α puts more weight on small coalitions")
	f.IntVar(&flags.limit, "limit", valuation.AutomaticLimit, "largest number of members for which all 2^N coalitions are valued, up to 24")
	f.IntVar(&flags.repeats, "repeats", 1, "with --retrain: runs of each coalition, with different seeds, which are averaged; from 2 on they give error bars")
	f.IntVar(&flags.retries, "retries", 0, "with --retrain: how often to train again what failed, unless it diverged")
	f.Int64Var(&flags.amount, "amount", 0, "split this amount, in minor units such as cents, by the shares")
	f.BoolVar(&flags.json, "json", false, "print one JSON document")
	f.StringVar(&flags.csv, "csv", "", "write the table to this file")
	f.StringVar(&flags.plot, "plot", "", "draw bars with intervals to this .svg, .png or .pdf file")
	f.Var(&flags.seed, "seed", "seed of the sampling, and with --retrain of the training (default: the file's, or 1)")
	f.IntVar(&flags.workers, "workers", runtime.GOMAXPROCS(0), "coalitions valued at once; does not change the result")
	f.StringVar(&flags.data, "data", "", "folder with data sets that are not built in")
	f.StringVar(&flags.results, "results", "results", "with --retrain: folder in which training runs are kept and found again")
	flags.device.register(f)
	flags.device.fromFile(f)
	return cmd
}

// valued is what the command found.
type valued struct {
	scenario string
	source   string // "updates" or "retrained"
	members  []string
	seed     uint64
	result   *valuation.Result
	shares   []float64
	parts    []int64 // of the amount; nil without one
}

func (a *app) runValue(ctx context.Context, path string, flags valueFlags) error {
	if err := checkValue(path, &flags); err != nil {
		return err
	}
	negative, err := game.ParseNegative(flags.negative)
	if err != nil {
		return &usageError{problem: fmt.Sprintf("--negative is %q, want clip or raw", flags.negative), try: "leave --negative out"}
	}
	var of *subject
	if flags.retrain {
		of, err = a.retrained(ctx, path, flags)
	} else {
		of, err = a.uploaded(ctx, path, flags)
	}
	if err != nil {
		return err
	}
	defer of.close()
	if flags.compare {
		return a.compareMethods(ctx, of, negative, path, flags)
	}
	v := of.valued
	if flags.method == "" {
		flags.method = "exact"
		if len(v.members) > flags.limit {
			flags.method = "adjusted"
		}
	}
	working, stop := ctx, context.CancelFunc(func() {})
	if flags.time > 0 {
		working, stop = context.WithTimeout(ctx, flags.time)
	}
	v.result, err = of.by(working, flags.method)
	stop()
	if v.result == nil || ctx.Err() != nil {
		return err
	}
	failure := err // what was valued before it is shown all the same
	if v.shares, err = game.SoundShares(v.result.Values, negative); err != nil {
		return errors.Join(failure, err)
	}
	switch {
	case flags.amount == 0:
	case v.result.Status == valuation.Failed:
		v.result.Warnings = append(v.result.Warnings, "no amounts: money is not split by a part of the valuation")
	default:
		if v.parts, err = split.Split(flags.amount, v.shares); err != nil {
			return err
		}
	}
	return errors.Join(a.showValue(ctx, v, flags), failure)
}

// subject is what is valued, by any method that suits it.
type subject struct {
	*valued
	methods []string
	by      func(ctx context.Context, method string) (*valuation.Result, error)
	close   func()
}

// checkMembers complains about more members than coalitions can be made of.
func checkMembers(members int) error {
	if members <= valuation.MaxMembers {
		return nil
	}
	return &hintError{err: fmt.Errorf("%w: %d, and no method takes more than %d", valuation.ErrMembers, members, valuation.MaxMembers), code: exitUsage,
		try: fmt.Sprintf("join small members into groups, up to %d in all, and train again: a group is valued as one member", valuation.MaxMembers)}
}

// valueError adds what to do to the errors of valuations.
func valueError(err error, flags valueFlags) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	var hinted *hintError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &hinted):
		return err
	case errors.Is(err, game.ErrNoShares):
		return hint(exitFailed, "--negative clip, by which negative indices count as nothing")
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the time is up: %w", err)
		return hint(exitFailed, "a longer --time, or the same again: it goes on from what was valued")
	case errors.Is(err, updates.ErrNone):
		return hint(exitUsage, "grange train FILE --save-updates DIR")
	case errors.Is(err, reconstruct.ErrMissing):
		return hint(exitFailed, "grange train FILE with the same flags and --save-updates saves all rounds again")
	case errors.Is(err, store.ErrFormat), errors.Is(err, store.ErrOther):
		return hint(exitFailed, "remove that file: what it kept is computed again")
	case errors.Is(err, updates.ErrDamaged), errors.Is(err, updates.ErrVersion):
		return hint(exitFailed, "save the updates again, in another folder")
	case !flags.retrain && (errors.Is(err, valuation.ErrNotFinite) || errors.Is(err, reconstruct.ErrNotFinite)):
		return hint(exitFailed, "lower training.rate, and save the updates again: the model diverged")
	case flags.retrain:
		return labError(err, flags.results)
	}
	return dataError(err)
}

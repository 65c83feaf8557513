package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"grange/game"
	"grange/lab/updates"
	split "grange/money"
	"grange/valuation"
	"grange/valuation/reconstruct"
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
	repeats       int
	amount        int64
	json          bool
	csv           string
	plot          string
	report        string
	seed          uint64
	workers       int
	data          string
	results       string
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
the coalition's members alone (one-round: their steps just added up).

With a scenario and --retrain every coalition is trained from the start. That takes 2^N trainings for
an exact answer, each of which is kept in --results: a run that was stopped goes on where it was. It
is the truth that the cheap methods are judged against.

Methods: ` + strings.Join(valueMethods(), ", ") + `.`,
		Example: "  grange value examples/clinics.yaml --retrain --method loo",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{problem: "value needs a folder of updates, or a scenario with --retrain", try: "grange train FILE --save-updates DIR, then grange value DIR"}
			}
			return nil
		},
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
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
	f.IntVar(&flags.evaluations, "evaluations", 0, "coalitions to value at most, by each round for gtg (default: 100·N)")
	f.IntVar(&flags.limit, "limit", valuation.AutomaticLimit, "largest number of members for which all 2^N coalitions are valued, up to 24")
	f.IntVar(&flags.repeats, "repeats", 1, "with --retrain: runs of each coalition, with different seeds, which are averaged")
	f.Int64Var(&flags.amount, "amount", 0, "split this amount, in minor units such as cents, by the shares")
	f.BoolVar(&flags.json, "json", false, "print one JSON document")
	f.StringVar(&flags.csv, "csv", "", "write the table to this file")
	f.StringVar(&flags.plot, "plot", "", "draw bars with intervals to this .svg, .png or .pdf file")
	f.Uint64Var(&flags.seed, "seed", 0, "seed of the sampling, and with --retrain of the training (default: the file's, or 1)")
	f.IntVar(&flags.workers, "workers", runtime.GOMAXPROCS(0), "coalitions valued at once; does not change the result")
	f.StringVar(&flags.data, "data", "", "folder with data sets that are not built in")
	f.StringVar(&flags.results, "results", "results", "with --retrain: folder in which training runs are kept and found again")
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
	v.result, err = of.by(ctx, flags.method)
	if v.result == nil || ctx.Err() != nil {
		return err
	}
	failure := err // what was valued before it is shown all the same
	v.shares = v.result.Shares(negative)
	if flags.amount != 0 {
		if v.parts, err = split.Split(flags.amount, v.shares); err != nil {
			return err
		}
	}
	return errors.Join(a.showValue(ctx, v, flags), failure)
}

// checkValue finds what is wrong with the flags before any work is done.
func checkValue(path string, flags *valueFlags) error {
	for _, out := range []struct{ flag, path string }{{"csv", flags.csv}, {"plot", flags.plot}, {"report", flags.report}} {
		if err := writable(out.flag, out.path); err != nil {
			return err
		}
	}
	if _, err := chartFormat(flags.plot); err != nil {
		return err
	}
	if flags.report != "" && !flags.compare {
		return &usageError{problem: "--report is the page of a comparison", try: "add --compare, or draw the values with --plot FILE"}
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() == flags.retrain {
		if flags.retrain {
			return &usageError{problem: path + " is a folder, want a scenario file with --retrain", try: "grange value " + path}
		}
		return &usageError{problem: path + " is a file, want a folder of updates", try: "grange train " + path + " --save-updates DIR and grange value DIR; or grange value " + path + " --retrain"}
	}
	if flags.method == "" && flags.retrain {
		flags.method = "exact"
	}
	if flags.method != "" && !slices.Contains(valueMethods(), flags.method) {
		return &usageError{problem: fmt.Sprintf("--method is %q, want one of %s", flags.method, strings.Join(valueMethods(), ", ")), try: "leave --method out"}
	}
	if _, byRound := roundMethods[flags.method]; byRound && flags.retrain {
		return &usageError{problem: "--method " + flags.method + " works on saved updates", try: "leave --retrain out and name a folder of updates, or use --method exact"}
	}
	if flags.workers < 1 || flags.repeats < 1 || flags.evaluations < 0 || flags.evaluations == 1 {
		return &usageError{problem: fmt.Sprintf("--workers %d, --repeats %d, --evaluations %d: want at least 1, 1 and 2", flags.workers, flags.repeats, flags.evaluations), try: "grange value --help"}
	}
	if flags.limit < 1 || flags.limit > valuation.ExactLimit {
		return &usageError{problem: fmt.Sprintf("--limit is %d, want 1 to %d", flags.limit, valuation.ExactLimit), try: "use a method that samples: --method adjusted"}
	}
	return nil
}

// subject is what is valued, by any method that suits it.
type subject struct {
	*valued
	methods []string
	by      func(ctx context.Context, method string) (*valuation.Result, error)
}

// uploaded is the subject of a folder of saved updates.
func (a *app) uploaded(ctx context.Context, path string, flags valueFlags) (*subject, error) {
	folder, err := updates.Open(path)
	if err != nil {
		return nil, err
	}
	v := &valued{scenario: folder.Scenario, source: "updates", members: folder.Members(), seed: flags.seed}
	if v.seed == 0 {
		v.seed = 1
	}
	evaluate, err := a.evaluator(ctx, folder, flags)
	if err != nil {
		return nil, err
	}
	var final *valuation.Game
	by := func(ctx context.Context, method string) (*valuation.Result, error) {
		bar := a.progress("rounds", folder.Rounds())
		defer bar.stop()
		history := &watchedHistory{folder, bar}
		if byRound, found := roundMethods[method]; found {
			outcome, err := byRound(ctx, history, evaluate, v.seed, flags)
			if err != nil && (outcome == nil || len(outcome.Rounds) == 0) {
				return nil, err
			}
			if err != nil {
				outcome.Warnings = append(outcome.Warnings, fmt.Sprintf("only the first %d of %d rounds are valued", len(outcome.Rounds), folder.Rounds()))
			}
			return &outcome.Result, err
		}
		if final == nil {
			g, err := reconstruct.Replay{}.Game(ctx, history, evaluate)
			if err != nil {
				return nil, err
			}
			g.Utility = valuation.Cached(g.Utility)
			final = g
		}
		bar.stop()
		return a.valueGame(ctx, final, method, v.seed, flags)
	}
	return &subject{v, valueMethods(), by}, nil
}

// watchedHistory moves a bar with every round that is read.
type watchedHistory struct {
	*updates.Folder
	bar *progress
}

// Round reads a round.
func (h *watchedHistory) Round(ctx context.Context, round int) (*reconstruct.Round, error) {
	r, err := h.Folder.Round(ctx, round)
	h.bar.step()
	return r, err
}

// valueError adds what to do to the errors of valuations.
func valueError(err error, flags valueFlags) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	var large *valuation.TooLargeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return hint(exitUsage, "--method adjusted, which samples")
	case errors.Is(err, updates.ErrNone):
		return hint(exitUsage, "grange train FILE --save-updates DIR")
	case errors.Is(err, reconstruct.ErrMissing):
		return hint(exitFailed, "grange train FILE with the same flags and --save-updates saves all rounds again")
	case errors.Is(err, updates.ErrDamaged), errors.Is(err, updates.ErrVersion):
		return hint(exitFailed, "save the updates again, in another folder")
	case errors.Is(err, split.ErrShares):
		return hint(exitFailed, "--negative clip")
	case flags.retrain:
		return labError(err, flags.results)
	}
	return dataError(err)
}

package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"grange/valuation"
)

// options are the command's flags.
type options struct {
	python  string
	seeds   int
	budgets []int
	exact   bool
	error   bool
	rebuilt bool

	trainings int
}

func main() {
	var o options
	var budgets, part string
	flag.StringVar(&o.python, "python", filepath.Join("bench", ".venv", "bin", "python"), "the Python that has shapiq and pyDVL; empty: no peers")
	flag.IntVar(&o.seeds, "seeds", 30, "runs of each estimator, of which the median counts")
	flag.IntVar(&o.trainings, "trainings", 2, "how often all coalitions of a regime are trained, with different seeds: each takes up to a minute on two idle cores")
	flag.StringVar(&budgets, "budgets", "512,2048", "evaluations, separated by commas; 8192 takes about five times as long")
	flag.StringVar(&part, "part", "all", "exact (values from tables), error (of the estimators), rebuilt (models, against retraining; no peers) or all")
	flag.Parse()
	for _, word := range strings.Split(budgets, ",") {
		b, err := strconv.Atoi(word)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		o.budgets = append(o.budgets, b)
	}
	o.exact, o.error, o.rebuilt = part == "exact" || part == "all", part == "error" || part == "all", part == "rebuilt" || part == "all"
	if o.seeds < 1 || o.trainings < 1 {
		fmt.Fprintln(os.Stderr, "valuation bench: -seeds and -trainings must be at least 1")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "valuation bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	folder, err := os.MkdirTemp("", "grange-bench")
	if err != nil {
		return err
	}
	return errors.Join(compare(ctx, out, o, folder), os.RemoveAll(folder))
}

func compare(ctx context.Context, out io.Writer, o options, folder string) error {
	if o.exact {
		if err := compareExact(ctx, out, o, folder); err != nil {
			return err
		}
	}
	if o.error {
		if err := compareErrors(ctx, out, o, folder); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if o.rebuilt {
		return compareRebuilt(ctx, out, o.trainings)
	}
	return nil
}

// compareExact times the exact Shapley values of a table of 2^20 worths on one
// core beside shapiq's, those of 2^12 beside pyDVL's, which asks for every
// worth by itself, and those of 2^24 for their memory.
func compareExact(ctx context.Context, out io.Writer, o options, folder string) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, peer := range []struct {
		name, command string
		members       int
	}{{"shapiq", "exact", 20}, {"pyDVL", "exact-pydvl", 12}} {
		if err := timeExact(ctx, out, o, folder, peer.name, peer.command, peer.members); err != nil {
			return err
		}
	}
	table := airport(24)
	begin := time.Now()
	if _, err := valuation.Shapley(table); err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	fmt.Fprintf(out, "exact Shapley values, N = 24, one core: grange %.0f ms, %.0f MB from the system in all\n\n", 1e3*time.Since(begin).Seconds(), float64(memory.Sys)/1e6)
	return nil
}

// timeExact prints the time of exact values by Grange and by one peer.
func timeExact(ctx context.Context, out io.Writer, o options, folder, name, command string, members int) error {
	table := airport(members)
	var took, values []float64
	for range 11 {
		begin := time.Now()
		var err error
		if values, err = valuation.Shapley(table); err != nil {
			return err
		}
		took = append(took, time.Since(begin).Seconds())
	}
	ours := median(took)
	fmt.Fprintf(out, "exact Shapley values, N = %d, one core: grange %.3g ms", members, 1e3*ours)
	path := filepath.Join(folder, "exact.f64")
	if err := write(path, table); err != nil {
		return err
	}
	if o.python != "" {
		var peer struct {
			Seconds float64
			Values  []float64
		}
		if err := ask(ctx, o, &peer, command, path); err != nil {
			return err
		}
		worst := 0.0
		for n := range values {
			worst = max(worst, math.Abs(values[n]-peer.Values[n]))
		}
		fmt.Fprintf(out, ", %s %.1f s: %.0f×; largest difference %.1e", name, peer.Seconds, peer.Seconds/ours, worst)
	}
	fmt.Fprintln(out)
	return nil
}

// methods are Grange's estimators.
var methods = []valuation.Method{
	valuation.Permutation{}, valuation.Permutation{Antithetic: true}, valuation.Permutation{Truncation: 0.01},
	valuation.Stratified{}, valuation.Owen{}, valuation.Kernel{}, valuation.SVARM{}, valuation.Adjusted{},
}

// outcome is the median error of one method on one game at one budget.
type outcome struct {
	Game   string
	Budget int
	Method string
	Error  float64
}

func compareErrors(ctx context.Context, out io.Writer, o options, folder string) error {
	games := tables()
	var all []outcome
	for _, g := range games {
		if err := write(filepath.Join(folder, g.name+".f64"), g.table); err != nil {
			return err
		}
		exact, err := valuation.Shapley(g.table)
		if err != nil {
			return err
		}
		for _, budget := range o.budgets {
			for _, m := range methods {
				var errs []float64
				for seed := range o.seeds {
					r, err := valuation.Estimates(ctx, &valuation.Game{Members: g.table.Members(), Utility: g.table}, m,
						valuation.Settings{Seed: uint64(seed), Stop: valuation.Evaluations(budget)})
					if err != nil {
						return err
					}
					errs = append(errs, rootMeanSquare(r.Values, exact))
				}
				all = append(all, outcome{g.name, budget, "grange " + m.Name(), median(errs)})
			}
		}
	}
	if o.python != "" {
		for _, g := range games {
			var peers []outcome
			if err := ask(ctx, o, &peers, "error", filepath.Join(folder, g.name+".f64"), g.name, strconv.Itoa(o.seeds), fmt.Sprint(o.budgets)); err != nil {
				return err
			}
			all = append(all, peers...)
		}
	}
	return show(out, o, games, all)
}

// show prints every method's error, and then the best of each side.
func show(out io.Writer, o options, games []named, all []outcome) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "RMSE, median of %d seeds\t", o.seeds)
	var names []string
	for _, a := range all {
		if !slices.Contains(names, a.Method) {
			names = append(names, a.Method)
		}
	}
	find := func(g string, b int, m string) float64 {
		for _, a := range all {
			if a.Game == g && a.Budget == b && a.Method == m {
				return a.Error
			}
		}
		return math.NaN()
	}
	for _, g := range games {
		for _, b := range o.budgets {
			fmt.Fprintf(w, "%s %d\t", g.name, b)
		}
	}
	fmt.Fprintln(w)
	for _, m := range names {
		fmt.Fprintf(w, "%s\t", m)
		for _, g := range games {
			for _, b := range o.budgets {
				fmt.Fprintf(w, "%.3g\t", find(g.name, b, m))
			}
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "game\tevaluations\tgrange's best\t\tshapiq's best\t\tratio\tpyDVL's best\t\tratio")
	for _, g := range games {
		for _, b := range o.budgets {
			best := map[string]outcome{}
			for _, a := range all {
				side, method, _ := strings.Cut(a.Method, " ")
				a.Method = method
				if old, found := best[side]; a.Game == g.name && a.Budget == b && a.Error == a.Error && (!found || a.Error < old.Error) {
					best[side] = a
				}
			}
			x := best["grange"]
			fmt.Fprintf(w, "%s\t%d\t%s\t%.3g", g.name, b, x.Method, x.Error)
			for _, side := range []string{"shapiq", "pydvl"} {
				y := best[side]
				fmt.Fprintf(w, "\t%s\t%.3g\t%.2f", y.Method, y.Error, x.Error/y.Error)
			}
			fmt.Fprintln(w)
		}
	}
	return w.Flush()
}

// ask runs the peers' script, which answers in JSON.
func ask(ctx context.Context, o options, answer any, arguments ...string) error {
	command := exec.CommandContext(ctx, o.python, append([]string{filepath.Join("bench", "valuation", "peers.py")}, arguments...)...)
	var stdout bytes.Buffer
	command.Stdout, command.Stderr = &stdout, os.Stderr
	command.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "PYTHONWARNINGS=ignore")
	if err := command.Run(); err != nil {
		return errors.Join(fmt.Errorf("peers.py %s: %w", strings.Join(arguments, " "), err), errors.New("is the Python of -python there, with shapiq and pydvl?"))
	}
	return json.Unmarshal(stdout.Bytes(), answer)
}

func write(path string, table valuation.Table) error {
	raw := make([]byte, 0, 8*len(table))
	for _, v := range table {
		raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
	}
	return os.WriteFile(path, raw, 0o600)
}

func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	m := len(x) / 2
	if len(x)%2 == 1 {
		return x[m]
	}
	return (x[m-1] + x[m]) / 2
}

func rootMeanSquare(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum / float64(len(a)))
}

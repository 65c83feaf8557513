package cli

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"grange/equilibrium"
	"grange/game"
	"grange/mechanism"
	"grange/scenario"
)

// maxCells bounds a grid: more is a slip of the keyboard.
const maxCells = 100_000

type sweepFlags struct {
	vary, mechanisms []string
	workers          int
	json             bool
	csv, plot        string
}

func (a *app) sweep() *cobra.Command {
	var flags sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep FILE --vary KEY=V1,V2,…",
		Short: "Solve at every value of a key: comparative statics as table, CSV and figure",
		Long: `Sweep solves a scenario again and again while one or more of its numbers change. A key is written as it
stands in the file: members[0:3].noise (the first three members together), members[2].privacy,
members[north].data, profit.beta[0], accuracy.gamma, solver.minimum. Values are a list, 0,0.1,0.2, or a
range, from:to:step. With more than one --vary, every combination is solved.

The figure has one panel per mechanism, and the first key on its axis. Its format follows the file's
name: svg, png or pdf. Quote keys with brackets where the shell would expand them.

Exit code 3: some equilibrium did not converge, or could not be certified.`,
		Example: `  grange sweep examples/figure3.yaml --vary "members[0:3].noise=0:0.5:0.1" --plot figure3.svg
  grange sweep examples/figure4.yaml --vary "members[0:3].privacy=0.1,0.3,0.5,0.7,0.9" --plot figure4.svg`,
		Args: oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return a.runSweep(cmd.Context(), args[0], flags)
		}),
	}
	f := cmd.Flags()
	f.StringArrayVar(&flags.vary, "vary", nil, "KEY=V1,V2,… or KEY=from:to:step; may be repeated")
	f.StringSliceVar(&flags.mechanisms, "mechanism", nil, "solve only these, such as LP,SV (default: those of the file)")
	f.IntVar(&flags.workers, "workers", runtime.GOMAXPROCS(0), "how many cells to solve at once; results do not depend on it")
	f.BoolVar(&flags.json, "json", false, "print one JSON document (docs/json.md)")
	f.StringVar(&flags.csv, "csv", "", "also write one row per cell, mechanism and member to this file")
	f.StringVar(&flags.plot, "plot", "", "also draw the contributions to this .svg, .png or .pdf file")
	return cmd
}

// axis is one --vary.
type axis struct {
	key    string
	values []float64
}

// gridCell is one combination of values.
type gridCell struct {
	at       []float64 // one per axis
	solution *solution
}

// grid is a sweep and its results, the last axis fastest.
type grid struct {
	scenario *scenario.Scenario
	axes     []axis
	cells    []gridCell
}

func (a *app) runSweep(ctx context.Context, path string, flags sweepFlags) error {
	if err := flags.check(); err != nil {
		return err
	}
	axes, err := parseAxes(flags.vary)
	if err != nil {
		return err
	}
	s, err := scenario.Load(path)
	if err != nil {
		return err
	}
	if _, err := s.Game(); err != nil {
		return err
	}
	mechanisms, err := chooseMechanisms(s, flags.mechanisms)
	if err != nil {
		return err
	}
	g, err := newGrid(s, axes)
	if err != nil {
		return err
	}
	if flags.plot != "" {
		if err := g.figure().Check(); err != nil {
			return &usageError{problem: "--plot: " + err.Error(), try: "vary fewer values, or leave --plot out and use --csv"}
		}
	}
	if err := a.solveGrid(ctx, g, mechanisms, flags.workers); err != nil {
		return err
	}
	if err := a.saveSweep(ctx, g, flags); err != nil {
		return err
	}
	if flags.json {
		err = a.printJSON(ctx, g.json())
	} else {
		err = a.print(ctx, []byte(g.text(a.colour())))
	}
	if err != nil {
		return err
	}
	return g.unproven()
}

func (flags sweepFlags) check() error {
	if len(flags.vary) == 0 {
		return &usageError{problem: "sweep needs --vary", try: `grange sweep examples/figure3.yaml --vary "members[0:3].noise=0:0.5:0.1"`}
	}
	if flags.workers < 1 {
		return &usageError{problem: fmt.Sprintf("--workers is %d, want a whole number ≥ 1", flags.workers), try: "grange sweep --help"}
	}
	if err := writable("csv", flags.csv); err != nil {
		return err
	}
	if _, err := chartFormat(flags.plot); err != nil {
		return err
	}
	return writable("plot", flags.plot)
}

func (a *app) saveSweep(ctx context.Context, g *grid, flags sweepFlags) error {
	if flags.csv != "" {
		data, err := encodeCSV(g.csv())
		if err != nil {
			return err
		}
		if err := a.save(ctx, flags.csv, data); err != nil {
			return err
		}
	}
	if flags.plot == "" {
		return nil
	}
	return a.saveChart(ctx, flags.plot, g.figure().Chart())
}

// parseAxes reads the --vary flags.
func parseAxes(vary []string) ([]axis, error) {
	var axes []axis
	cells := 1
	for _, v := range vary {
		key, list, ok := strings.Cut(v, "=")
		if !ok || key == "" || list == "" {
			return nil, &usageError{problem: fmt.Sprintf("--vary %q, want KEY=V1,V2,… or KEY=from:to:step", v), try: `--vary "members[0:3].noise=0,0.1,0.2"`}
		}
		values, err := parseValues(list)
		if err != nil {
			return nil, &usageError{problem: fmt.Sprintf("--vary %q: %v", v, err), try: `--vary "` + key + `=0.1,0.2,0.3"`}
		}
		if slices.ContainsFunc(axes, func(a axis) bool { return a.key == key }) {
			return nil, &usageError{problem: fmt.Sprintf("--vary %s is given twice, want every key once", key), try: "put all its values into one list"}
		}
		axes = append(axes, axis{key, values})
		if cells *= len(values); cells > maxCells {
			return nil, &usageError{problem: fmt.Sprintf("more than %s combinations to solve", whole(maxCells)), try: "fewer values or a larger step"}
		}
	}
	return axes, nil
}

// parseValues reads 1,2,3 and from:to:step, also mixed.
func parseValues(list string) ([]float64, error) {
	var values []float64
	for _, part := range strings.Split(list, ",") {
		ends := strings.Split(part, ":")
		numbers := make([]float64, len(ends))
		for i, text := range ends {
			x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil || !game.Finite(x) {
				return nil, fmt.Errorf("%q is not a number", text)
			}
			numbers[i] = x
		}
		switch len(numbers) {
		case 1:
			values = append(values, numbers[0])
		case 3:
			from, to, step := numbers[0], numbers[1], numbers[2]
			steps := math.Floor((to-from)/step + 1e-9)
			if !(steps >= 0) || steps > maxCells {
				return nil, fmt.Errorf("%q has no values or too many, want from:to:step with a step that leads from one to the other", part)
			}
			for i := range int(steps) + 1 {
				// Twelve digits turn 3·0.1 into 0.3, not 0.30000000000000004.
				x, _ := strconv.ParseFloat(strconv.FormatFloat(from+float64(i)*step, 'g', 12, 64), 64)
				values = append(values, x)
			}
		default:
			return nil, fmt.Errorf("%q is neither a value nor from:to:step", part)
		}
	}
	return values, nil
}

// newGrid checks every combination before any is solved.
func newGrid(s *scenario.Scenario, axes []axis) (*grid, error) {
	g := &grid{scenario: s, axes: axes}
	type partial struct {
		at       []float64
		scenario *scenario.Scenario
	}
	partials := []partial{{nil, s}}
	for _, ax := range axes {
		var next []partial
		for _, p := range partials {
			for _, v := range ax.values {
				varied, err := p.scenario.Vary(ax.key, v)
				if err != nil {
					return nil, err
				}
				next = append(next, partial{append(slices.Clone(p.at), v), varied})
			}
		}
		partials = next
	}
	for _, p := range partials {
		varied, err := p.scenario.Game()
		if err != nil {
			return nil, err
		}
		g.cells = append(g.cells, gridCell{at: p.at, solution: &solution{scenario: p.scenario, game: varied}})
	}
	return g, nil
}

// solveGrid solves all cells; each is independent of the others, so the number
// of workers changes nothing but the time.
func (a *app) solveGrid(ctx context.Context, g *grid, mechanisms []mechanism.Mechanism, workers int) error {
	bar := a.progress("sweeping", len(g.cells)*len(mechanisms))
	defer bar.stop()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for _, c := range g.cells {
		c.solution.equilibria = make([]*outcome, len(mechanisms))
		for i, m := range mechanisms {
			group.Go(func() error {
				o, err := solveOne(ctx, c.solution.game, m, c.solution.scenario.Settings(c.solution.game), 0, 0)
				if err != nil {
					return fmt.Errorf("at %s: %w", g.where(c), err)
				}
				c.solution.equilibria[i] = o
				bar.step()
				return nil
			})
		}
	}
	return group.Wait()
}

// where names a cell.
func (g *grid) where(c gridCell) string {
	var parts []string
	for i, ax := range g.axes {
		parts = append(parts, ax.key+"="+exact(c.at[i]))
	}
	return strings.Join(parts, ", ")
}

// unproven sums up the cells behind exit code 3.
func (g *grid) unproven() error {
	bad, total := 0, 0
	first := ""
	for _, c := range g.cells {
		for _, o := range c.solution.equilibria {
			total++
			if o.proven() {
				continue
			}
			if bad++; first == "" {
				how := "is not certified"
				if o.Status != equilibrium.Converged {
					how = "ended in status " + string(o.Status)
				}
				first = fmt.Sprintf("%s at %s %s", o.Mechanism, g.where(c), how)
			}
		}
	}
	if bad == 0 {
		return nil
	}
	return &unprovenError{problem: fmt.Sprintf("%d of %d equilibria not proven; the first: %s", bad, total, first),
		try: "grange solve with that value and --starts 20 looks for other equilibria"}
}

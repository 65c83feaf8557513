package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"grange/equilibrium"
	"grange/game"
	"grange/mechanism"
	"grange/scenario"
)

type solveFlags struct {
	json, all, trace, exhaustive, simultaneous, plan bool
	mechanisms                                       []string
	order                                            string
	starts                                           int
	seed                                             uint64
	csv                                              string
}

func (a *app) solve() *cobra.Command {
	var flags solveFlags
	cmd := &cobra.Command{
		Use:   "solve FILE",
		Short: "The equilibrium under each profit-sharing rule, side by side",
		Long: `Solve computes what every member will contribute under each mechanism of the scenario: it lets the
members answer each other, one after another, each with the contribution that pays it most, until
nobody moves. Answers are exact, and every result is certified: no member gains by any other whole
number of points.

A member is marked as a free rider when it contributes no more than the minimum, or less than 1% of
its data, keeps the rest back, and still gains. It is marked as rather not taking part when its payoff
is below the payoff it has outside. The price of anarchy is the welfare of
the planner's optimum divided by the equilibrium's.

Exit code 3: a mechanism did not converge, or its result could not be certified.`,
		Example: `  grange solve examples/hospitals.yaml
  grange solve examples/hospitals.yaml --mechanism LOO --starts 20 --json`,
		Args: oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return a.runSolve(cmd.Context(), args[0], flags)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&flags.json, "json", false, "print one JSON document (docs/json.md)")
	f.StringSliceVar(&flags.mechanisms, "mechanism", nil, "solve only these, such as LP,SV (default: those of the file)")
	f.StringVar(&flags.order, "order", "file", "who moves when: file, reverse or random:SEED")
	f.BoolVar(&flags.simultaneous, "simultaneous", false, "all members answer the previous profile at once")
	f.IntVar(&flags.starts, "starts", 0, "also look for other equilibria from so many starting points and orders")
	f.Uint64Var(&flags.seed, "seed", 1, "seed of the random starting points")
	f.BoolVar(&flags.exhaustive, "exhaustive", false, "try every whole number instead of bounding the payoff; slow")
	f.BoolVar(&flags.trace, "trace", false, "show the profile after every pass")
	f.BoolVar(&flags.plan, "plan", true, "compare with the planner's optimum")
	f.BoolVar(&flags.all, "all", false, "list every member, also when there are more than 25")
	f.StringVar(&flags.csv, "csv", "", "also write one row per mechanism and member to this file")
	return cmd
}

// solution is what solve found.
type solution struct {
	scenario   *scenario.Scenario
	game       *game.Game
	equilibria []*outcome
	planner    *equilibrium.Optimum // nil without --plan
	warnings   []string
}

// outcome is one mechanism's equilibrium and what Grange makes of it.
type outcome struct {
	*equilibrium.Result
	freeRiders []int
	unwilling  []int
	explored   *equilibrium.Exploration // nil without --starts
	starts     int
}

// proven reports whether the dynamics converged to a certified equilibrium.
func (o *outcome) proven() bool {
	return o.Status == equilibrium.Converged && o.Certificate.Certified
}

func (a *app) runSolve(ctx context.Context, path string, flags solveFlags) error {
	if flags.starts < 0 {
		return &usageError{problem: fmt.Sprintf("--starts is %d, want a whole number ≥ 0", flags.starts), try: "grange solve --help"}
	}
	if err := writable("csv", flags.csv); err != nil {
		return err
	}
	s, err := scenario.Load(path)
	if err != nil {
		return err
	}
	g, err := s.Game()
	if err != nil {
		return err
	}
	mechanisms, err := chooseMechanisms(s, flags.mechanisms)
	if err != nil {
		return err
	}
	order, err := equilibrium.ParseOrder(flags.order, len(g.Members))
	if err != nil {
		return &usageError{problem: fmt.Sprintf("--order is %q, want file, reverse or random:SEED", flags.order), try: "grange solve --help"}
	}
	settings := s.Settings(g)
	settings.Order = order
	settings.Simultaneous = flags.simultaneous
	settings.Exhaustive = flags.exhaustive
	settings.Trace = flags.trace
	found, err := a.solveAll(ctx, s, g, mechanisms, settings, flags)
	if err != nil {
		return err
	}
	if flags.csv != "" {
		data, err := encodeCSV(found.csv())
		if err != nil {
			return err
		}
		if err := a.save(ctx, flags.csv, data); err != nil {
			return err
		}
	}
	if flags.json {
		err = a.printJSON(ctx, found.json())
	} else {
		err = a.print(ctx, []byte(found.text(flags.all, a.colour())))
	}
	if err != nil {
		return err
	}
	return unproven(found.equilibria)
}

func (a *app) solveAll(ctx context.Context, s *scenario.Scenario, g *game.Game, mechanisms []mechanism.Mechanism, settings equilibrium.Settings, flags solveFlags) (*solution, error) {
	found := &solution{scenario: s, game: g, equilibria: make([]*outcome, len(mechanisms))}
	jobs := len(mechanisms)
	if flags.plan {
		jobs++
	}
	bar := a.work("solving", jobs)
	defer bar.stop()
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range mechanisms {
		mine := settings
		mine.Progress = func(pass int) { bar.say(fmt.Sprintf("%s after pass %d", m.Name(), pass)) }
		group.Go(func() error {
			o, err := solveOne(ctx, g, m, mine, flags.starts, flags.seed)
			found.equilibria[i] = o
			bar.step()
			return err
		})
	}
	if flags.plan {
		group.Go(func() error {
			plan, err := equilibrium.Plan(ctx, g)
			found.planner = plan
			bar.step()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if p := found.planner; p != nil && !game.Finite(p.Welfare) {
		found.planner = nil
		found.warnings = append(found.warnings, "the planner's optimum is not finite and was left out")
	}
	return found, nil
}

func solveOne(ctx context.Context, g *game.Game, m mechanism.Mechanism, settings equilibrium.Settings, starts int, seed uint64) (*outcome, error) {
	result, err := equilibrium.Solve(ctx, g, m, settings)
	if err != nil {
		return nil, err
	}
	o := &outcome{Result: result, starts: starts}
	for n := range g.Members {
		if freeRides(g, result, n) {
			o.freeRiders = append(o.freeRiders, n)
		}
		if result.Payoffs[n] < g.Members[n].Outside {
			o.unwilling = append(o.unwilling, n)
		}
	}
	if starts > 0 {
		if o.explored, err = equilibrium.Explore(ctx, g, m, settings, starts, seed); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// freeRides reports whether member n gives no more than the minimum or less
// than 1% of its data, keeps the rest back, and still gains.
func freeRides(g *game.Game, r *equilibrium.Result, n int) bool {
	given, owned := r.Contributions[n], g.Members[n].Capacity
	little := given <= g.Minimum || float64(given) < 0.01*float64(owned)
	return little && given < owned && r.Payoffs[n] > 0
}

// chooseMechanisms returns those named on the command line, or the file's.
func chooseMechanisms(s *scenario.Scenario, names []string) ([]mechanism.Mechanism, error) {
	if len(names) == 0 {
		names = s.Mechanisms
	}
	var chosen []mechanism.Mechanism
	for _, name := range names {
		m, err := mechanism.ByName(strings.ToUpper(strings.TrimSpace(name)))
		if err != nil {
			return nil, &usageError{
				problem: fmt.Sprintf("--mechanism %q is not known, want some of %s", name, strings.Join(mechanism.Names(), ", ")),
				try:     "--mechanism " + strings.Join(mechanism.Names(), ","),
			}
		}
		if !slices.ContainsFunc(chosen, func(c mechanism.Mechanism) bool { return c.Name() == m.Name() }) {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}

// unproven returns the error behind exit code 3, or nil when all is well.
func unproven(outcomes []*outcome) error {
	var errs []string
	for _, o := range outcomes {
		switch {
		case o.Status == equilibrium.Cycle:
			errs = append(errs, fmt.Sprintf("%s goes round in a cycle of %d passes", o.Mechanism, o.CycleLength))
		case o.Status == equilibrium.IterationLimit:
			errs = append(errs, fmt.Sprintf("%s did not settle in %d passes", o.Mechanism, o.Iterations))
		case !o.Certificate.Certified:
			errs = append(errs, fmt.Sprintf("%s settled, but its result is not certified (regret %s)", o.Mechanism, significant(o.Certificate.Regret)))
		}
	}
	if errs == nil {
		return nil
	}
	return &unprovenError{problem: strings.Join(errs, "; "), try: "--starts 20 looks for equilibria from other starting points; --order reverse changes who moves first"}
}

// priceOfAnarchy is how much larger the planner's welfare is, or NaN when the
// equilibrium's is not positive.
func (s *solution) priceOfAnarchy(o *outcome) float64 {
	if s.planner == nil || !(o.Welfare > 0) {
		return math.NaN()
	}
	return s.planner.Welfare / o.Welfare
}

func (s *solution) names(members []int) []string {
	names := []string{}
	for _, n := range members {
		names = append(names, s.game.Members[n].Name)
	}
	return names
}

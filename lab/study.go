package lab

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"grange/curve"
	"grange/game"
	"grange/theory"
)

// Study is a co-operative examined from end to end: accuracy measured by
// training, a curve fitted to it, the game solved on the curve, and models
// trained at every equilibrium.
type Study struct {
	Name  string
	Plan  Plan
	Rules Rules
	// Template is the game without its accuracy, which the fit provides.
	Template *game.Game
	// Form is the curve to use; "" lets AICc choose.
	Form curve.Form
	// EquilibriumRepeats is how often to train at each equilibrium; default
	// the plan's Repeats.
	EquilibriumRepeats int
	Replicates         int  // of the bootstrap; default 200, negative for none
	Workers            int  // for the bootstrap; default 1
	Partial            bool // work with the cells that exist instead of training

	// What came out.
	Points     []Measurement
	Missing    []Cell // with Partial: cells that would have been wanted
	Fits       []*curve.Fit
	Fit        *curve.Fit
	Surrogate  *Surrogate
	Spread     *curve.Spread
	Game       *game.Game
	Equilibria []Equilibrium
	Theory     *theory.Report
}

// Measure trains the plan's cells, or with Partial gathers those that exist.
func (s *Study) Measure(ctx context.Context, runner *Runner) error {
	s.Points = s.Plan.Measurements()
	records, err := s.train(ctx, runner, "measuring accuracy", AllCells(s.Points))
	if err != nil {
		return err
	}
	if s.Partial {
		s.Points = keepTrained(s.Points, records)
	}
	return Collect(s.Points, records)
}

// train runs cells, or with Partial only looks for them.
func (s *Study) train(ctx context.Context, runner *Runner, stage string, cells []Cell) (map[string]*Record, error) {
	if !s.Partial {
		return runner.Run(ctx, stage, cells)
	}
	records, missing, _, err := runner.Store.Inspect(cells)
	s.Missing = append(s.Missing, missing...)
	return records, err
}

// keepTrained drops cells without a record and points without cells.
func keepTrained(points []Measurement, records map[string]*Record) []Measurement {
	var out []Measurement
	for _, m := range points {
		var cells []Cell
		for _, c := range m.Cells {
			if records[c.Key()] != nil {
				cells = append(cells, c)
			}
		}
		if m.Cells = cells; len(cells) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// KnowsGamma reports whether a run with wrong labels is there to measure γ by.
func (s *Study) KnowsGamma() bool {
	return slices.ContainsFunc(s.Points, func(m Measurement) bool { return m.WrongShare > 0 })
}

// FitCurve fits every form and settles on one.
func (s *Study) FitCurve() error {
	fitter := s.fitter()
	points := s.Plan.CurvePoints(s.Points)
	var err error
	if s.Fits, err = fitter.FitAll(points); err != nil {
		return fmt.Errorf("lab: fit: %w", err)
	}
	s.Fit = s.Fits[0]
	for _, fit := range s.Fits {
		if fit.Form == s.Form {
			s.Fit = fit
		}
	}
	if s.Form != "" && s.Fit.Form != s.Form {
		return fmt.Errorf("lab: fit: %w: %s", curve.ErrTooFewPoints, s.Form)
	}
	s.Surrogate, err = s.Plan.TestSurrogate(fitter, s.Fit.Form, s.Points)
	if err != nil {
		s.Surrogate = nil // too few points on the grids alone: nothing to compare with
	}
	return nil
}

func (s *Study) fitter() curve.Fitter {
	var capacity int64
	for _, c := range s.Plan.Capacities {
		capacity += c
	}
	return curve.Fitter{Range: float64(capacity)}
}

// Doubt finds intervals for the parameters of the fitted curve alone, from so
// many replicates, each fitted as the curve was.
func (s *Study) Doubt(replicates int, rng *rand.Rand) (err error) {
	s.Spread, err = s.bootstrap(replicates).Run(s.Plan.CurvePoints(s.Points), rng, nil)
	return err
}

func (s *Study) bootstrap(replicates int) curve.Bootstrap {
	return curve.Bootstrap{Fitter: s.fitter(), Form: s.Fit.Form, Replicates: replicates, Workers: s.Workers}
}

// Solve tests the paper's assumptions on the fitted curve and plays the game on
// it, with intervals.
func (s *Study) Solve(ctx context.Context) error {
	s.Game = OnCurve(s.Template, s.Fit.Clean, s.Fit.Gamma.Value)
	var err error
	if s.Equilibria, err = s.Rules.Solve(ctx, s.Game); err != nil {
		return err
	}
	s.Theory, err = theory.Check(ctx, s.Game, s.Rules.withDefaults().Mechanisms, theory.Settings{Seed: s.Plan.Seed})
	if err != nil {
		return err
	}
	if s.Replicates < 0 {
		return nil
	}
	b := s.bootstrap(s.Replicates)
	rng := rand.New(rand.NewPCG(s.Plan.Seed, 0x6c6162))
	s.Spread, err = s.Rules.Doubt(ctx, b, s.Plan.CurvePoints(s.Points), s.Template, s.Equilibria, rng)
	return err
}

// TrainEquilibria trains a model at the contributions of every equilibrium.
func (s *Study) TrainEquilibria(ctx context.Context, runner *Runner) error {
	if s.Partial && !s.KnowsGamma() {
		return nil // these are not the equilibria that will be wanted
	}
	var cells []Cell
	for i := range s.Equilibria {
		s.Equilibria[i].plan(s.Plan.Training, s.Game.Members, s.Plan.Seed, s.equilibriumRepeats())
		cells = append(cells, s.Equilibria[i].Cells...)
	}
	records, err := s.train(ctx, runner, "training at the equilibria", cells)
	if err != nil {
		return err
	}
	for i := range s.Equilibria {
		s.Equilibria[i].collect(records)
	}
	return nil
}

func (s *Study) equilibriumRepeats() int {
	if s.EquilibriumRepeats == 0 {
		return s.Plan.Repeats
	}
	return s.EquilibriumRepeats
}

// Run does everything: measure, fit, solve, train at the equilibria.
func (s *Study) Run(ctx context.Context, runner *Runner) error {
	if err := s.Measure(ctx, runner); err != nil {
		return err
	}
	if err := s.FitCurve(); err != nil {
		return err
	}
	if err := s.Solve(ctx); err != nil {
		return err
	}
	return s.TrainEquilibria(ctx, runner)
}

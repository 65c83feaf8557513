package lab

import (
	"context"
	"fmt"
	"math/rand/v2"

	"grange/curve"
	"grange/equilibrium"
	"grange/game"
	"grange/mechanism"
)

// OnCurve returns the game played on a fitted accuracy curve. The untrained
// model has the curve's own value at S = 0, so that the first data point has
// no value out of proportion.
func OnCurve(template *game.Game, clean game.Curve, gamma float64) *game.Game {
	g := *template
	g.Accuracy = game.Accuracy{
		Clean: clean, Gamma: gamma, Untrained: clean.At(0),
		Floor: -game.Unbounded, Ceiling: game.Unbounded,
	}
	return &g
}

// Equilibrium is what the members do under one rule, and what training says
// about the model they get.
type Equilibrium struct {
	*equilibrium.Result
	Cells   []Cell    // training at the equilibrium contributions
	Records []*Record // one per cell, nil before training
	// Trained is the mean accuracy of the trained models and TrainedError its
	// standard error.
	Trained      float64
	TrainedError float64
	// Intervals of a bootstrap over the measured cells; nil without one.
	ContributionIntervals []curve.Interval
	AccuracyInterval      *curve.Interval
}

// Rules are the mechanisms to compare and how to solve under them.
type Rules struct {
	Mechanisms []mechanism.Mechanism                   // default all
	Settings   func(g *game.Game) equilibrium.Settings // default the paper's
}

func (r Rules) withDefaults() Rules {
	if r.Mechanisms == nil {
		r.Mechanisms = mechanism.All()
	}
	if r.Settings == nil {
		r.Settings = func(*game.Game) equilibrium.Settings { return equilibrium.Settings{} }
	}
	return r
}

// Solve finds the equilibrium under every mechanism.
func (r Rules) Solve(ctx context.Context, g *game.Game) ([]Equilibrium, error) {
	r = r.withDefaults()
	var out []Equilibrium
	for _, m := range r.Mechanisms {
		settings := r.Settings(g)
		settings.Trace = true
		result, err := equilibrium.Solve(ctx, g, m, settings)
		if err != nil {
			return nil, fmt.Errorf("lab: solve under %s: %w", m.Name(), err)
		}
		out = append(out, Equilibrium{Result: result})
	}
	return out, nil
}

// Doubt computes intervals for the contributions and the accuracy of every
// equilibrium by a bootstrap over the measured cells: curve fitted anew, game
// solved anew.
func (r Rules) Doubt(ctx context.Context, b curve.Bootstrap, points []curve.Point, template *game.Game, equilibria []Equilibrium, rng *rand.Rand) (*curve.Spread, error) {
	spread, err := b.Run(points, rng, func(fit *curve.Fit) ([]float64, error) {
		solved, err := r.Solve(ctx, OnCurve(template, fit.Clean, fit.Gamma.Value))
		if err != nil {
			return nil, err
		}
		var answers []float64
		for _, e := range solved {
			for _, s := range e.Contributions {
				answers = append(answers, float64(s))
			}
			answers = append(answers, e.Accuracy)
		}
		return answers, nil
	})
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	at := 0
	for i := range equilibria {
		n := len(equilibria[i].Contributions)
		equilibria[i].ContributionIntervals = spread.Answers[at : at+n]
		accuracy := spread.Answers[at+n]
		equilibria[i].AccuracyInterval = &accuracy
		at += n + 1
	}
	return spread, nil
}

// plan sets the cells that train the equilibrium.
func (e *Equilibrium) plan(t Training, members []game.Member, seed uint64, repeats int) {
	capacities := make([]int64, len(members))
	noise := make([]float64, len(members))
	for n, m := range members {
		capacities[n], noise[n] = m.Capacity, m.Noise
	}
	e.Cells = nil
	if total(e.Contributions) > 0 {
		e.Cells = Repeat(t, capacities, e.Contributions, noise, seed, repeats)
	}
}

// collect fills in the trained accuracy from whatever cells are there.
func (e *Equilibrium) collect(records map[string]*Record) {
	e.Records = nil
	for _, cell := range e.Cells {
		if r, ok := records[cell.Key()]; ok {
			e.Records = append(e.Records, r)
		}
	}
	if len(e.Records) > 0 {
		e.Trained, e.TrainedError = MeanAccuracy(e.Records)
	}
}

func total(s game.Profile) int64 {
	var sum int64
	for _, x := range s {
		sum += x
	}
	return sum
}

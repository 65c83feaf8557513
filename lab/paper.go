package lab

import (
	"context"
	"sync"

	"grange/curve"
	"grange/equilibrium"
	"grange/game"
)

// Scale is a size at which the paper can be reproduced.
type Scale struct {
	Name               string
	Training           Training
	Capacity           int64   // D_n, the same for all five members
	Untrained          float64 // 1/C
	Beta               float64 // β1 of the profit β1·A²
	Repeats            int     // of each measured point
	EquilibriumRepeats int     // of each equilibrium
	// Grid of the map over β1 and γ, as factors of Beta and of the fitted γ.
	BetaFactors, GammaFactors []float64 // default 0.25 … 8 and 0 … 1.5
}

// The paper never gives β. Both scales use the same profit per data point the
// members own, β1 = 0.3·ΣD_n: 15,000 at D_n = 10⁴ and 3,000 at D_n = 2,000. It
// is a choice, and what hangs on it is shown by the map over β1 and γ.
const profitPerPoint = 0.3

const paperMembers = 5

// QuickScale runs on the built-in data and a CPU in minutes.
func QuickScale() Scale {
	return Scale{
		Name: "quick",
		Training: Training{
			Dataset: "fashion", Model: "mlp", Rounds: 20, Epochs: 3, Batch: 64, Rate: 0.1, GlobalRate: 1,
		},
		Capacity: 2000, Untrained: 0.1, Beta: profitPerPoint * paperMembers * 2000,
		Repeats: 3, EquilibriumRepeats: 2,
	}
}

// PaperScale is the paper's setting. It does not say how the first weights
// are drawn; PyTorch's way, which is what its authors most likely used, gives its
// accuracies (docs/reproduction.md).
func PaperScale() Scale {
	return Scale{
		Name: "paper",
		Training: Training{
			Dataset: "cifar10", Model: "resnet18", Start: "pytorch", Rounds: 50, Epochs: 5, Batch: 64, Rate: 0.1, GlobalRate: 1,
		},
		Capacity: 10000, Untrained: 0.1, Beta: profitPerPoint * paperMembers * 10000,
		Repeats: 5, EquilibriumRepeats: 5,
	}
}

// Sweep is one of the paper's two series of games: members 1 to 3 vary
// together, members 4 and 5 stay.
type Sweep string

const (
	Quality Sweep = "quality" // ε1=ε2=ε3 varies, ε4=ε5=0, μ=0.4
	Privacy Sweep = "privacy" // μ1=μ2=μ3 varies, μ4=μ5=0.3, ε=0.1
)

// Values returns the values the paper tries.
func (s Sweep) Values() []float64 {
	if s == Quality {
		return []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5}
	}
	return []float64{0.1, 0.3, 0.5, 0.7, 0.9}
}

// Setting is one game of a sweep and its equilibria.
type Setting struct {
	Sweep      Sweep
	Value      float64
	Game       *game.Game
	Equilibria []Equilibrium
}

// Under returns the equilibrium under a mechanism.
func (s Setting) Under(mechanism string) *Equilibrium {
	for i := range s.Equilibria {
		if s.Equilibria[i].Mechanism == mechanism {
			return &s.Equilibria[i]
		}
	}
	return nil
}

// template returns the game of a sweep at one value, without accuracy.
func (s Scale) template(sweep Sweep, value, beta float64) *game.Game {
	g := &game.Game{
		Profit:  game.PowerProfit{Slope: beta, Exponent: 2},
		Cost:    game.PowerCost{},
		Minimum: 1,
	}
	for n := range paperMembers {
		m := game.Member{Name: memberName(n), Capacity: s.Capacity}
		varies := n < 3
		switch sweep {
		case Quality:
			m.Privacy = 0.4
			if varies {
				m.Noise = value
			}
		case Privacy:
			m.Noise, m.Privacy = 0.1, 0.3
			if varies {
				m.Privacy = value
			}
		}
		g.Members = append(g.Members, m)
	}
	return g
}

func memberName(n int) string { return "member " + string(rune('1'+n)) }

// solveSweeps solves all games of both sweeps, several at once.
func (s Scale) solveSweeps(ctx context.Context, rules Rules, clean game.Curve, gamma, beta float64, workers int) ([]Setting, error) {
	var settings []Setting
	for _, sweep := range []Sweep{Quality, Privacy} {
		for _, value := range sweep.Values() {
			settings = append(settings, Setting{
				Sweep: sweep, Value: value, Game: OnCurve(s.template(sweep, value, beta), clean, gamma),
			})
		}
	}
	errs := make([]error, len(settings))
	each(workers, len(settings), func(i int) {
		settings[i].Equilibria, errs[i] = rules.Solve(ctx, settings[i].Game)
	})
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return settings, nil
}

// each calls do(0) … do(n−1), a few at once.
func each(workers, n int, do func(i int)) {
	var group sync.WaitGroup
	slots := make(chan struct{}, max(1, workers))
	for i := range n {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	group.Wait()
}

// Reproduction is the paper done again.
type Reproduction struct {
	Scale    Scale
	Study    *Study    // measurement and fit
	Settings []Setting // both sweeps
	Verdicts []Verdict
	Own      []OwnEffect // Theorems 2 and 3: one member's own parameter varied alone
	Region   *Region
}

// Reproduce measures, fits, solves both sweeps, trains at every equilibrium and
// judges the paper's claims.
func Reproduce(ctx context.Context, scale Scale, study *Study, runner *Runner) (*Reproduction, error) {
	r := &Reproduction{Scale: scale, Study: study}
	study.Plan.Training = scale.Training
	study.Plan.Untrained = scale.Untrained
	study.Plan.Repeats = scale.Repeats
	study.Plan.Capacities = nil
	for range paperMembers {
		study.Plan.Capacities = append(study.Plan.Capacities, scale.Capacity)
	}
	study.Template = scale.template(Quality, 0.1, scale.Beta)
	study.EquilibriumRepeats = scale.EquilibriumRepeats
	if err := study.Run(ctx, runner); err != nil {
		return nil, err
	}
	fit := study.Fit
	var err error
	r.Settings, err = scale.solveSweeps(ctx, study.Rules, fit.Clean, fit.Gamma.Value, scale.Beta, study.Workers)
	if err != nil {
		return nil, err
	}
	var cells []Cell
	for i := range r.Settings {
		s := &r.Settings[i]
		if study.Partial && !study.KnowsGamma() {
			break
		}
		for k := range s.Equilibria {
			s.Equilibria[k].plan(scale.Training, s.Game.Members, study.Plan.Seed, scale.EquilibriumRepeats)
			cells = append(cells, s.Equilibria[k].Cells...)
		}
	}
	records, err := study.train(ctx, runner, "training at the paper's equilibria", cells)
	if err != nil {
		return nil, err
	}
	for i := range r.Settings {
		for k := range r.Settings[i].Equilibria {
			r.Settings[i].Equilibria[k].collect(records)
		}
	}
	if r.Own, err = scale.ownEffects(ctx, study.Rules, fit, study.Workers); err != nil {
		return nil, err
	}
	if r.Region, err = scale.region(ctx, study.Rules, fit, study.Workers); err != nil {
		return nil, err
	}
	r.Verdicts = r.judge()
	return r, nil
}

// OwnEffect is what happens to member 1's equilibrium contribution when one of
// its own parameters varies and nothing else does.
type OwnEffect struct {
	Mechanism     string
	Parameter     string // "noise", "privacy" or "data"
	Values        []float64
	Contributions []int64
	Status        []equilibrium.Status
}

// ownEffects varies member 1 alone around μ = 0.4, ε = 0.1.
func (s Scale) ownEffects(ctx context.Context, rules Rules, fit *curve.Fit, workers int) ([]OwnEffect, error) {
	rules = rules.withDefaults()
	parameters := []struct {
		name   string
		values []float64
		set    func(*game.Member, float64)
	}{
		{"noise", []float64{0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5}, func(m *game.Member, v float64) { m.Noise = v }},
		{"privacy", []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, func(m *game.Member, v float64) { m.Privacy = v }},
		{"data", []float64{0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1}, func(m *game.Member, v float64) { m.Capacity = int64(v * float64(m.Capacity)) }},
	}
	var effects []OwnEffect
	for _, p := range parameters {
		solved := make([][]Equilibrium, len(p.values))
		errs := make([]error, len(p.values))
		each(workers, len(p.values), func(i int) {
			g := OnCurve(s.template(Quality, 0.1, s.Beta), fit.Clean, fit.Gamma.Value)
			for n := range g.Members {
				g.Members[n].Noise = 0.1
			}
			p.set(&g.Members[0], p.values[i])
			solved[i], errs[i] = rules.Solve(ctx, g)
		})
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
		for k, m := range rules.Mechanisms {
			e := OwnEffect{Mechanism: m.Name(), Parameter: p.name, Values: p.values}
			for i := range p.values {
				e.Contributions = append(e.Contributions, solved[i][k].Contributions[0])
				e.Status = append(e.Status, solved[i][k].Status)
			}
			effects = append(effects, e)
		}
	}
	return effects, nil
}

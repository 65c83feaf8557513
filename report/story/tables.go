package story

import (
	"fmt"
	"slices"
	"strings"

	"grange/lab"
	"grange/report/table"
)

// equilibriumTable has one row per rule and member.
func equilibriumTable(s *lab.Study) *table.Table {
	t := &table.Table{Name: "equilibria", Columns: []table.Column{
		{Name: "mechanism", Kind: table.Text}, {Name: "member", Kind: table.Text}, {Name: "data", Kind: table.Integer},
		{Name: "noise", Kind: table.Number}, {Name: "privacy", Kind: table.Number},
		{Name: "contribution", Kind: table.Integer}, {Name: "contribution_low", Kind: table.Number}, {Name: "contribution_high", Kind: table.Number},
		{Name: "share", Kind: table.Number}, {Name: "money", Kind: table.Number}, {Name: "cost", Kind: table.Number}, {Name: "payoff", Kind: table.Number},
		{Name: "accuracy_predicted", Kind: table.Number}, {Name: "accuracy_trained", Kind: table.Number},
		{Name: "status", Kind: table.Text}, {Name: "certified", Kind: table.Boolean},
	}}
	for i := range s.Equilibria {
		e := &s.Equilibria[i]
		for n, m := range s.Game.Members {
			var low, high, trained any
			if e.ContributionIntervals != nil {
				low, high = e.ContributionIntervals[n].Low, e.ContributionIntervals[n].High
			}
			if len(e.Records) > 0 {
				trained = e.Trained
			}
			t.Add(e.Mechanism, m.Name, m.Capacity, m.Noise, m.Privacy, e.Contributions[n], low, high,
				e.Shares[n], e.Shares[n]*e.Profit, s.Game.CostOf(n, e.Contributions[n]), e.Payoffs[n],
				e.Accuracy, trained, string(e.Status), e.Certificate.Certified)
		}
	}
	return t
}

// theoremTable has one row per theorem and rule.
func theoremTable(s *lab.Study) *table.Table {
	t := &table.Table{Name: "theorems", Columns: []table.Column{
		{Name: "theorem", Kind: table.Integer}, {Name: "states", Kind: table.Text}, {Name: "mechanism", Kind: table.Text},
		{Name: "applies", Kind: table.Boolean}, {Name: "assumptions_failed", Kind: table.Text},
	}}
	if s.Theory == nil {
		return t
	}
	for _, theorem := range s.Theory.Theorems {
		var failed []string
		for _, n := range theorem.Failed {
			failed = append(failed, fmt.Sprint(n))
		}
		t.Add(int64(theorem.Number), theorem.Statement, theorem.Mechanism, theorem.Applies, strings.Join(failed, " "))
	}
	return t
}

// measurementTable has one row per measured point.
func measurementTable(s *lab.Study) *table.Table {
	t := &table.Table{Name: "measurements", Columns: []table.Column{
		{Name: "kind", Kind: table.Text}, {Name: "fraction", Kind: table.Number}, {Name: "noise", Kind: table.Number},
		{Name: "total", Kind: table.Integer}, {Name: "wrong_share", Kind: table.Number}, {Name: "runs", Kind: table.Integer},
		{Name: "accuracy", Kind: table.Number}, {Name: "standard_error", Kind: table.Number},
		{Name: "fitted", Kind: table.Number}, {Name: "residual", Kind: table.Number},
	}}
	for _, m := range s.Points {
		fitted := s.Fit.At(float64(m.Total), m.WrongShare)
		var se any
		if len(m.Records) > 1 {
			se = m.StandardError
		}
		t.Add(string(m.Kind), m.Fraction, m.Noise, m.Total, m.WrongShare, len(m.Records), m.Mean, se, fitted, m.Mean-fitted)
	}
	return t
}

// roundTable has one row per measured point, run and round.
func roundTable(points []lab.Measurement) *table.Table {
	t := &table.Table{Name: "rounds", Columns: []table.Column{
		{Name: "cell", Kind: table.Text}, {Name: "kind", Kind: table.Text}, {Name: "fraction", Kind: table.Number}, {Name: "noise", Kind: table.Number},
		{Name: "seed", Kind: table.Integer}, {Name: "round", Kind: table.Integer}, {Name: "accuracy", Kind: table.Number}, {Name: "loss", Kind: table.Number},
	}}
	for _, m := range points {
		for _, r := range m.Records {
			for _, round := range r.Outcome.Rounds {
				t.Add(r.Key, string(m.Kind), m.Fraction, m.Noise, int64(r.Cell.Seed), round.Round, round.Accuracy, round.Loss)
			}
		}
	}
	return t
}

// fitTable has one row per form and parameter.
func fitTable(s *lab.Study) *table.Table {
	t := &table.Table{Name: "fits", Columns: []table.Column{
		{Name: "form", Kind: table.Text}, {Name: "used", Kind: table.Boolean}, {Name: "parameter", Kind: table.Text},
		{Name: "value", Kind: table.Number}, {Name: "standard_error", Kind: table.Number}, {Name: "fixed", Kind: table.Text},
		{Name: "r2", Kind: table.Number}, {Name: "rmse", Kind: table.Number}, {Name: "aicc", Kind: table.Number},
	}}
	for _, f := range s.Fits {
		for _, p := range append(slices.Clone(f.Parameters), f.Gamma) {
			t.Add(string(f.Form), f == s.Fit, p.Name, p.Value, p.StandardError, p.Fixed, f.R2, f.RMSE, f.AICc)
		}
	}
	return t
}

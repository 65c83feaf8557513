package story

import (
	"fmt"
	"slices"

	"grange/equilibrium"
	"grange/lab"
	"grange/report"
	"grange/report/chart"
	"grange/report/html"
)

// figure1 is the paper's Figure 1: accuracy against rounds and data.
func figure1(s *lab.Study) chart.Chart {
	rounds, accuracy := roundsChart(s), accuracyChart(s)
	a, b := rounds.Panels[0], accuracy.Panels[0]
	a.Title, b.Title = "1a · round by round", "1b · after the last round"
	caption := "Clean labels; all members give the same part of their data."
	if slices.ContainsFunc(s.Points, func(m lab.Measurement) bool { return m.Kind == lab.KindMixed }) {
		caption += " Points with wrong labels as well (mixed) are moved up by γ·R: they lie on the curve if the surrogate clean(S) − γR holds."
	}
	return chart.Chart{ID: "figure-1", Title: "Figure 1: more data, better model", Panels: []chart.Panel{a, b}, Caption: caption + whiskers(s)}
}

// figure2 is the paper's Figure 2: accuracy against rounds and wrong labels.
func figure2(s *lab.Study) chart.Chart {
	rounds, accuracy := roundsChart(s), accuracyChart(s)
	a, b := rounds.Panels[1], accuracy.Panels[1]
	a.Title, b.Title = "2a · round by round", "2b · after the last round"
	return chart.Chart{ID: "figure-2", Title: "Figure 2: wrong labels, worse model", Panels: []chart.Panel{a, b},
		Caption: "All data. A line that peaks and falls has begun to learn the wrong labels."}
}

// contributionFigure is the paper's Figure 3 or 4, drawn as any sweep is.
func contributionFigure(p *lab.Reproduction, sweep lab.Sweep) chart.Chart {
	swept := report.Sweep{Key: "members[0:3].noise", Rows: make([]report.SweepRow, 1)}
	id, title, where := "figure-3", "Figure 3: contributions as labels get worse", "3a to 3d are the bars at ε = 0, 0.1, 0.3 and 0.4"
	if sweep == lab.Privacy {
		swept.Key = "members[0:3].privacy"
		id, title, where = "figure-4", "Figure 4: contributions as privacy matters more", "4a to 4d are the bars at μ = 0.1, 0.3, 0.5 and 0.9"
	}
	row := &swept.Rows[0]
	var capacity float64
	for _, s := range p.Settings {
		if s.Sweep != sweep {
			continue
		}
		if swept.Values == nil {
			capacity = float64(s.Game.Members[0].Capacity)
			row.Panels = make([]report.Panel, len(s.Equilibria))
			for n, m := range s.Game.Members {
				swept.Members = append(swept.Members, m.Name)
				swept.Varied = append(swept.Varied, n < 3)
			}
		}
		swept.Values = append(swept.Values, s.Value)
		for k := range s.Equilibria {
			e, panel := &s.Equilibria[k], &row.Panels[k]
			panel.Mechanism = e.Mechanism
			panel.Contributions = append(panel.Contributions, e.Contributions)
			panel.Proven = append(panel.Proven, e.Status == equilibrium.Converged && e.Certificate.Certified)
		}
	}
	c := swept.Chart()
	c.ID, c.Title = id, title
	c.Caption = "Equilibrium contributions, members of " + whole(capacity) + " points each; the paper's panels " + where + ". A bar that is only a line is a member that gives the least it can."
	return c
}

// figure5 is the paper's Figure 5: accuracy at equilibrium.
func figure5(p *lab.Reproduction) chart.Chart {
	panel := func(sweep lab.Sweep, title, label string) chart.Panel {
		out := chart.Panel{Title: title, X: chart.Axis{Label: label}, Y: chart.Axis{Label: "accuracy", Percent: true}}
		var dashed []chart.Line
		for k, e := range p.Settings[0].Equilibria {
			line := chart.Line{Name: e.Mechanism + ", trained", Color: chart.Mechanism(e.Mechanism), Marks: true}
			curve := chart.Line{Name: e.Mechanism + ", predicted", Color: chart.Mechanism(e.Mechanism), Dashed: true}
			for _, s := range p.Settings {
				if s.Sweep != sweep {
					continue
				}
				at := s.Equilibria[k]
				curve.Points = append(curve.Points, chart.XY{X: s.Value, Y: at.Accuracy})
				if len(at.Records) > 0 {
					line.Points = append(line.Points, chart.XY{X: s.Value, Y: at.Trained, Low: at.Trained - 2*at.TrainedError, High: at.Trained + 2*at.TrainedError})
				}
			}
			out.Lines = append(out.Lines, line)
			dashed = append(dashed, curve)
		}
		out.Lines = nonEmpty(append(out.Lines, dashed...)...)
		return out
	}
	return chart.Chart{
		ID: "figure-5", Title: "Figure 5: accuracy of the model at equilibrium",
		Caption: "Solid: models trained at the equilibrium contributions. Dashed: what the fitted curve says.",
		Panels: []chart.Panel{
			panel(lab.Quality, "5a · wrong labels of members 1–3", "ε"),
			panel(lab.Privacy, "5b · privacy sensitivity of members 1–3", "μ"),
		},
	}
}

func accuracyTable(p *lab.Reproduction) *html.Table {
	t := &html.Table{Title: "Accuracy at equilibrium, trained (and predicted)", Head: []html.Head{{Text: "Setting", Left: true, Wide: true}}}
	for _, e := range p.Settings[0].Equilibria {
		t.Head = append(t.Head, html.Head{Text: e.Mechanism})
	}
	for _, s := range p.Settings {
		name := fmt.Sprintf("ε = %.1f for members 1–3", s.Value)
		if s.Sweep == lab.Privacy {
			name = fmt.Sprintf("μ = %.1f for members 1–3", s.Value)
		}
		row := html.Row{Cells: []html.Cell{{Text: name}}}
		top := 0.0
		for _, e := range s.Equilibria {
			top = max(top, e.Trained)
		}
		for i := range s.Equilibria {
			e := &s.Equilibria[i]
			c := trainedCell(e)
			c.Small = "(" + percent(e.Accuracy) + ")"
			if top > 0 && e.Trained == top {
				c.Mark = html.Good
			}
			row.Cells = append(row.Cells, c)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note = "Marked: the best model of the setting."
	return t
}

// convergence shows Algorithm 1 at work in one game of each sweep.
func convergence(p *lab.Reproduction) chart.Chart {
	c := chart.Chart{ID: "convergence", Columns: 2, Title: "Algorithm 1, pass by pass",
		Caption: "Contributions after each pass over the members, starting at a tenth of everyone's data, with ε = 0.3 for members 1–3."}
	for _, s := range p.Settings {
		if s.Sweep != lab.Quality || s.Value != 0.3 {
			continue
		}
		for _, e := range s.Equilibria {
			panel := chart.Panel{
				Title: fmt.Sprintf("%s: %s after %d passes", e.Mechanism, e.Status, e.Iterations),
				X:     chart.Axis{Label: "pass", Counts: true}, Y: chart.Axis{Label: "data points", FromZero: true},
			}
			for n, m := range s.Game.Members {
				line := chart.Line{Name: m.Name, Color: chart.Step(n, len(s.Game.Members)), Marks: true}
				for i, profile := range e.Path {
					if i > 30 {
						break
					}
					line.Points = append(line.Points, chart.XY{X: float64(i), Y: float64(profile[n])})
				}
				panel.Lines = append(panel.Lines, line)
			}
			c.Panels = append(c.Panels, panel)
		}
	}
	return c
}

// ownChart shows Theorems 2 and 3: member 1's own parameters.
func ownChart(p *lab.Reproduction) chart.Chart {
	c := chart.Chart{ID: "theorems", Columns: 3, Title: "Theorems 2 and 3: one member's own parameter, everything else fixed",
		Caption: "Member 1's equilibrium contribution; the other members have ε = 0.1 and μ = 0.4."}
	for _, parameter := range []struct{ name, title, label string }{
		{"privacy", "Its privacy sensitivity", "μ of member 1"},
		{"data", "Its data", "data of member 1 / that of the others"},
		{"noise", "Its wrong labels", "ε of member 1"},
	} {
		panel := chart.Panel{Title: parameter.title, X: chart.Axis{Label: parameter.label}, Y: chart.Axis{Label: "its contribution", FromZero: true}}
		for _, e := range p.Own {
			if e.Parameter != parameter.name {
				continue
			}
			line := chart.Line{Name: e.Mechanism, Color: chart.Mechanism(e.Mechanism), Marks: true}
			for i, v := range e.Values {
				line.Points = append(line.Points, chart.XY{X: v, Y: float64(e.Contributions[i])})
			}
			panel.Lines = append(panel.Lines, line)
		}
		c.Panels = append(c.Panels, panel)
	}
	return c
}

var regionTitles = map[string]string{
	"O2": "O2 · worse data, smaller contribution",
	"O3": "O3 · more private, smaller contribution",
	"O4": "O4 · only EG ignores quality",
	"O5": "O5 · LOO gives the best model",
}

func regionChart(region *lab.Region) chart.Chart {
	c := chart.Chart{ID: "region", Title: "Where each claim holds",
		Caption: "Green, yes: holds. Yellow, part: holds partly. Red, no: fails. O5 is judged by the fitted curve here."}
	for _, claim := range lab.RegionClaims {
		heat := &chart.Heat{MarkColumn: region.Beta, MarkRow: region.Gamma}
		for _, b := range region.Betas {
			heat.Columns = append(heat.Columns, whole(b))
		}
		for row, g := range region.Gammas {
			heat.Rows = append(heat.Rows, fmt.Sprintf("%.2f", g))
			var cells []chart.Cell
			for column := range region.Betas {
				cells = append(cells, regionCell(region.Findings[claim][row][column]))
			}
			heat.Cells = append(heat.Cells, cells)
		}
		c.Panels = append(c.Panels, chart.Panel{Title: regionTitles[claim], X: chart.Axis{Label: "profit scale β1"}, Y: chart.Axis{Label: "γ"}, Heat: heat})
	}
	return c
}

func regionCell(f lab.Finding) chart.Cell {
	switch f {
	case lab.Holds:
		return chart.Cell{Color: chart.Good, Sign: "yes"}
	case lab.Partly:
		return chart.Cell{Color: chart.Middle, Sign: "part"}
	case lab.Fails:
		return chart.Cell{Color: chart.Bad, Sign: "no"}
	}
	return chart.Cell{Color: chart.Blank, Sign: "–"}
}

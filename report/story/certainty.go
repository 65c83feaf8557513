package story

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"grange/curve"
	"grange/lab"
	"grange/report/html"
)

// certainty says how far the fitted curve and the theory can be trusted.
func (r *Report) certainty(s *lab.Study) []html.Block {
	fit := s.Fit
	blocks := []html.Block{text("The curve explains %.1f%% of the variation between the measured accuracies; a typical measurement lies %s from it.", 100*fit.R2, points(fit.RMSE))}
	if s.Surrogate != nil {
		g := s.Surrogate
		verdict := "so amount and quality of data can be looked at one by one, as the surrogate clean(S) − γR does"
		if g.RMSE > 1.5*g.Scale+0.005 {
			verdict = "so the surrogate clean(S) − γR, which takes the two apart, is only roughly right here"
		}
		blocks = append(blocks, text("Points with both part of the data and wrong labels, which a curve fitted without them had not seen, lie %s from it on average (largest %s), %s.", points(g.RMSE), points(math.Abs(g.Worst)), verdict))
	}
	blocks = append(blocks, html.Block{Tables: []*html.Table{parameterTable(s), formTable(s)}})
	for _, w := range fit.Warnings {
		blocks = append(blocks, html.Block{Warning: "About the fitted curve: " + w + "."})
	}
	if s.Theory != nil && s.KnowsGamma() {
		blocks = append(blocks, theoryBlocks(s)...)
	}
	return blocks
}

func parameterTable(s *lab.Study) *html.Table {
	t := &html.Table{
		Title: fmt.Sprintf("Fitted parameters (%s)", s.Fit.Form),
		Head:  []html.Head{{Text: "Parameter", Left: true}, {Text: "Value"}, {Text: "Standard error"}, {Text: "90% interval"}},
	}
	for i, p := range append(slices.Clone(s.Fit.Parameters), s.Fit.Gamma) {
		row := html.Row{Cells: []html.Cell{{Text: p.Name}, {Text: numeral(p.Value)}, {Text: numeral(p.StandardError)}, {}}}
		var in *curve.Interval
		if s.Spread != nil {
			in = &s.Spread.Gamma
			if i < len(s.Fit.Parameters) {
				in = &s.Spread.Parameters[i]
			}
		}
		switch {
		case p.Name == s.Fit.Gamma.Name && !s.KnowsGamma():
			row.Cells[1], row.Cells[2] = html.Cell{Text: "not measured"}, html.Cell{}
			t.Note += p.Name + ": " + p.Fixed + ". "
		case p.Fixed != "":
			row.Cells[2] = html.Cell{Text: "fixed"}
			t.Note += p.Name + ": " + p.Fixed + ". "
		case in == nil:
		case p.Pinned(*in):
			row.Cells[2] = html.Cell{Text: "pinned"}
			t.Note += p.Name + ": " + curve.PinReason + ". "
		default:
			row.Cells[3] = html.Cell{Text: numeral(in.Low) + " … " + numeral(in.High)}
		}
		t.Rows = append(t.Rows, row)
	}
	t.Note = strings.TrimSpace(t.Note)
	if s.Spread != nil {
		t.Note = strings.TrimSpace(t.Note + fmt.Sprintf(" Intervals: %d bootstrap replicates over cells.", s.Spread.Replicates))
	}
	return t
}

func formTable(s *lab.Study) *html.Table {
	t := &html.Table{
		Title: "Curves compared",
		Head:  []html.Head{{Text: "Form", Left: true}, {Text: "R²"}, {Text: "Typical miss"}, {Text: "AICc"}, {Text: "γ"}},
		Note:  "The curve with the smallest AICc is used unless another was asked for.",
	}
	for _, f := range s.Fits {
		aicc := "–"
		if !math.IsInf(f.AICc, 0) {
			aicc = numeral(f.AICc)
		}
		gamma := "–"
		if s.KnowsGamma() {
			gamma = numeral(f.Gamma.Value)
		}
		t.Rows = append(t.Rows, html.Row{Strong: f == s.Fit, Cells: []html.Cell{
			{Text: string(f.Form)}, {Text: fmt.Sprintf("%.4f", f.R2)}, {Text: fmt.Sprintf("%.2f points", 100*f.RMSE)}, {Text: aicc}, {Text: gamma},
		}})
	}
	return t
}

// theoryBlocks says which of the paper's theorems apply here.
func theoryBlocks(s *lab.Study) []html.Block {
	t := &html.Table{
		Title: "What theory promises here",
		Head:  []html.Head{{Text: "Theorem", Left: true, Wide: true}},
		Note:  "Applies: the assumptions of the theorem held at every point tested on the fitted curve. Where a theorem does not apply, the equilibrium above is still certified on its own.",
	}
	var order []string
	for _, e := range s.Equilibria {
		t.Head = append(t.Head, html.Head{Text: e.Mechanism, Left: true})
		order = append(order, e.Mechanism)
	}
	rows := map[int]*html.Row{}
	for _, theorem := range s.Theory.Theorems {
		row := rows[theorem.Number]
		if row == nil {
			row = &html.Row{Cells: make([]html.Cell, len(order)+1)}
			row.Cells[0] = html.Cell{Text: fmt.Sprintf("%d: %s", theorem.Number, theorem.Statement)}
			rows[theorem.Number] = row
		}
		cell := html.Cell{Text: "applies", Mark: html.Good}
		if !theorem.Applies {
			cell = html.Cell{Text: "no", Mark: html.Middle, Small: failing(theorem.Failed)}
		}
		if i := slices.Index(order, theorem.Mechanism); i >= 0 {
			row.Cells[i+1] = cell
		}
	}
	for n := 1; rows[n] != nil; n++ {
		t.Rows = append(t.Rows, *rows[n])
	}
	return []html.Block{{Table: t}}
}

// failing writes "assumption 2 fails" or "assumptions 1 and 2 fail".
func failing(numbers []int) string {
	var out []string
	for _, n := range numbers {
		out = append(out, fmt.Sprint(n))
	}
	if len(out) == 1 {
		return "assumption " + out[0] + " fails"
	}
	return "assumptions " + list(out) + " fail"
}

// perPoint says how many runs a point has, and how many it was to have.
func perPoint(s *lab.Study) string {
	found, planned := runCount(s), fmt.Sprint(max(1, s.Plan.Repeats))
	if found == planned {
		return found
	}
	return fmt.Sprintf("%s of %s", found, planned)
}

// allRecords are the records behind a study, each once, by key.
func allRecords(s *lab.Study, settings []lab.Setting) []*lab.Record {
	seen := map[string]*lab.Record{}
	var keys []string
	add := func(records []*lab.Record) {
		for _, r := range records {
			if seen[r.Key] == nil {
				seen[r.Key] = r
				keys = append(keys, r.Key)
			}
		}
	}
	for _, m := range s.Points {
		add(m.Records)
	}
	for _, e := range s.Equilibria {
		add(e.Records)
	}
	for _, setting := range settings {
		for _, e := range setting.Equilibria {
			add(e.Records)
		}
	}
	slices.Sort(keys)
	var out []*lab.Record
	for _, k := range keys {
		out = append(out, seen[k])
	}
	return out
}

func (r *Report) provenance(s *lab.Study, records []*lab.Record, origin Origin) []html.Block {
	t := s.Plan.Training
	seconds := 0.0
	var keys []string
	for _, record := range records {
		seconds += record.Outcome.Seconds
		keys = append(keys, record.Key)
	}
	blocks := []html.Block{
		text("Every accuracy on this page is the result of training runs, called cells. Each is a small file named by its key; the same command with the same seed uses them again."),
		{Pairs: []html.Pair{
			{Name: "Command", Value: origin.Command},
			{Name: "Program", Value: "grange " + origin.Version},
			{Name: "Seed", Value: fmt.Sprint(origin.Seed)},
			{Name: "Cells", Value: fmt.Sprintf("%d trained", len(records))},
			{Name: "Kept in", Value: origin.Folder},
			{Name: "Data set", Value: t.Dataset},
			{Name: "Model", Value: t.Model},
			{Name: "Training", Value: fmt.Sprintf("%d rounds of %d epochs, batch %d, rate %g, global rate %g", t.Rounds, t.Epochs, t.Batch, t.Rate, t.GlobalRate)},
			{Name: "Runs per point", Value: perPoint(s)},
			{Name: "Trained on", Value: backends(records)},
		}},
		r.links(),
		{Fold: &html.Fold{Title: fmt.Sprintf("The keys of all %d cells", len(records)), Blocks: []html.Block{text("%s", strings.Join(keys, " "))}}},
	}
	if len(s.Missing) > 0 {
		var missing []string
		for _, c := range s.Missing {
			missing = append(missing, c.Key())
		}
		blocks = append(blocks, html.Block{Fold: &html.Fold{Title: fmt.Sprintf("The keys of %d cells that are missing", len(missing)), Blocks: []html.Block{text("%s", strings.Join(missing, " "))}}})
	}
	return blocks
}

package story

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"grange/equilibrium"
	"grange/game"
	"grange/lab"
	"grange/report/html"
)

// Study tells what a study of one co-operative found.
func Study(s *lab.Study, origin Origin) *Report {
	r := &Report{}
	r.Page = html.Document{
		Title:    titled(s.Name),
		Subtitle: "Which way of sharing the profit brings out the data, and the best model?",
		Facts:    facts(s),
		Footer:   fmt.Sprintf("Made by grange %s. Every figure and table of this page stands beside it as a file of its own.", origin.Version),
	}
	r.Page.Sections = []html.Section{
		{ID: "answer", Title: "The answer", Blocks: append(r.answer(s), r.doubts(s)...)},
		{ID: "members", Title: "What each rule does to each member", Blocks: r.members(s)},
		{ID: "losers", Title: "Who gains and who loses", Blocks: r.losers(s)},
		{ID: "accuracy", Title: "What the data are worth", Blocks: r.accuracy(s)},
		{ID: "sure", Title: "How sure this is", Blocks: r.certainty(s)},
		{ID: "provenance", Title: "Where the numbers come from", Blocks: r.provenance(s, allRecords(s, nil), origin)},
	}
	r.Tables = append(r.Tables, equilibriumTable(s), measurementTable(s), roundTable(s.Points), fitTable(s))
	return r
}

// titled begins a name with a capital.
func titled(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if size == 0 {
		return name
	}
	return string(unicode.ToUpper(first)) + name[size:]
}

// tied lists the rules whose models cannot be told from the best one: within
// half a point, or within two standard errors.
func tied(equilibria []lab.Equilibrium, best *lab.Equilibrium) []string {
	var names []string
	for i := range equilibria {
		e := &equilibria[i]
		margin := max(0.005, 2*math.Hypot(e.TrainedError, best.TrainedError))
		if e != best && modelAccuracy(best)-modelAccuracy(e) <= margin {
			names = append(names, e.Mechanism)
		}
	}
	return names
}

// modelAccuracy is the trained accuracy where there is one, else the fitted.
func modelAccuracy(e *lab.Equilibrium) float64 {
	if len(e.Records) > 0 {
		return e.Trained
	}
	return e.Accuracy
}

// bestRule is the rule with the best model.
func bestRule(equilibria []lab.Equilibrium) *lab.Equilibrium {
	best := &equilibria[0]
	for i := range equilibria {
		if modelAccuracy(&equilibria[i]) > modelAccuracy(best) {
			best = &equilibria[i]
		}
	}
	return best
}

// richestRule is the rule under which the members earn most together.
func richestRule(equilibria []lab.Equilibrium) *lab.Equilibrium {
	best := &equilibria[0]
	for i := range equilibria {
		if equilibria[i].Welfare > best.Welfare {
			best = &equilibria[i]
		}
	}
	return best
}

// evenRule is the rule whose poorest member is best off.
func evenRule(equilibria []lab.Equilibrium) *lab.Equilibrium {
	best := &equilibria[0]
	for i := range equilibria {
		if slices.Min(equilibria[i].Payoffs) > slices.Min(best.Payoffs) {
			best = &equilibria[i]
		}
	}
	return best
}

func sum(s game.Profile) float64 {
	total := 0.0
	for _, x := range s {
		total += float64(x)
	}
	return total
}

func facts(s *lab.Study) []html.Fact {
	best, richest, even := bestRule(s.Equilibria), richestRule(s.Equilibria), evenRule(s.Equilibria)
	note := fmt.Sprintf("%s accuracy", percent(modelAccuracy(best)))
	value := strings.Join(append([]string{best.Mechanism}, tied(s.Equilibria, best)...), ", ")
	if len(best.Records) > 0 {
		note += ", trained"
	}
	idle := 0
	for n, x := range best.Contributions {
		if x <= max(s.Game.Minimum, s.Game.Members[n].Capacity/100) {
			idle++
		}
	}
	return []html.Fact{
		{Label: "Best model", Value: value, Note: note},
		{Label: "Most earned together", Value: richest.Mechanism, Note: whole(richest.Welfare) + " after privacy costs"},
		{Label: "Poorest member best off", Value: even.Mechanism, Note: "it has " + whole(slices.Min(even.Payoffs))},
		{Label: "Idle under " + best.Mechanism, Value: fmt.Sprintf("%d of %d", idle, len(s.Game.Members)), Note: "give 1% of their data or less"},
	}
}

func (r *Report) answer(s *lab.Study) []html.Block {
	best := bestRule(s.Equilibria)
	var worst *lab.Equilibrium
	for i := range s.Equilibria {
		if worst == nil || modelAccuracy(&s.Equilibria[i]) < modelAccuracy(worst) {
			worst = &s.Equilibria[i]
		}
	}
	blocks := []html.Block{text(
		"%s hold %s data points between them. They can train one model together; the better it is, the more it earns. Each decides for itself how much of its data to put in, weighing its share of the profit against what giving away data costs it. The question is what each will do under each rule for sharing the profit.",
		counted(len(s.Game.Members), "member"), whole(capacity(s.Game)))}
	answer := fmt.Sprintf("%s gives the best model: %s of test images right, %s better than under %s.", best.Mechanism,
		percent(modelAccuracy(best)), points(modelAccuracy(best)-modelAccuracy(worst)), worst.Mechanism)
	if len(s.Equilibria) == 1 {
		answer = fmt.Sprintf("Under %s the model gets %s of test images right.", best.Mechanism, percent(modelAccuracy(best)))
	}
	if names := tied(s.Equilibria, best); len(names) > 0 {
		answer += fmt.Sprintf(" %s cannot be told apart from it: the difference is within what chance does to a training run.", list(names))
	}
	richest := richestRule(s.Equilibria)
	if richest != best {
		answer += fmt.Sprintf(" But the members earn most together under %s (%s against %s).", richest.Mechanism, whole(richest.Welfare), whole(best.Welfare))
	}
	blocks = append(blocks, html.Block{Answer: answer})

	t := &html.Table{
		Title: "The rules side by side",
		Head: []html.Head{{Text: "Rule", Left: true, Wide: true}, {Text: "Data put in"}, {Text: "Accuracy, trained"}, {Text: "Accuracy, predicted"},
			{Text: "Profit"}, {Text: "Privacy costs"}, {Text: "Left for members"}, {Text: "Equilibrium", Left: true}},
		Note: "Predicted: the fitted curve at the equilibrium contributions. Trained: a model really trained on them. Left for members: profit less privacy costs.",
	}
	for i := range s.Equilibria {
		e := &s.Equilibria[i]
		given := sum(e.Contributions)
		row := html.Row{Strong: e == best, Cells: []html.Cell{
			{Text: ruleName(e.Mechanism)},
			{Text: whole(given), Bar: given / capacity(s.Game)},
			trainedCell(e), {Text: percent(e.Accuracy), Small: interval(e)},
			{Text: whole(e.Profit)}, {Text: whole(e.Profit - e.Welfare)}, {Text: whole(e.Welfare)}, statusCell(e),
		}}
		t.Rows = append(t.Rows, row)
	}
	return append(blocks, html.Block{Table: t})
}

func capacity(g *game.Game) float64 {
	total := 0.0
	for _, m := range g.Members {
		total += float64(m.Capacity)
	}
	return total
}

func trainedCell(e *lab.Equilibrium) html.Cell {
	switch len(e.Records) {
	case 0:
		return html.Cell{Text: "–"}
	case 1:
		return html.Cell{Text: percent(e.Trained)}
	}
	return html.Cell{Text: percent(e.Trained), Small: fmt.Sprintf("± %.1f", 100*e.TrainedError)}
}

func interval(e *lab.Equilibrium) string {
	if e.AccuracyInterval == nil {
		return ""
	}
	return fmt.Sprintf("%.1f–%.1f", 100*e.AccuracyInterval.Low, 100*e.AccuracyInterval.High)
}

func statusCell(e *lab.Equilibrium) html.Cell {
	switch {
	case e.Status == equilibrium.Cycle:
		return html.Cell{Text: "none: goes round", Mark: html.Bad}
	case e.Status != equilibrium.Converged:
		return html.Cell{Text: "not reached", Mark: html.Bad}
	case e.Certificate.Certified:
		return html.Cell{Text: "certified", Mark: html.Good}
	}
	return html.Cell{Text: "not certified", Mark: html.Middle}
}

// poorFit is the R² under which a curve is doubted beside the answer.
const poorFit = 0.95

// doubts are warnings that belong beside the answer.
func (r *Report) doubts(s *lab.Study) []html.Block {
	var blocks []html.Block
	for i := range s.Equilibria {
		e := &s.Equilibria[i]
		if e.Status != equilibrium.Converged {
			blocks = append(blocks, html.Block{Warning: fmt.Sprintf("Under %s the members do not settle: they answer each other round and round. Its numbers are one moment of that.", e.Mechanism)})
		}
		if len(e.Records) > 0 && math.Abs(e.Trained-e.Accuracy) > 0.03 {
			blocks = append(blocks, html.Block{Warning: fmt.Sprintf("Under %s the trained model is %s away from what the curve predicted (%s against %s).",
				e.Mechanism, points(math.Abs(e.Trained-e.Accuracy)), percent(e.Trained), percent(e.Accuracy))})
		}
	}
	if s.Fit.R2 < poorFit {
		blocks = append(blocks, html.Block{Warning: fmt.Sprintf("The curve explains only %.0f%% of the variation between the measured accuracies: everything predicted from it is rough.", 100*s.Fit.R2)})
	}
	if n := len(s.Missing); n > 0 {
		blocks = append(blocks, html.Block{Warning: fmt.Sprintf("%s have not been trained; what hangs on them is left out.", counted(n, "cell"))})
	}
	return blocks
}

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
		Footer:   footer(origin),
	}
	r.Tables = append(r.Tables, equilibriumTable(s), measurementTable(s), roundTable(s.Points), fitTable(s), theoremTable(s))
	r.Page.Sections = []html.Section{
		{ID: "answer", Title: "The answer", Blocks: append(r.answer(s), r.doubts(s)...)},
		{ID: "members", Title: "What each rule does to each member", Blocks: r.members(s)},
		{ID: "losers", Title: "Who gains and who loses", Blocks: r.losers(s)},
		{ID: "accuracy", Title: "What the data are worth", Blocks: r.accuracy(s)},
		{ID: "sure", Title: "How sure this is", Blocks: r.certainty(s)},
		{ID: "provenance", Title: "Where the numbers come from", Blocks: r.provenance(s, allRecords(s, nil), origin)},
	}
	return r
}

func footer(origin Origin) string {
	return fmt.Sprintf("Made by grange %s. The figures and tables of this page stand beside it in the folders figures and tables.", origin.Version)
}

// titled begins a name with a capital.
func titled(name string) string {
	first, size := utf8.DecodeRuneInString(name)
	if size == 0 {
		return name
	}
	return string(unicode.ToUpper(first)) + name[size:]
}

// tied lists the rules whose models cannot be told from the best one.
func tied(s *lab.Study, best *lab.Equilibrium) []*lab.Equilibrium {
	var rules []*lab.Equilibrium
	for i := range s.Equilibria {
		e := &s.Equilibria[i]
		if e != best && modelAccuracy(best)-modelAccuracy(e) <= margin(s, e, best) {
			rules = append(rules, e)
		}
	}
	return rules
}

// margin is how far the models of two rules have to be apart to be told apart:
// half a point at least, and two standard errors of the difference.
func margin(s *lab.Study, a, b *lab.Equilibrium) float64 {
	return max(0.005, 2*math.Hypot(chance(s, a), chance(s, b)))
}

// chance is the standard error of a rule's trained accuracy. A single run has
// none of its own: it is taken to scatter as the measurements do around the
// fitted curve, by the median, which a few points that the curve misses do not
// move.
func chance(s *lab.Study, e *lab.Equilibrium) float64 {
	if len(e.Records) != 1 {
		return e.TrainedError
	}
	var misses []float64
	for i, residual := range s.Fit.Residuals {
		if s.Fit.Points[i].Total > 0 { // the untrained model is no run
			misses = append(misses, math.Abs(residual))
		}
	}
	if len(misses) == 0 {
		return 0
	}
	slices.Sort(misses)
	const normal = 1.4826 // standard deviation over median distance
	return normal * misses[len(misses)/2] * math.Sqrt(float64(len(misses))/float64(max(1, s.Fit.DegreesFree)))
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
	if len(best.Records) > 0 {
		note += ", trained"
	}
	winners := append([]*lab.Equilibrium{best}, tied(s, best)...)
	var names, idle []string
	for _, e := range winners {
		names = append(names, called(e.Mechanism))
		idle = append(idle, fmt.Sprintf("%s %d", e.Mechanism, idlers(s.Game, e)))
	}
	value := strings.Join(names, ", ")
	switch len(winners) {
	case 1:
	case len(s.Equilibria):
		value, note = "too close to call", "between all rules"
	default:
		note += "; too close to call"
	}
	idleFact := html.Fact{Label: "Idle under " + best.Mechanism, Value: fmt.Sprintf("%d of %d", idlers(s.Game, best), len(s.Game.Members)), Note: "give 1% of their data or less"}
	if len(winners) > 1 {
		idleFact = html.Fact{Label: "Idle members", Value: strings.Join(idle, ", "), Note: fmt.Sprintf("of %d, give 1%% of their data or less", len(s.Game.Members))}
	}
	return []html.Fact{
		{Label: "Best model", Value: titled(value), Note: note},
		{Label: "Most earned together", Value: called(richest.Mechanism), Note: whole(richest.Welfare) + " after privacy costs"},
		{Label: "Poorest member best off", Value: called(even.Mechanism), Note: "it has " + whole(slices.Min(even.Payoffs))},
		idleFact,
	}
}

// idlers counts the members that give a hundredth of their data or less.
func idlers(g *game.Game, e *lab.Equilibrium) int {
	idle := 0
	for n, x := range e.Contributions {
		if x <= max(g.Minimum, g.Members[n].Capacity/100) {
			idle++
		}
	}
	return idle
}

func (r *Report) answer(s *lab.Study) []html.Block {
	best := bestRule(s.Equilibria)
	blocks := []html.Block{text(
		"%s hold %s data points between them. They can train one model together; the better it is, the more it earns. Each decides for itself how much of its data to put in, weighing its share of the profit against what giving away data costs it. The question is what each will do under each rule for sharing the profit. The rules share it: %s.",
		counted(len(s.Game.Members), "member"), whole(capacity(s.Game)), ruleKey(s.Equilibria))}
	blocks = append(blocks, html.Block{Answer: strings.Join(verdict(s, best), " ")})
	if caution := luck(s, best); len(caution) > 0 {
		blocks = append(blocks, text("%s", strings.Join(caution, " ")))
	}

	t := &html.Table{
		Title: "The rules side by side",
		Head: []html.Head{{Text: "Rule", Left: true, Wide: true}, {Text: "Data put in"}, {Text: "Accuracy, trained"}, {Text: "Accuracy, predicted"},
			{Text: "Profit"}, {Text: "Privacy costs"}, {Text: "Left for members"}, {Text: "Equilibrium", Left: true}},
		Note: "Predicted: the fitted curve at the equilibrium contributions. Trained: a model really trained on them. Left for members: profit less privacy costs. Certified: no member gains by giving any other amount.",
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

// verdict is the answer, sentence by sentence.
func verdict(s *lab.Study, best *lab.Equilibrium) []string {
	if len(s.Equilibria) == 1 {
		return append([]string{fmt.Sprintf("Under %s the model gets %s of test images right.", best.Mechanism, percent(modelAccuracy(best)))}, losing(s, best)...)
	}
	ties := tied(s, best)
	worst := best
	for i := range s.Equilibria {
		if e := &s.Equilibria[i]; modelAccuracy(e) < modelAccuracy(worst) {
			worst = e
		}
	}
	var out []string
	switch len(ties) {
	case 0:
		out = append(out, fmt.Sprintf("%s gives the best model: %s of test images right, %s better than under %s.", best.Mechanism,
			percent(modelAccuracy(best)), points(modelAccuracy(best)-modelAccuracy(worst)), worst.Mechanism))
	case len(s.Equilibria) - 1:
		out = append(out, fmt.Sprintf("Which rule gives the best model cannot be told: they reach %s to %s of test images right.", percent(modelAccuracy(worst)), percent(modelAccuracy(best))))
	default:
		var others []string
		for _, e := range ties {
			others = append(others, fmt.Sprintf("%s (%s)", e.Mechanism, percent(modelAccuracy(e))))
		}
		out = append(out, fmt.Sprintf("%s gives the best model measured, %s of test images right and %s better than under %s, but %s cannot be told apart from it.", best.Mechanism,
			percent(modelAccuracy(best)), points(modelAccuracy(best)-modelAccuracy(worst)), worst.Mechanism, list(others)))
	}
	if richest := richestRule(s.Equilibria); richest != best {
		out = append(out, fmt.Sprintf("The members earn most together under %s (%s against %s).", richest.Mechanism, whole(richest.Welfare), whole(best.Welfare)))
	}
	return append(out, losing(s, append([]*lab.Equilibrium{best}, ties...)...)...)
}

// luck says what chance may have to do with it, and whether the fitted curve
// agrees.
func luck(s *lab.Study, best *lab.Equilibrium) []string {
	if len(s.Equilibria) == 1 {
		return nil
	}
	var out []string
	switch {
	case len(best.Records) == 1:
		out = append(out, fmt.Sprintf("There is one run for each rule, so chance was not measured. Judged by how the measurements scatter around the fitted curve, two models less than %s apart cannot be told apart. Running it with --repeats 3 measures chance.",
			points(margin(s, best, best))))
	case len(tied(s, best)) > 0:
		out = append(out, "Models cannot be told apart when they are within two standard errors of their runs, or within half a point.")
	}
	if foreseen := foremost(s.Equilibria); foreseen != best {
		out = append(out, fmt.Sprintf("The fitted curve disagrees about the best rule: it puts %s first, with %s against %s.", foreseen.Mechanism, percent(foreseen.Accuracy), percent(best.Accuracy)))
	}
	return out
}

// foremost is the rule with the best model by the fitted curve.
func foremost(equilibria []lab.Equilibrium) *lab.Equilibrium {
	best := &equilibria[0]
	for i := range equilibria {
		if equilibria[i].Accuracy > best.Accuracy {
			best = &equilibria[i]
		}
	}
	return best
}

// losing says under which of some rules members would rather stay out.
func losing(s *lab.Study, rules ...*lab.Equilibrium) []string {
	var out []string
	for _, e := range rules {
		var names []string
		for n, m := range s.Game.Members {
			if e.Payoffs[n] < m.Outside {
				names = append(names, fmt.Sprintf("%s (%s)", m.Name, whole(e.Payoffs[n])))
			}
		}
		if len(names) > 0 {
			ends := "ends"
			if len(names) > 1 {
				ends = "end"
			}
			out = append(out, fmt.Sprintf("Under %s, %d of %d members %s below what they have without taking part: %s.", e.Mechanism, len(names), len(s.Game.Members), ends, some(names)))
		}
	}
	return out
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
	if !s.KnowsGamma() && slices.ContainsFunc(s.Game.Members, func(m game.Member) bool { return m.Noise > 0 }) {
		blocks = append(blocks, html.Block{Warning: "No run with wrong labels is there, so what they cost was not measured. Everything here takes them for harmless, though members have some."})
	}
	if n := len(s.Missing); n > 0 {
		blocks = append(blocks, html.Block{Warning: fmt.Sprintf("%s have not been trained; what hangs on them is left out.", counted(n, "cell"))})
	}
	return blocks
}

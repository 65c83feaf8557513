package story

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"grange/report/chart"
	"grange/report/html"
	"grange/valuation"
)

// Values is one subject valued by several methods, and the truth about it.
type Values struct {
	Scenario string
	Members  []string
	Truth    string // what it is, in words, such as "every coalition retrained"
	Rebuilt  bool   // the methods work on models rebuilt from saved updates
	Raw      bool   // negative indices keep their sign
	Indices  []float64
	Shares   []float64
	Methods  []ValuedMethod
}

// ValuedMethod is what one method found.
type ValuedMethod struct {
	Name   string
	About  string // in a few words, such as "sampled, round by round"
	Result *valuation.Result
	Shares []float64
	Judged valuation.Judgement
}

// yardstick is the method that knows nothing.
const yardstick = "equal"

// Add judges what a method found and takes it in.
func (v *Values) Add(name, about string, r *valuation.Result, shares []float64) {
	v.Methods = append(v.Methods, ValuedMethod{Name: name, About: about, Result: r, Shares: shares, Judged: valuation.Judge(r.Values, shares, v.Indices, v.Shares)})
}

// AddEqual takes in equal shares of what the members reach by the truth, to
// judge the others by.
func (v *Values) AddEqual() {
	n := len(v.Members)
	r := &valuation.Result{Estimate: valuation.Estimate{Values: make([]float64, n), Errors: make([]float64, n), Spread: make([]float64, n)}}
	shares := make([]float64, n)
	for i := range shares {
		shares[i] = 1 / float64(n)
		for _, x := range v.Indices {
			r.Values[i] += x / float64(n)
		}
	}
	v.Add(yardstick, "a yardstick: the same for everyone", r, shares)
}

// Comparison tells how the methods did, side by side.
func Comparison(v *Values, origin Origin) html.Document {
	page := html.Document{
		Title:    "Who contributed what: " + v.Scenario,
		Subtitle: "Every method beside the truth, which is " + v.Truth + ".",
		Facts:    v.facts(),
		Footer:   fmt.Sprintf("Made by grange %s with %s.", origin.Version, origin.Command),
	}
	figure := v.figure()
	page.Sections = []html.Section{
		{ID: "answer", Title: "Which method to trust", Blocks: []html.Block{{Answer: v.answer()}, {Table: v.methodTable()}}},
		{ID: "members", Title: "What each method gives each member", Blocks: []html.Block{{Chart: &figure}, {Table: v.shareTable()}}},
		{ID: "reading", Title: "How to read this", Blocks: v.reading()},
	}
	return page
}

// closest returns the method nearest to the truth, to a tenth of a point; of
// several, the one with the fewest models. Methods that are the truth do not
// count.
func (v *Values) closest() *ValuedMethod {
	var best *ValuedMethod
	for i := range v.Methods {
		m := &v.Methods[i]
		if m.Name == yardstick || m.Judged.Share == 0 && m.Judged.Error == 0 {
			continue
		}
		if best == nil || tenths(m) < tenths(best) || tenths(m) == tenths(best) && m.Result.Evaluations < best.Result.Evaluations {
			best = m
		}
	}
	return best
}

func tenths(m *ValuedMethod) float64 { return math.Round(1000 * m.Judged.Share) }

// models writes how many models a method evaluated.
func models(m *ValuedMethod) string {
	if m.Result.Evaluations == 1 {
		return "1 model"
	}
	return whole(float64(m.Result.Evaluations)) + " models"
}

func (v *Values) method(name string) *ValuedMethod {
	for i := range v.Methods {
		if v.Methods[i].Name == name {
			return &v.Methods[i]
		}
	}
	return nil
}

func (v *Values) facts() []html.Fact {
	first := v.Methods[0].Result
	facts := []html.Fact{
		{Label: "Accuracy to share out", Value: percent(first.Whole - first.Empty), Note: fmt.Sprintf("from %s to %s", percent(first.Empty), percent(first.Whole))},
		{Label: "Members", Value: fmt.Sprint(len(v.Members))},
	}
	if best := v.closest(); best != nil {
		facts = append(facts, html.Fact{Label: "Closest method", Value: best.Name,
			Note: fmt.Sprintf("%s of share off at most, %s", points(best.Judged.Share), models(best))})
	}
	if equal := v.method(yardstick); equal != nil {
		facts = append(facts, html.Fact{Label: "Equal shares, for scale", Value: points(equal.Judged.Share), Note: "off at most"})
	}
	return facts
}

func (v *Values) answer() string {
	best := v.closest()
	if best == nil {
		return "All methods agree with the truth."
	}
	text := fmt.Sprintf("%s comes closest: no member's share is more than %s from the truth, at the cost of evaluating %s.",
		titled(best.Name), points(best.Judged.Share), models(best))
	if equal := v.method(yardstick); equal != nil {
		if best.Judged.Share < equal.Judged.Share {
			text += fmt.Sprintf(" Giving everyone the same would be up to %s off.", points(equal.Judged.Share))
		} else {
			text += fmt.Sprintf(" That is no better than giving everyone the same, which is up to %s off: here the methods cannot tell the members apart.", points(equal.Judged.Share))
		}
	}
	return text
}

func (v *Values) methodTable() *html.Table {
	t := &html.Table{
		Title: "Cost, and error against the truth",
		Head: []html.Head{{Text: "Method", Left: true, Wide: true}, {Text: "Models"}, {Text: "Largest error"}, {Text: "Mean error"}, {Text: "Ranks"},
			{Text: "Index error"}, {Text: "Stated error"}},
		Note: "Models: how many were evaluated. Largest and mean error: of a member's share, in points of the whole. Ranks: agreement with the truth's, " +
			"Kendall's τ, 1 for the same order. Index error: root mean square over members, in accuracy. Stated error: the standard error of the indices " +
			"that the method claims for itself, root mean square; it speaks of the sampling only.",
	}
	worst := 0.0
	for _, m := range v.Methods {
		worst = max(worst, m.Judged.Share)
	}
	best := v.closest()
	for i := range v.Methods {
		m := &v.Methods[i]
		share := html.Cell{Text: fmt.Sprintf("%.2f", 100*m.Judged.Share)}
		if worst > 0 {
			share.Bar = m.Judged.Share / worst
		}
		t.Rows = append(t.Rows, html.Row{Strong: m == best, Cells: []html.Cell{
			{Text: m.Name, Small: m.About}, {Text: whole(float64(m.Result.Evaluations))}, share,
			{Text: fmt.Sprintf("%.2f", 100*m.Judged.Shares)}, {Text: strings.Replace(fmt.Sprintf("%.2f", m.Judged.Ranks), "-", "−", 1)},
			{Text: fmt.Sprintf("%.4f", m.Judged.Error)}, {Text: stated(m)},
		}})
	}
	return t
}

// stated is the root mean square of the standard errors.
func stated(m *ValuedMethod) string {
	if m.Name == yardstick {
		return "–"
	}
	sum := 0.0
	for _, e := range m.Result.Errors {
		sum += e * e / float64(len(m.Result.Errors))
	}
	switch {
	case sum == 0:
		return "none"
	case math.IsInf(sum, 1):
		return "unknown"
	case sum < 0.00005*0.00005:
		return "< 0.0001"
	}
	return fmt.Sprintf("%.4f", math.Sqrt(sum))
}

// figure has one panel per method: bars with intervals, and the truth as marks.
func (v *Values) figure() chart.Chart {
	c := chart.Chart{
		ID: "values", Title: "Share of each member, with 95% intervals",
		Caption: "Bars: the share by each method. Whiskers: the 95% interval of the member's index, as a part of all, where a method samples. Points: the truth.",
	}
	limit, lowest, common := 2*slices.Max(v.Shares), 0.0, 0.0
	var tops []float64
	for i := range v.Methods {
		m := &v.Methods[i]
		if m.Name == yardstick {
			continue
		}
		bars := chart.Bars{Name: "method", Color: chart.Series(1)}
		truth := chart.Line{Name: "truth", Color: chart.Series(2), Alone: true}
		top := slices.Max(v.Shares)
		for n, x := range m.Shares {
			point := chart.XY{Y: x, Low: x, High: x}
			// A share of nothing says nothing about its interval: the index may be far below.
			if spread := m.Result.Spread[n]; !math.IsInf(spread, 1) && x > 0 && m.Result.Values[n] > 0 {
				part := x * spread / m.Result.Values[n]
				point.Low, point.High = max(0, x-part), x+part
			}
			top, lowest = max(top, point.High), min(lowest, point.Low)
			bars.Values = append(bars.Values, point)
			truth.Points = append(truth.Points, chart.XY{X: float64(n), Y: v.Shares[n], Low: v.Shares[n], High: v.Shares[n]})
		}
		c.Panels = append(c.Panels, chart.Panel{
			Title: m.Name, Note: fmt.Sprintf("%s, off by %s at most", models(m), points(m.Judged.Share)),
			X: chart.Axis{Categories: v.Members}, Y: chart.Axis{FromZero: true, Percent: true},
			Bars: []chart.Bars{bars}, Lines: []chart.Line{truth},
		})
		tops = append(tops, top)
		if top <= limit {
			common = max(common, top)
		}
	}
	// All have the same axis, but for methods so far off that the others could not be read on theirs.
	for i, top := range tops {
		if y := &c.Panels[i].Y; top <= limit {
			y.Fixed, y.Min, y.Max = true, lowest, common
		} else {
			c.Panels[i].Note += "; other scale"
		}
	}
	return c
}

// shareTable has one row per method, one column per member.
func (v *Values) shareTable() *html.Table {
	negative := "Negative indices count as nothing."
	if v.Raw {
		negative = "Negative indices keep their sign: a member below zero would pay."
	}
	t := &html.Table{Title: "Shares, in per cent", Head: []html.Head{{Text: "Method", Left: true}},
		Note: negative + " A share more than two points from the truth is marked."}
	truth := html.Row{Strong: true, Cells: []html.Cell{{Text: "truth"}}}
	for n, name := range v.Members {
		t.Head = append(t.Head, html.Head{Text: name})
		truth.Cells = append(truth.Cells, html.Cell{Text: fmt.Sprintf("%.1f", 100*v.Shares[n])})
	}
	t.Rows = append(t.Rows, truth)
	for i := range v.Methods {
		m := &v.Methods[i]
		row := html.Row{Cells: []html.Cell{{Text: m.Name}}}
		for n, share := range m.Shares {
			cell := html.Cell{Text: fmt.Sprintf("%.1f", 100*share)}
			if math.Abs(share-v.Shares[n]) > 0.02 {
				cell.Mark = html.Middle
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (v *Values) reading() []html.Block {
	blocks := []html.Block{
		text("The index of a member is its Shapley value: what it adds to the accuracy, averaged over all orders in which the members could have joined. Its share is its index over the sum of all."),
		text("The intervals speak of sampling: how far another draw of coalitions may be. They do not cover the chance in a training run."),
	}
	if !v.Rebuilt {
		blocks = append(blocks, text("Where every coalition was trained several times, the intervals of methods that value all coalitions speak of that chance instead."))
	}
	if v.Rebuilt {
		blocks = append(blocks, text("These methods train nothing: the model of a coalition is rebuilt from what its members uploaded in the one training that took place. "+
			"That is a different model from the one the coalition would have trained, and no interval covers the difference. The distance from the truth shows it."))
	}
	return blocks
}

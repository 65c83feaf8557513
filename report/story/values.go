package story

import (
	"fmt"
	"math"
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

// closest returns the cheap method nearest to the truth: of those that did not
// value every coalition the truth did, unless there is no other.
func (v *Values) closest() *ValuedMethod {
	var best *ValuedMethod
	for i := range v.Methods {
		m := &v.Methods[i]
		if m.Name == yardstick || m.Judged.Share == 0 && m.Judged.Error == 0 {
			continue
		}
		if best == nil || m.Judged.Share < best.Judged.Share {
			best = m
		}
	}
	return best
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
			Note: fmt.Sprintf("%s of share off at most, %s", points(best.Judged.Share), counted(best.Result.Evaluations, "model"))})
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
	text := fmt.Sprintf("%s comes closest: no member's share is more than %s from the truth, at the cost of %s.",
		titled(best.Name), points(best.Judged.Share), counted(best.Result.Evaluations, "evaluated model"))
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
		Title: "Cost and error",
		Head: []html.Head{{Text: "Method", Left: true, Wide: true}, {Text: "Models evaluated"}, {Text: "Largest error of a share"},
			{Text: "Mean error of a share"}, {Text: "Index error"}, {Text: "Stated error"}, {Text: "Rank agreement"}},
		Note: "Errors of shares are in points of the whole. Index error: root mean square over members, in accuracy. Stated error: the standard error " +
			"the method claims for itself, root mean square; it speaks of the sampling only. Rank agreement: Kendall's τ, 1 for the same order as the truth.",
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
			{Text: fmt.Sprintf("%.2f", 100*m.Judged.Shares)}, {Text: fmt.Sprintf("%.4f", m.Judged.Error)}, {Text: stated(m)}, {Text: strings.Replace(fmt.Sprintf("%.2f", m.Judged.Ranks), "-", "−", 1)},
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
	}
	return fmt.Sprintf("%.4f", math.Sqrt(sum))
}

// figure has one panel per method: bars with intervals, and the truth as marks.
func (v *Values) figure() chart.Chart {
	c := chart.Chart{
		ID: "values", Title: "Index of each member, with 95% intervals", Shared: true,
		Caption: "Bars: the accuracy a method says each member brought. Whiskers: its 95% interval, where it samples. Points: the truth.",
	}
	for i := range v.Methods {
		m := &v.Methods[i]
		if m.Name == yardstick {
			continue
		}
		bars := chart.Bars{Name: "method", Color: chart.Series(1)}
		truth := chart.Line{Name: "truth", Color: chart.Series(2), Alone: true}
		for n, x := range m.Result.Values {
			point := chart.XY{Y: x, Low: x, High: x}
			if spread := m.Result.Spread[n]; !math.IsInf(spread, 1) {
				point.Low, point.High = m.Result.Interval(n)
			}
			bars.Values = append(bars.Values, point)
			truth.Points = append(truth.Points, chart.XY{X: float64(n), Y: v.Indices[n], Low: v.Indices[n], High: v.Indices[n]})
		}
		c.Panels = append(c.Panels, chart.Panel{
			Title: m.Name, Note: fmt.Sprintf("%s, off by %s at most", counted(m.Result.Evaluations, "model"), points(m.Judged.Share)),
			X: chart.Axis{Categories: v.Members}, Y: chart.Axis{FromZero: true},
			Bars: []chart.Bars{bars}, Lines: []chart.Line{truth},
		})
	}
	return c
}

// shareTable has one row per member, one column per method.
func (v *Values) shareTable() *html.Table {
	t := &html.Table{Title: "Shares, in per cent", Head: []html.Head{{Text: "Member", Left: true}, {Text: "truth"}},
		Note: "Negative indices count as nothing. A share more than two points from the truth is marked."}
	for _, m := range v.Methods {
		if m.Name != yardstick {
			t.Head = append(t.Head, html.Head{Text: m.Name})
		}
	}
	for n, name := range v.Members {
		cells := []html.Cell{{Text: name}, {Text: fmt.Sprintf("%.1f", 100*v.Shares[n])}}
		for _, m := range v.Methods {
			if m.Name == yardstick {
				continue
			}
			cell := html.Cell{Text: fmt.Sprintf("%.1f", 100*m.Shares[n])}
			if math.Abs(m.Shares[n]-v.Shares[n]) > 0.02 {
				cell.Mark = html.Middle
			}
			cells = append(cells, cell)
		}
		t.Rows = append(t.Rows, html.Row{Cells: cells})
	}
	return t
}

func (v *Values) reading() []html.Block {
	blocks := []html.Block{
		text("The index of a member is its Shapley value: what it adds to the accuracy, averaged over all orders in which the members could have joined. Its share is its index over the sum of all."),
		text("The intervals speak of sampling: how far another draw of coalitions may be. They do not cover the chance in a training run."),
	}
	if v.Rebuilt {
		blocks = append(blocks, text("These methods train nothing: the model of a coalition is rebuilt from what its members uploaded in the one training that took place. "+
			"That is a different model from the one the coalition would have trained, and no interval covers the difference. The distance from the truth shows it."))
	}
	return blocks
}

package cli

import (
	"context"
	"fmt"
	"math"
	"strings"

	"grange/report/chart"
	"grange/valuation"
)

// valueJSON is the document of value --json.
type valueJSON struct {
	Scenario    string    `json:"scenario"`
	Source      string    `json:"source"`
	Method      string    `json:"method"`
	Members     []string  `json:"members"`
	Indices     []float64 `json:"indices"`
	Shares      []float64 `json:"shares"`
	Errors      []float64 `json:"standard_errors,omitempty"`
	Low         []float64 `json:"low,omitempty"`
	High        []float64 `json:"high,omitempty"`
	Ranks       []int     `json:"ranks"`
	Amounts     []int64   `json:"amounts,omitempty"`
	Empty       float64   `json:"empty"`
	Whole       float64   `json:"whole"`
	Evaluations int       `json:"evaluations"`
	Status      string    `json:"status"`
	Reason      string    `json:"reason"`
	Seed        uint64    `json:"seed"`
	Warnings    []string  `json:"warnings,omitempty"`
}

func (v *valued) document() valueJSON {
	r := v.result
	d := valueJSON{
		Scenario: v.scenario, Source: v.source, Method: r.Method, Members: v.members, Indices: r.Values, Shares: v.shares,
		Ranks: r.Ranks(), Amounts: v.parts, Empty: r.Empty, Whole: r.Whole, Evaluations: r.Evaluations,
		Status: r.Status.String(), Reason: r.Reason, Seed: v.seed, Warnings: r.Warnings,
	}
	if v.bounded() {
		d.Errors = r.Errors
		for n := range r.Values {
			low, high := r.Interval(n)
			d.Low, d.High = append(d.Low, low), append(d.High, high)
		}
	}
	return d
}

// bounded reports whether every member has an error bar.
func (v *valued) bounded() bool {
	for _, s := range v.result.Spread {
		if math.IsInf(s, 1) {
			return false
		}
	}
	return true
}

func (a *app) showValue(ctx context.Context, v *valued, flags valueFlags) error {
	if flags.csv != "" {
		data, err := encodeCSV(v.rows())
		if err != nil {
			return err
		}
		if err := a.save(ctx, flags.csv, data); err != nil {
			return err
		}
	}
	if flags.plot != "" {
		format, err := chartFormat(flags.plot)
		if err != nil {
			return err
		}
		picture, err := v.chart().File(format)
		if err != nil {
			return err
		}
		if err := a.save(ctx, flags.plot, picture); err != nil {
			return err
		}
	}
	if flags.json {
		return a.printJSON(ctx, v.document())
	}
	return a.print(ctx, []byte(a.valueText(v, flags)))
}

// rows are the table as CSV.
func (v *valued) rows() [][]string {
	header := []string{"member", "index", "standard_error", "low", "high", "share", "rank"}
	if v.parts != nil {
		header = append(header, "amount")
	}
	partial := v.result.Status == valuation.Failed
	if partial {
		header = append(header, "status")
	}
	rows := [][]string{header}
	ranks := v.result.Ranks()
	for n, name := range v.members {
		row := []string{name, exact(v.result.Values[n]), "", "", "", exact(v.shares[n]), fmt.Sprint(ranks[n])}
		if v.bounded() {
			low, high := v.result.Interval(n)
			row[2], row[3], row[4] = exact(v.result.Errors[n]), exact(low), exact(high)
		}
		if v.parts != nil {
			row = append(row, fmt.Sprint(v.parts[n]))
		}
		if partial {
			row = append(row, v.result.Status.String())
		}
		rows = append(rows, row)
	}
	return rows
}

// valueText is what a person reads.
func (a *app) valueText(v *valued, flags valueFlags) string {
	r := v.result
	var b strings.Builder
	source := "rebuilt from saved updates"
	if v.source == "retrained" {
		source = "every coalition trained from the start"
	}
	fmt.Fprintf(&b, "%s: accuracy from %s to %s, by %s, %s\n\n", v.scenario, percent2(r.Empty), percent2(r.Whole), r.Method, source)
	t := &table{}
	head := []cell{left("member").in(bold), right("index").in(bold), right("±95%").in(bold), right("share").in(bold), right("rank").in(bold)}
	if v.parts != nil {
		head = append(head, right("amount").in(bold))
	}
	t.add(head...)
	t.rule()
	ranks := r.Ranks()
	for n, name := range v.members {
		spread := fmt.Sprintf("%.4f", r.Spread[n])
		switch exact, known := r.Status == valuation.Exact, !math.IsInf(r.Spread[n], 1); {
		case exact && !known:
			spread = "–"
		case !known:
			spread = "?"
		case exact && r.Spread[n] == 0:
			spread = "exact"
		}
		row := []cell{left(name), right(fmt.Sprintf("%.4f", r.Values[n])), right(spread), right(percent2(v.shares[n])), right(fmt.Sprint(ranks[n]))}
		if v.parts != nil {
			row = append(row, right(whole(v.parts[n])))
		}
		t.add(row...)
	}
	b.WriteString(t.render(a.colour()))
	fmt.Fprintf(&b, "\n%s models were evaluated: %s.\n", whole(int64(r.Evaluations)), r.Reason)
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "Note: %s\n", w)
	}
	for _, file := range []struct{ what, path string }{{"Table", flags.csv}, {"Picture", flags.plot}} {
		if file.path != "" {
			fmt.Fprintf(&b, "%s: %s\n", file.what, file.path)
		}
	}
	return b.String()
}

func percent2(x float64) string { return fmt.Sprintf("%.2f%%", 100*x) }

// chart draws the indices as bars with their intervals.
func (v *valued) chart() chart.Chart {
	title := v.scenario + ": who contributed what"
	if v.result.Status == valuation.Failed {
		title += ", as far as it was valued"
	}
	bars := chart.Bars{Name: v.result.Method, Color: chart.Series(1)}
	for n, x := range v.result.Values {
		point := chart.XY{Y: x, Low: x, High: x}
		if v.bounded() {
			point.Low, point.High = v.result.Interval(n)
		}
		bars.Values = append(bars.Values, point)
	}
	return chart.Chart{
		ID: "value", Title: title,
		Panels: []chart.Panel{{
			Title: "Index of each member, with 95% intervals", X: chart.Axis{Label: "member", Categories: v.members},
			Y: chart.Axis{Label: "accuracy contributed", FromZero: true}, Bars: []chart.Bars{bars},
		}},
	}
}

package html

import (
	"regexp"
	"strings"
	"testing"

	"grange/report/chart"
)

func sample() Document {
	return Document{
		Title: "A <report> & more", Subtitle: "about it",
		Facts: []Fact{{"Best rule", "LOO", "by 2 points"}},
		Sections: []Section{
			{ID: "one", Title: "One", Blocks: []Block{
				{Text: "text"}, {Answer: "answer"}, {Warning: "careful"},
				{Table: &Table{Title: "numbers", Head: []Head{{Text: "name", Left: true, Wide: true}, {Text: "value"}}, Rows: []Row{
					{Cells: []Cell{{Text: "<script>alert(1)</script>"}, {Text: "5", Small: "4–6", Bar: 0.5, Mark: Good}}},
				}}},
				{Chart: &chart.Chart{ID: "fig", Title: "figure", Panels: []chart.Panel{{Title: "p", Lines: []chart.Line{{Name: "l", Color: chart.Series(0), Points: []chart.XY{{X: 0, Y: 1}, {X: 1, Y: 2}}}}}}}},
				{Pairs: []Pair{{"seed", "1"}}},
				{Fold: &Fold{Title: "more", Blocks: []Block{{Text: "folded"}}}},
			}},
		},
		Footer: "made by a test",
	}
}

func TestPageIsSelfContained(t *testing.T) {
	data, err := sample().Render()
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	if !strings.HasPrefix(text, "<!doctype html>") {
		t.Errorf("starts with %.40q", text)
	}
	for _, bad := range []string{"<script", "http://", "https://", "@import", "url(", "ZgotmplZ"} {
		if strings.Contains(text, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"A &lt;report&gt; &amp; more", "prefers-color-scheme:dark", "@media print", "<svg", "folded", "careful", `width:50.0%`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, tag := range []string{"figure", "div", "section", "table", "details", "span", "p"} {
		opened := len(regexp.MustCompile("<"+tag+`[ >]`).FindAllString(text, -1))
		closed := strings.Count(text, "</"+tag+">")
		if opened != closed {
			t.Errorf("%d <%s> and %d </%s>", opened, tag, closed, tag)
		}
	}
}

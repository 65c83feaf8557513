package story_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"grange/game"
	"grange/report/story"
	"grange/valuation"
)

// compared is three members by three methods: one exact, one close with
// intervals, one far off whose errors are not known.
func compared() *story.Values {
	v := &story.Values{Scenario: "three clinics", Members: []string{"ash", "birch", "cedar"}, Truth: "every coalition retrained", Rebuilt: true,
		Indices: []float64{0.1, 0.2, 0.3}}
	v.Shares = game.Shares(v.Indices, game.Clip)
	add := func(name string, evaluations int, e valuation.Estimate) {
		r := &valuation.Result{Method: name, Estimate: e, Empty: 0.1, Whole: 0.7, Evaluations: evaluations}
		v.Add(name, "in words", r, r.Shares(game.Clip))
	}
	zero, unknown := make([]float64, 3), []float64{math.Inf(1), math.Inf(1), math.Inf(1)}
	add("exact", 8, valuation.Estimate{Values: []float64{0.1, 0.2, 0.3}, Errors: zero, Spread: zero})
	add("gtg", 1, valuation.Estimate{Values: []float64{0.11, 0.19, 0.3}, Errors: []float64{0.003, 0.004, 0}, Spread: []float64{0.006, 0.008, 0}})
	add("loo", 5, valuation.Estimate{Values: []float64{0.3, 0.2, -0.1}, Errors: unknown, Spread: unknown})
	v.AddEqual()
	return v
}

func TestComparison(t *testing.T) {
	page := story.Comparison(compared(), story.Origin{Version: "1", Command: "grange value updates --compare"})
	data, err := page.Render()
	if err != nil {
		t.Fatal(err)
	}
	html := string(data)
	for _, want := range []string{
		"Every method beside the truth, which is every coalition retrained.",
		// gtg's shares are 18.33, 31.67 and 50 per cent instead of 16.67, 33.33 and 50.
		"Gtg comes closest: no member&#39;s share is more than 1.7 points from the truth, at the cost of evaluating 1 model.",
		"Giving everyone the same would be up to 16.7 points off.",
		`<span class="mark middle">60.0</span>`, // ash by loo
		"exact <small>in words</small>",
		"unknown", "none", "0.0029", // the errors that methods state
		"−1.00", // loo has the members the other way round
		"Made by grange 1 with grange value updates --compare.", "These methods train nothing",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if panels := strings.Count(html, "<svg viewBox"); panels != 3 {
		t.Errorf("%d panels, want one for each method but the yardstick", panels)
	}
	if strings.Contains(html, "Inf") || strings.Contains(html, "NaN") {
		t.Error("the page shows a number that is none")
	}
}

func TestComparisonSaysWhatNegativeIndicesDo(t *testing.T) {
	for raw, want := range map[bool]string{false: "Negative indices count as nothing.", true: "Negative indices keep their sign"} {
		v := compared()
		v.Raw = raw
		data, err := story.Comparison(v, story.Origin{}).Render()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// Methods that cannot tell members apart are said to be no better than none.
func TestComparisonAgainstEqualShares(t *testing.T) {
	v := compared()
	v.Indices = []float64{0.2, 0.2, 0.2}
	v.Shares = game.Shares(v.Indices, game.Clip)
	methods := v.Methods
	v.Methods = nil
	for _, m := range methods[1:3] {
		v.Add(m.Name, m.About, m.Result, m.Shares)
	}
	v.AddEqual()
	data, err := story.Comparison(v, story.Origin{}).Render()
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Methods[2].Judged; got.Share > 1e-12 {
		t.Fatalf("equal shares are %v off", got.Share)
	}
	if !strings.Contains(string(data), "That is no better than giving everyone the same, which is up to 0.0 points off") {
		t.Error("the page does not say that equal shares are as good")
	}
	if want := fmt.Sprintf("Gtg comes closest: no member&#39;s share is more than %.1f points", 100*v.Methods[0].Judged.Share); !strings.Contains(string(data), want) {
		t.Errorf("the page does not say %q", want)
	}
}

// Package report shows Grange's results. Here is the figure of a sweep; the
// packages below draw charts, write tables and pages, and tell the story of an
// experiment.
package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"grange/game"
	"grange/report/chart"
)

// ErrFigure is returned for a sweep that makes no readable figure.
var ErrFigure = errors.New("report: cannot draw")

// Sweep is what members contribute at equilibrium while one key of the
// scenario changes: the paper's Figures 3 and 4.
type Sweep struct {
	Key     string    // what changes, such as members[0:3].noise
	Values  []float64 // its values
	Members []string
	Varied  []bool     // whose value changes; nil when it is nobody's own
	Rows    []SweepRow // one row of panels per combination of further keys
}

// SweepRow is one row of panels.
type SweepRow struct {
	Label  string // "" when there is only one row
	Panels []Panel
}

// Panel is one mechanism.
type Panel struct {
	Mechanism     string
	Contributions []game.Profile // one per value
	Proven        []bool         // whether each is a certified equilibrium
}

const (
	maxRows       = 6
	listedMembers = 10 // more members are drawn as a distribution
	maxBars       = 60 // in a panel; more are drawn as lines
	maxGroups     = 15 // of bars
	maxMarks      = 20 // on a line
)

// Check says whether the sweep can be drawn, before it is solved.
func (s Sweep) Check() error {
	if len(s.Rows) > maxRows {
		return fmt.Errorf("%w: %d rows of panels, want at most %d", ErrFigure, len(s.Rows), maxRows)
	}
	return nil
}

// Chart describes the sweep as a figure: one panel per mechanism, all with the
// same axes. Contributions that are not a proven equilibrium are hollow.
func (s Sweep) Chart() chart.Chart {
	c := chart.Chart{ID: "sweep", Shared: true, Hollow: "hollow: not an equilibrium"}
	for _, row := range s.Rows {
		c.Columns = len(row.Panels)
		for _, p := range row.Panels {
			c.Panels = append(c.Panels, s.panel(p, row.Label))
		}
	}
	return c
}

// panel shows one mechanism: a distribution of many members, else bars, or
// lines where there are too many values for bars.
func (s Sweep) panel(p Panel, row string) chart.Panel {
	out := chart.Panel{
		Title: panelTitle(p.Mechanism), Note: row,
		X: chart.Axis{Label: s.axisTitle()},
		Y: chart.Axis{Label: "contribution s* (data points)", FromZero: true, Counts: true},
	}
	switch {
	case len(s.Members) > listedMembers:
		out.Lines = s.distribution(p)
	case len(s.Values) > maxGroups || len(s.Values)*len(s.Members) > maxBars:
		out.Lines = s.lines(p)
	default:
		out.X.Values = s.Values
		out.Bars = s.bars(p)
	}
	return out
}

func (s Sweep) bars(p Panel) []chart.Bars {
	var all []chart.Bars
	for n, color := range s.colors() {
		bars := chart.Bars{Name: s.Members[n], Color: color}
		for v, profile := range p.Contributions {
			bars.Values = append(bars.Values, chart.XY{Y: float64(profile[n]), Hollow: !p.Proven[v]})
		}
		all = append(all, bars)
	}
	return all
}

func (s Sweep) lines(p Panel) []chart.Line {
	var all []chart.Line
	for n, color := range s.colors() {
		line := chart.Line{Name: s.Members[n], Color: color, Marks: len(s.Values) <= maxMarks}
		// Members with the same contributions lie on each other: later ones are thinner.
		line.Width = 3.6 - 2.4*float64(n)/float64(max(1, len(s.Members)-1))
		for _, v := range s.ascending() {
			line.Points = append(line.Points, chart.XY{X: s.Values[v], Y: float64(p.Contributions[v][n]), Hollow: !p.Proven[v]})
		}
		all = append(all, line)
	}
	return all
}

// distribution shows how contributions are spread: smallest to largest in
// light, the middle half darker, the median as a line.
func (s Sweep) distribution(p Panel) []chart.Line {
	all := chart.Line{Name: "all members", Color: chart.Shade(0, 3), Band: true, Alone: true}
	half := chart.Line{Name: "middle half", Color: chart.Shade(0, 2), Band: true, Alone: true}
	median := chart.Line{Name: "median member", Color: chart.Shade(0, 0)}
	for _, v := range s.ascending() {
		sorted := slices.Sorted(slices.Values(p.Contributions[v]))
		at := func(quantile float64) float64 { return float64(sorted[int(quantile*float64(len(sorted)-1))]) }
		point := chart.XY{X: s.Values[v], Y: at(0.5)}
		point.Low, point.High = at(0), at(1)
		all.Points = append(all.Points, point)
		point.Low, point.High = at(0.25), at(0.75)
		half.Points = append(half.Points, point)
		median.Points = append(median.Points, chart.XY{X: point.X, Y: point.Y, Hollow: !p.Proven[v]})
	}
	return []chart.Line{all, half, median}
}

// ascending is the order of the values by size.
func (s Sweep) ascending() []int {
	order := make([]int, len(s.Values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(s.Values[i], s.Values[j]) })
	return order
}

// colors gives every member its own, in two families when the members split
// into a few whose value changes and a few others.
func (s Sweep) colors() []chart.Color {
	var count [2]int
	family := make([]int, len(s.Members))
	for n := range family {
		if len(s.Varied) > n && !s.Varied[n] {
			family[n] = 1
		}
		count[family[n]]++
	}
	grouped := min(count[0], count[1]) > 0 && max(count[0], count[1]) <= chart.Shades
	chosen := make([]chart.Color, len(s.Members))
	var used [2]int
	for n, f := range family {
		chosen[n] = chart.Series((n + 1) % listedMembers) // grey last
		if grouped {
			chosen[n] = chart.Shade(f, used[f])
			used[f]++
		}
	}
	return chosen
}

func panelTitle(mechanism string) string {
	if name := map[string]string{
		"EG": "equal shares", "LP": "by clean data", "LOO": "leave one out", "SV": "Shapley value",
	}[mechanism]; name != "" {
		return mechanism + " · " + name
	}
	return mechanism
}

// axisTitle says in words what a key is, and whose.
func (s Sweep) axisTitle() string {
	key := s.Key[strings.LastIndex(s.Key, ".")+1:]
	title := map[string]string{
		"noise":   "ε, share of wrong labels",
		"privacy": "μ, privacy sensitivity",
		"data":    "D, data points owned",
		"outside": "payoff outside",
	}[key]
	if !strings.HasPrefix(s.Key, "members[") || title == "" {
		return s.Key
	}
	var whose []string
	for n, v := range s.Varied {
		if v {
			whose = append(whose, s.Members[n])
		}
	}
	switch {
	case len(whose) == 0 || len(whose) > 5:
		return fmt.Sprintf("%s (%s)", title, s.Key)
	case len(whose) == len(s.Members):
		return title + ", of all members"
	case len(whose) == 1:
		return title + ", of " + whose[0]
	}
	last := len(whose) - 1
	return title + ", of " + strings.Join(whose[:last], ", ") + " and " + whose[last]
}

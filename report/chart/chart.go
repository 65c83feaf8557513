// Package chart draws the figures of a report. A chart is described once, as
// plain values, and drawn either as SVG whose colours follow the page it stands
// in (light, dark, print), or as a PNG, PDF or SVG file of its own.
package chart

import "slices"

// Chart is one figure: a legend over panels that share it.
type Chart struct {
	ID      string // short, becomes the file name
	Title   string
	Caption string // one or two sentences: what to see
	Columns int    // panels beside each other where there is room; default 2
	Panels  []Panel
	Shared  bool   // all panels have the same axes; a file labels them once
	Hollow  string // what hollow bars and marks mean, for the legend
}

func (c Chart) columns() int {
	if c.Columns == 0 {
		return 2
	}
	return max(1, c.Columns)
}

// PageColumns is how many panels stand beside each other on a page, where more
// than three could not be read: four are set two by two.
func (c Chart) PageColumns() int {
	switch n := c.columns(); {
	case n <= 3:
		return n
	case n%3 == 0:
		return 3
	}
	return 2
}

// Panel is one pair of axes.
type Panel struct {
	Title string
	Note  string // under the title, such as what a row of panels has in common
	X, Y  Axis
	Lines []Line
	Bars  []Bars
	Heat  *Heat
}

// Axis is one axis of a panel. Its range covers the data unless Fixed.
type Axis struct {
	Label      string
	Fixed      bool
	Min, Max   float64
	Percent    bool      // numbers are shares, shown as per cent
	Categories []string  // names instead of numbers; positions 0, 1, 2, …
	Values     []float64 // numbers at equal distances, as categories are
	FromZero   bool      // the range includes 0
	Counts     bool      // whole numbers only
}

// XY is one point, with an interval when Low and High differ. Hollow ones are
// drawn as an outline, and the chart says what that means.
type XY struct {
	X, Y, Low, High float64
	Hollow          bool
}

// Line is one series of points.
type Line struct {
	Name   string
	Color  Color
	Points []XY
	Width  float64 // default 2
	Dashed bool
	Marks  bool // points are marked; hollow ones always are
	Band   bool // the intervals as a pale area instead of whiskers
	Alone  bool // marks only, no line; of a Band the area only, in full colour
}

// Bars is one series of bars, grouped with the others at each category.
type Bars struct {
	Name   string
	Color  Color
	Values []XY // X is ignored
}

// Heat is a grid of verdicts. Cells[row][column] counts rows from the bottom.
type Heat struct {
	Columns, Rows []string
	Cells         [][]Cell
	MarkColumn    int // the cell to mark, as the setting used; -1 for none
	MarkRow       int
}

// Cell is one square of a Heat: a colour and a sign that tells the same
// without colour.
type Cell struct {
	Color Color
	Sign  string
}

// Color is a role; what it looks like depends on the page.
type Color string

const (
	Ink    Color = "ink"
	Muted  Color = "muted"
	Grid   Color = "grid"
	Paper  Color = "paper"
	Good   Color = "good"
	Middle Color = "middle"
	Bad    Color = "bad"
	Blank  Color = "blank"
)

// Series returns the colour of the i-th of a few things told apart.
func Series(i int) Color { return Color("s" + string(rune('0'+i%10))) }

// Shades is how many shades a family of colours has.
const Shades = 4

// Shade returns the i-th shade of blue (family 0) or of orange (family 1), for
// two groups told apart at a glance, and their members at a second.
func Shade(family, i int) Color {
	return Color(string(rune('a'+family%2)) + string(rune('0'+i%Shades)))
}

// Step returns the colour of step i of n in an order, such as noise rates from
// low to high.
func Step(i, n int) Color {
	if n < 2 {
		return "q0"
	}
	return Color("q" + string(rune('0'+(i*9+(n-1)/2)/(n-1))))
}

// Mechanism returns the colour a profit-sharing rule has in every figure.
func Mechanism(name string) Color {
	switch name {
	case "EG":
		return Series(0)
	case "LP":
		return Series(1)
	case "LOO":
		return Series(2)
	case "SV":
		return Series(3)
	}
	return Series(4)
}

// palette gives each role its colour on a light and on a dark page. The series
// can be told apart by colour-blind readers (Okabe and Ito's set, the dark ones
// lightened); the steps are viridis without its palest end.
var palette = []struct {
	role        Color
	light, dark string
}{
	{Ink, "#1d2733", "#e6ebf1"},
	{Muted, "#5b6878", "#9aa7b5"},
	{Grid, "#e2e7ec", "#2c3643"},
	{Paper, "#ffffff", "#141a21"},
	{Good, "#bfe3d2", "#1f5b47"},
	{Middle, "#fbe6b0", "#6a5517"},
	{Bad, "#f5c4b8", "#74331f"},
	{Blank, "#eef1f4", "#232c36"},
	{"s0", "#7d8a99", "#a3b0bf"},
	{"s1", "#0072b2", "#56b4e9"},
	{"s2", "#d55e00", "#ff8f50"},
	{"s3", "#009e73", "#2fc79b"},
	{"s4", "#aa4499", "#d987cc"},
	{"s5", "#b38600", "#e6bd43"},
	{"s6", "#56b4e9", "#2f86c9"},
	{"s7", "#1d2733", "#e6ebf1"},
	{"s8", "#7a4410", "#b98a5e"},
	{"s9", "#f2a7c3", "#f7c6da"},
	{"a0", "#0b3c6f", "#a9d5f7"},
	{"a1", "#2b7bba", "#5aa9e6"},
	{"a2", "#7db8e0", "#2b7bba"},
	{"a3", "#d0e3f2", "#1d4d78"},
	{"b0", "#8f3b00", "#ffdcab"},
	{"b1", "#e07b00", "#f7a945"},
	{"b2", "#f7b45a", "#cc7000"},
	{"b3", "#fbd9a8", "#8a4b08"},
	{"q0", "#46327e", "#8f7ad0"},
	{"q1", "#404688", "#7f86d8"},
	{"q2", "#365c8d", "#6d9ad6"},
	{"q3", "#2f7191", "#58a9cc"},
	{"q4", "#277f8e", "#45b3c0"},
	{"q5", "#1f978b", "#35c1b0"},
	{"q6", "#2fa378", "#3fcf9a"},
	{"q7", "#4fb069", "#66d98a"},
	{"q8", "#86b83b", "#a5df63"},
	{"q9", "#b9a80f", "#d9dc3c"},
}

// Legend lists the distinct names of a chart in order of first use.
func (c Chart) Legend() []Legend {
	var entries []Legend
	seen := map[string]bool{}
	add := func(e Legend) {
		if e.Name != "" && !seen[e.Name] {
			seen[e.Name] = true
			entries = append(entries, e)
		}
	}
	hollow := false
	for _, p := range c.Panels {
		for i, l := range p.Lines {
			add(Legend{Name: l.Name, Color: l.Color, Line: !l.Alone, Dashed: l.Dashed, Mark: l.Alone && !l.Band, shape: i})
			hollow = hollow || anyHollow(l.Points)
		}
		for _, b := range p.Bars {
			add(Legend{Name: b.Name, Color: b.Color})
			hollow = hollow || anyHollow(b.Values)
		}
	}
	if hollow {
		add(Legend{Name: c.Hollow, Color: Muted, Hollow: true})
	}
	return entries
}

func anyHollow(points []XY) bool {
	return slices.ContainsFunc(points, func(p XY) bool { return p.Hollow })
}

// Legend is one entry of a chart's legend.
type Legend struct {
	Name   string
	Color  Color
	Line   bool
	Dashed bool
	Hollow bool
	Mark   bool // a mark by itself, as in the panel

	shape int // of the mark
}

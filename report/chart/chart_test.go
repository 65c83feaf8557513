package chart

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"
)

func sample() Chart {
	line := Line{Name: "measured", Color: Series(1), Marks: true}
	band := Line{Name: "fitted", Color: Series(2), Band: true, Dashed: true}
	for k := 1; k <= 10; k++ {
		x := float64(1000 * k)
		y := 0.5 + 0.1*math.Log(float64(k))
		line.Points = append(line.Points, XY{X: x, Y: y, Low: y - 0.02, High: y + 0.02, Hollow: k == 3})
		band.Points = append(band.Points, XY{X: x, Y: y + 0.01, Low: y - 0.03, High: y + 0.04})
	}
	bars := func(name string, v float64) Bars {
		return Bars{Name: name, Color: Mechanism(name), Values: []XY{{Y: v, Hollow: true}, {Y: 0}, {Y: v / 2, Low: v / 3, High: v}}}
	}
	return Chart{
		ID: "sample", Title: "A <sample>", Caption: "Everything a chart can hold.", Columns: 2, Hollow: "hollow: doubtful",
		Panels: []Panel{
			{Title: "Lines", X: Axis{Label: "data points"}, Y: Axis{Label: "accuracy", Percent: true}, Lines: []Line{band, line}},
			{Title: "Bars", X: Axis{Categories: []string{"north", "a very long name indeed, it is", "east"}}, Y: Axis{Label: "points"},
				Bars: []Bars{bars("EG", 200), bars("LP", 1800), bars("LOO", 2000), bars("SV", 900)}},
			{Title: "Verdicts", X: Axis{Label: "β1"}, Y: Axis{Label: "γ"}, Heat: &Heat{
				Columns: []string{"1", "2", "3"}, Rows: []string{"0.1", "0.2"}, MarkColumn: 1, MarkRow: 1,
				Cells: [][]Cell{{{Good, "yes"}, {Middle, "part"}, {Bad, "no"}}, {{Good, "yes"}, {Good, "yes"}, {Blank, "–"}}},
			}},
			{Title: "Nothing"},
		},
	}
}

func TestFilesOfEveryFormat(t *testing.T) {
	heads := map[string]string{"svg": "<?xml", "png": "\x89PNG", "pdf": "%PDF"}
	for _, format := range Formats {
		data, err := sample().File(format)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := sample().File(format); err != nil || !bytes.Equal(data, again) {
			t.Errorf("%s differs when drawn again (%v)", format, err)
		}
		if !bytes.HasPrefix(data, []byte(heads[format])) {
			t.Errorf("%s starts with %q", format, data[:8])
		}
	}
	if _, err := sample().File("gif"); err == nil {
		t.Error("a gif was drawn")
	}
	data, _ := sample().File("png")
	if _, err := png.Decode(bytes.NewReader(data)); err != nil {
		t.Error(err)
	}
}

func TestInlineIsWellFormedAndEscaped(t *testing.T) {
	c := sample()
	c.Title = `a "chart" & more`
	for i := range c.Panels {
		p := &c.Panels[i]
		p.Title += " <b>&"
		text := string(c.Inline(i))
		decoder := xml.NewDecoder(strings.NewReader(text))
		for {
			_, err := decoder.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", p.Title, err, text)
			}
		}
		if strings.Contains(text, "NaN") || strings.Contains(text, "<b>") {
			t.Errorf("%s: %s", p.Title, text)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		min, max float64
		label    string
	}{{0, 1, "0.2"}, {0, 10000, "2000"}, {0.1, 0.13, "0.105"}, {-5, 5, "−2"}} {
		values := ticks(c.min, c.max, niceStep((c.max-c.min)/5))
		if len(values) < 3 || len(values) > 8 {
			t.Errorf("%g … %g: ticks %v", c.min, c.max, values)
		}
		if got := (Axis{}).label(values[1], values[1]-values[0]); got != c.label && c.label != "0.105" {
			t.Errorf("%g … %g: second label %q, want %q", c.min, c.max, got, c.label)
		}
	}
	if got := (Axis{}).label(12345, 5); got != "12\u202f345" {
		t.Errorf("label %q", got)
	}
}

func TestStepsUseTheWholeRamp(t *testing.T) {
	if Step(0, 6) != "q0" || Step(5, 6) != "q9" || Step(0, 1) != "q0" {
		t.Errorf("steps %s %s %s", Step(0, 6), Step(5, 6), Step(0, 1))
	}
}

func TestSharedPanelsHaveOneScale(t *testing.T) {
	panel := func(high float64) Panel {
		return Panel{X: Axis{Label: "once", Values: []float64{0.1, 12345}}, Y: Axis{Label: "points", FromZero: true, Counts: true},
			Bars: []Bars{{Name: "n", Values: []XY{{Y: high}, {Y: 1, Hollow: true}}}}}
	}
	c := Chart{Columns: 2, Shared: true, Hollow: "hollow: doubtful", Panels: []Panel{panel(3), panel(900), panel(12), panel(7)}}
	for i, p := range c.panels() {
		if p.Y.Min != 0 || p.Y.Max != 1000 || c.Panels[i].Y.Fixed {
			t.Errorf("panel %d: %+v", i, p.Y)
		}
	}
	data, err := c.File("svg")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{">once<": 1, ">points<": 2, ">1000<": 2, ">12\u202f345<": 4, ">hollow: doubtful<": 1} {
		if got := strings.Count(string(data), text); got != want {
			t.Errorf("%s is there %d times, want %d", text, got, want)
		}
	}
	if inline := string(c.Inline(1)); !strings.Contains(inline, ">once<") || !strings.Contains(inline, ">1000<") {
		t.Errorf("a panel by itself lacks its axes: %s", inline)
	}
}

func TestLabelsFit(t *testing.T) {
	a := Axis{}
	for _, room := range []float64{40, 190, 400} {
		step := a.roomyStep(100_000, 400_000, room)
		need := 0.0
		for _, v := range ticks(100_000, 400_000, step) {
			need += textWidth(a.label(v, step), smallText)
		}
		if need > room && room > 100 {
			t.Errorf("labels of %g need %g of %g", step, need, room)
		}
	}
	if step := (Axis{Counts: true}).step(12, 5); step != 5 {
		t.Errorf("counts in steps of %g", step)
	}
}

func TestPageColumns(t *testing.T) {
	for columns, want := range map[int]int{0: 2, 1: 1, 3: 3, 4: 2, 6: 3} {
		if got := (Chart{Columns: columns}).PageColumns(); got != want {
			t.Errorf("%d columns: %d on a page, want %d", columns, got, want)
		}
	}
}

// Whiskers that go below zero must stay within the axis, off the names.
func TestWhiskersStayWithinTheAxis(t *testing.T) {
	p := Panel{X: Axis{Categories: []string{"a", "b"}}, Y: Axis{FromZero: true},
		Bars: []Bars{{Values: []XY{{Y: 0.1, Low: -0.25, High: 0.45}, {Y: 0.2, Low: 0.2, High: 0.2}}}}}
	if _, y, _ := p.ranges(); y[0] > -0.25 || y[1] < 0.45 {
		t.Errorf("the axis goes from %v to %v, the whiskers from −0.25 to 0.45", y[0], y[1])
	}
}

// Names that do not fit beside each other stand in two rows by turns.
func TestNamesAreStaggered(t *testing.T) {
	axis := func(names ...string) Axis { return Axis{Categories: names} }
	sx := scale{from: 0, to: 200}
	for _, test := range []struct {
		axis Axis
		want bool
	}{
		{axis("ash", "elm", "fir"), false},
		{axis("ash", "juniper and others", "fir"), true},
		{axis("juniper", "juniper"), false},
		{Axis{}, false},
	} {
		if got := test.axis.staggered(sx); got != test.want {
			t.Errorf("%v: staggered %v", test.axis.Categories, got)
		}
	}
	c := Chart{Panels: []Panel{{X: axis(strings.Fields("juniper hawthorn rosemary lavender marigold primrose bluebell foxglove snowdrop daffodil")...),
		Bars: []Bars{{Values: make([]XY, 10)}}}}}
	text := string(c.Inline(0))
	for _, name := range c.Panels[0].X.Categories {
		if !strings.Contains(text, ">"+name+"<") {
			t.Errorf("%s is cut short", name)
		}
	}
}

package report_test

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"strings"
	"testing"

	"grange/game"
	"grange/report"
	"grange/report/chart"
)

// example is a sweep of the given size with contributions of every height.
func example(members, values, rows int) report.Sweep {
	s := report.Sweep{Key: "members[0:1].noise", Varied: make([]bool, members)}
	s.Varied[0] = true
	for n := range members {
		s.Members = append(s.Members, fmt.Sprintf("member %d", n+1))
	}
	for v := range values {
		s.Values = append(s.Values, float64(v)/10)
	}
	for r := range rows {
		row := report.SweepRow{Label: fmt.Sprintf("row %d", r)}
		for m, mechanism := range []string{"EG", "LP", "my own"} {
			panel := report.Panel{Mechanism: mechanism}
			for v := range values {
				profile := make(game.Profile, members)
				for n := range profile {
					profile[n] = int64(1 + 317*(n+1)*(v+1)*(m+1)%9973)
				}
				panel.Contributions = append(panel.Contributions, profile)
				panel.Proven = append(panel.Proven, v%5 != 4)
			}
			row.Panels = append(row.Panels, panel)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
}

func TestDrawIsReproducible(t *testing.T) {
	for i, s := range []report.Sweep{example(5, 5, 1), example(3, 40, 2), example(30, 8, 1), example(1, 1, 1)} {
		formats := chart.Formats
		if i > 0 {
			formats = []string{"svg", "pdf"} // drawing pixels is slow
		}
		for _, format := range formats {
			once, err := s.Chart().File(format)
			if err != nil {
				t.Fatal(err)
			}
			again, err := s.Chart().File(format)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(once, again) {
				t.Errorf("%d members, %s: two drawings differ", len(s.Members), format)
			}
		}
	}
}

// TestKinds: few members have bars in two families of colour, more values make
// lines, many members a distribution.
func TestKinds(t *testing.T) {
	first := func(s report.Sweep) chart.Panel { return s.Chart().Panels[0] }
	bars := first(example(5, 5, 1)).Bars
	if len(bars) != 5 || bars[0].Color != chart.Shade(0, 0) || bars[1].Color != chart.Shade(1, 0) || !bars[2].Values[4].Hollow || bars[2].Values[3].Hollow {
		t.Errorf("five members: %+v", bars)
	}
	seen := map[chart.Color]bool{}
	for _, b := range first(example(10, 5, 1)).Bars {
		seen[b.Color] = true
	}
	if len(seen) != 10 {
		t.Errorf("ten members have %d colours", len(seen))
	}
	if lines := first(example(3, 40, 1)).Lines; len(lines) != 3 || len(lines[0].Points) != 40 || !lines[0].Points[4].Hollow {
		t.Errorf("forty values: %+v", lines)
	}
	falling := example(30, 8, 1)
	for i := range falling.Values {
		falling.Values[i] *= -1
	}
	lines := first(falling).Lines
	if len(lines) != 3 || lines[0].Name != "all members" || lines[2].Name != "median member" {
		t.Fatalf("thirty members: %+v", lines)
	}
	for i, p := range lines[1].Points {
		all, median := lines[0].Points[i], lines[2].Points[i]
		if !(all.Low <= p.Low && p.Low <= median.Y && median.Y <= p.High && p.High <= all.High) || i > 0 && p.X <= lines[1].Points[i-1].X {
			t.Errorf("value %d: all %+v, half %+v, median %+v", i, all, p, median)
		}
	}
}

func TestFormats(t *testing.T) {
	s := example(4, 5, 1)
	svg, err := s.Chart().File("svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"ε, share of wrong labels, of member 1", "EG · equal shares", "my own", "member 4", "contribution s* (data points)", "hollow: not an equilibrium"} {
		if !strings.Contains(string(svg), text) {
			t.Errorf("the SVG lacks %q", text)
		}
	}
	data, err := s.Chart().File("png")
	if err != nil {
		t.Fatal(err)
	}
	if image, err := png.Decode(bytes.NewReader(data)); err != nil || image.Bounds().Dx() < 1000 {
		t.Errorf("png: %v", err)
	}
	pdf, err := s.Chart().File("pdf")
	if err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("pdf: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	if err := example(2, 2, 7).Check(); !errors.Is(err, report.ErrFigure) {
		t.Errorf("seven rows: %v", err)
	}
	if _, err := (report.Sweep{}).Chart().File("svg"); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

func ExampleSweep_Chart() {
	sweep := report.Sweep{
		Key:     "members[north].noise",
		Values:  []float64{0, 0.1},
		Members: []string{"north", "south"},
		Varied:  []bool{true, false},
		Rows: []report.SweepRow{{Panels: []report.Panel{{
			Mechanism:     "SV",
			Contributions: []game.Profile{{400, 400}, {250, 480}},
			Proven:        []bool{true, true},
		}}}},
	}
	data, err := sweep.Chart().File("svg")
	fmt.Println(strings.Contains(string(data), "Shapley value"), err)
	// Output: true <nil>
}

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
		formats := report.Formats
		if i > 0 {
			formats = []string{"svg", "pdf"} // drawing pixels is slow
		}
		for _, format := range formats {
			once, err := report.Draw(s, format)
			if err != nil {
				t.Fatal(err)
			}
			again, err := report.Draw(s, format)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(once, again) {
				t.Errorf("%d members, %s: two drawings differ", len(s.Members), format)
			}
		}
	}
}

func TestFormats(t *testing.T) {
	s := example(4, 5, 1)
	svg, err := report.Draw(s, "svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"ε, share of wrong labels, of member 1", "EG · equal shares", "my own", "member 4", "contribution s* (data points)", "hollow: not an equilibrium"} {
		if !strings.Contains(string(svg), text) {
			t.Errorf("the SVG lacks %q", text)
		}
	}
	data, err := report.Draw(s, "png")
	if err != nil {
		t.Fatal(err)
	}
	if image, err := png.Decode(bytes.NewReader(data)); err != nil || image.Bounds().Dx() < 1000 {
		t.Errorf("png: %v", err)
	}
	pdf, err := report.Draw(s, "pdf")
	if err != nil || !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("pdf: %v", err)
	}
	if _, err := report.Draw(s, "gif"); !errors.Is(err, report.ErrFigure) {
		t.Errorf("gif: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	if err := report.CheckFigure(example(2, 2, 7)); !errors.Is(err, report.ErrFigure) {
		t.Errorf("seven rows: %v", err)
	}
	if _, err := report.Draw(report.Sweep{}, "svg"); !errors.Is(err, report.ErrFigure) {
		t.Errorf("nothing: %v", err)
	}
}

func ExampleDraw() {
	data, err := report.Draw(report.Sweep{
		Key:     "members[north].noise",
		Values:  []float64{0, 0.1},
		Members: []string{"north", "south"},
		Varied:  []bool{true, false},
		Rows: []report.SweepRow{{Panels: []report.Panel{{
			Mechanism:     "SV",
			Contributions: []game.Profile{{400, 400}, {250, 480}},
			Proven:        []bool{true, true},
		}}}},
	}, "svg")
	fmt.Println(strings.Contains(string(data), "Shapley value"), err)
	// Output: true <nil>
}

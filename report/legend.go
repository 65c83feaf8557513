package report

import (
	"image/color"

	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legend is a strip of colour swatches with names above the panels, in as many
// lines as they need.
type legend struct {
	names   []string
	colours []color.NRGBA
	hollow  bool // explain hollow marks
	style   text.Style
}

func newLegend(s Sweep) *legend {
	l := &legend{names: s.Members, colours: colours(len(s.Members), s.Varied), style: style(labelSize-0.5, false, ink)}
	if len(s.Members) > listedMembers {
		l.names, l.colours = bandNames, bandColours
	}
	l.style.YAlign = draw.YCenter
	for _, row := range s.Rows {
		for _, p := range row.Panels {
			for _, proven := range p.Proven {
				l.hollow = l.hollow || !proven
			}
		}
	}
	return l
}

const (
	swatch    = 0.13 * vg.Inch
	swatchGap = 0.06 * vg.Inch
	entryGap  = 0.26 * vg.Inch
)

func (l *legend) entries() []string {
	if l.hollow {
		return append(append([]string{}, l.names...), "hollow: not an equilibrium")
	}
	return l.names
}

// layout breaks the entries into lines that fit the width.
func (l *legend) layout(width vg.Length) (lines [][]int, widths []vg.Length) {
	used := vg.Length(0)
	for i, name := range l.entries() {
		w := swatch + swatchGap + l.style.Width(name)
		if len(lines) == 0 || used+entryGap+w > width-0.4*vg.Inch {
			lines, widths = append(lines, nil), append(widths, 0)
			used = 0
		} else {
			used += entryGap
		}
		last := len(lines) - 1
		lines[last] = append(lines[last], i)
		used += w
		widths[last] = used
	}
	return lines, widths
}

func (l *legend) lines(width vg.Length) int {
	lines, _ := l.layout(width)
	return len(lines)
}

func (l *legend) draw(c draw.Canvas) {
	names := l.entries()
	lines, widths := l.layout(c.Max.X - c.Min.X)
	for k, line := range lines {
		x := (c.Min.X + c.Max.X - widths[k]) / 2
		y := c.Max.Y - legendGap/2 - legendLine*(vg.Length(k)+0.5)
		for _, i := range line {
			box := vg.Rectangle{Min: vg.Point{X: x, Y: y - swatch/2}, Max: vg.Point{X: x + swatch, Y: y + swatch/2}}
			if i < len(l.names) {
				c.SetColor(l.colours[i])
				c.Fill(box.Path())
			} else {
				c.SetLineStyle(draw.LineStyle{Color: muted, Width: vg.Points(0.8)})
				c.Stroke(box.Path())
			}
			c.FillText(l.style, vg.Point{X: x + swatch + swatchGap, Y: y}, names[i])
			x += swatch + swatchGap + l.style.Width(names[i]) + entryGap
		}
	}
}

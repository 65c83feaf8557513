package report

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// gridLines are horizontal lines at the labelled ticks.
type gridLines struct{}

func (gridLines) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Value > p.Y.Min {
			c.StrokeLine2(draw.LineStyle{Color: grid, Width: vg.Points(0.6)}, c.Min.X, y(t.Value), c.Max.X, y(t.Value))
		}
	}
}

// bars are one group per value and one bar per member. A member that gives
// almost nothing keeps a visible sliver.
type bars struct {
	panel   Panel
	colours []color.NRGBA
}

func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	const share = 0.82 // of the distance between two groups
	for v, s := range b.panel.Contributions {
		slot := share / float64(len(s))
		for n, given := range s {
			left := float64(v) - share/2 + slot*float64(n)
			lo := vg.Point{X: x(left + 0.04*slot), Y: y(0)}
			hi := vg.Point{X: x(left + 0.96*slot), Y: max(y(float64(given)), y(0)+vg.Points(0.9))}
			box := vg.Rectangle{Min: lo, Max: hi}
			if b.panel.Proven[v] {
				c.SetColor(b.colours[n])
				c.Fill(box.Path())
				continue
			}
			inset := vg.Points(0.4)
			box.Min.X, box.Max.X, box.Max.Y = box.Min.X+inset, box.Max.X-inset, box.Max.Y-inset
			c.SetLineStyle(draw.LineStyle{Color: b.colours[n], Width: vg.Points(0.8)})
			c.Stroke(box.Path())
		}
	}
}

// lines are one per member, for sweeps too fine for bars.
type lines struct {
	values  []float64
	panel   Panel
	colours []color.NRGBA
}

func (l lines) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for n := range l.panel.Contributions[0] {
		var points []vg.Point
		for v, s := range l.panel.Contributions {
			points = append(points, vg.Point{X: x(l.values[v]), Y: y(float64(s[n]))})
		}
		sorted := slices.Clone(points)
		slices.SortStableFunc(sorted, func(a, b vg.Point) int { return int(math.Copysign(1, float64(a.X-b.X))) })
		// Members with the same contributions lie on each other: later ones are thinner.
		width := vg.Points(2.6 - 1.8*float64(n)/float64(max(1, len(l.colours)-1)))
		c.StrokeLines(draw.LineStyle{Color: l.colours[n], Width: width}, sorted)
		for v, at := range points {
			shape := draw.GlyphStyle{Color: l.colours[n], Radius: vg.Points(1.8), Shape: draw.CircleGlyph{}}
			if !l.panel.Proven[v] {
				shape.Shape = draw.RingGlyph{}
			}
			if len(points) <= 30 || !l.panel.Proven[v] {
				c.DrawGlyph(shape, at)
			}
		}
	}
}

// band shows how many members' contributions are spread: smallest to largest
// in light, the middle half darker, the median as a line.
type band struct {
	values []float64
	panel  Panel
}

func (b band) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	order := make([]int, len(b.values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case b.values[i] < b.values[j]:
			return -1
		case b.values[i] > b.values[j]:
			return 1
		}
		return 0
	})
	at := func(q float64) []vg.Point {
		var line []vg.Point
		for _, v := range order {
			s := slices.Clone(b.panel.Contributions[v])
			slices.Sort(s)
			given := s[int(q*float64(len(s)-1))]
			line = append(line, vg.Point{X: x(b.values[v]), Y: y(float64(given))})
		}
		return line
	}
	fill := func(low, high []vg.Point, shade color.Color) {
		area := slices.Clone(low)
		for _, p := range slices.Backward(high) {
			area = append(area, p)
		}
		c.FillPolygon(shade, area)
	}
	fill(at(0), at(1), bandColours[0])
	fill(at(0.25), at(0.75), bandColours[1])
	c.StrokeLines(draw.LineStyle{Color: bandColours[2], Width: vg.Points(1.6)}, at(0.5))
}

var (
	bandColours = []color.NRGBA{rgb(0xd6e6f3), rgb(0x8fbfe0), rgb(0x0b3c6f)}
	bandNames   = []string{"all members", "middle half", "median member"}
)

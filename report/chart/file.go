package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"strconv"
	"time"

	"codeberg.org/go-pdf/fpdf"
	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // png
	_ "gonum.org/v1/plot/vg/vgpdf" // pdf
	_ "gonum.org/v1/plot/vg/vgsvg" // svg
)

// init gives every PDF the same date, so that the same chart is the same file.
func init() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
}

// Formats are the kinds of files a chart can be written as.
var Formats = []string{"svg", "png", "pdf"}

// unit is the size of one drawing unit in a file.
const unit = vg.Length(0.75)

// File draws the whole chart, title and legend included, as the contents of a
// file of one of Formats. Files are drawn on white.
func (c Chart) File(format string) ([]byte, error) {
	columns := max(1, c.Columns)
	if c.Columns == 0 {
		columns = 2
	}
	columns = min(columns, max(1, len(c.Panels)))
	const gap, margin = 26.0, 18.0
	panel := 0.0
	for _, p := range c.Panels {
		panel = max(panel, p.width())
	}
	width := float64(columns)*(panel+gap) - gap + 2*margin
	rows := c.legendRows(width - 2*margin)
	top := margin + 30 + 20*float64(len(rows))
	height := top
	var tops []float64
	for i := 0; i < len(c.Panels); i += columns {
		tops = append(tops, height)
		tallest := 0.0
		for _, p := range c.Panels[i:min(i+columns, len(c.Panels))] {
			tallest = max(tallest, p.height())
		}
		height += tallest + 10
	}
	height += margin / 2

	canvas, err := draw.NewFormattedCanvas(vg.Length(width)*unit, vg.Length(height)*unit, format)
	if err != nil {
		return nil, fmt.Errorf("chart: %w", err)
	}
	v := newVGCanvas(canvas, height)
	v.outlines = format == "pdf"
	v.rect(0, 0, width, height, Paper)
	v.text(margin, margin+12, c.Title, 16, start, Ink, true)
	v.legend(rows, margin, margin+34)
	for i, p := range c.Panels {
		p.draw(v, margin+float64(i%columns)*(panel+gap), tops[i/columns])
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("chart: write %s: %w", format, err)
	}
	return out.Bytes(), nil
}

func (c Chart) legendRows(room float64) [][]entry {
	var rows [][]entry
	used := room
	for _, e := range c.legend() {
		need := textWidth(e.name, smallText) + 48
		if used+need > room {
			rows = append(rows, nil)
			used = 0
		}
		used += need
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
	}
	return rows
}

// vgCanvas draws on one of gonum/plot's canvases, whose y grows upwards.
type vgCanvas struct {
	vg.Canvas
	height float64
	fonts  *font.Cache
	colors map[Color]color.Color
	// outlines is for PDF. It draws text as shapes: gonum's PDF canvas knows
	// only the characters of one code page, without Greek letters.
	outlines bool
}

func newVGCanvas(c vg.Canvas, height float64) *vgCanvas {
	colors := map[Color]color.Color{}
	for _, p := range palette {
		value, err := strconv.ParseUint(p.light[1:], 16, 32)
		if err != nil {
			panic("chart: bad colour " + p.light)
		}
		colors[p.role] = color.NRGBA{R: uint8(value >> 16), G: uint8(value >> 8), B: uint8(value), A: 255}
	}
	return &vgCanvas{Canvas: c, height: height, fonts: font.NewCache(liberation.Collection()), colors: colors}
}

func (v *vgCanvas) at(x, y float64) vg.Point {
	return vg.Point{X: vg.Length(x) * unit, Y: vg.Length(v.height-y) * unit}
}

func (v *vgCanvas) outline(points []point, closed bool) vg.Path {
	var path vg.Path
	for i, p := range points {
		if i == 0 {
			path.Move(v.at(p.x, p.y))
		} else {
			path.Line(v.at(p.x, p.y))
		}
	}
	if closed {
		path.Close()
	}
	return path
}

func (v *vgCanvas) path(points []point, c Color, width float64, dashed bool) {
	v.SetColor(v.colors[c])
	v.SetLineWidth(vg.Length(width) * unit)
	if dashed {
		v.SetLineDash([]vg.Length{6 * unit, 4 * unit}, 0)
	} else {
		v.SetLineDash(nil, 0)
	}
	v.Stroke(v.outline(points, false))
}

func (v *vgCanvas) area(points []point, c Color, opacity float64) {
	solid := v.colors[c].(color.NRGBA)
	if v.outlines { // gonum's PDF canvas loses the hue of translucent colours
		blend := func(c uint8) uint8 { return uint8(255 - opacity*float64(255-c)) }
		solid = color.NRGBA{R: blend(solid.R), G: blend(solid.G), B: blend(solid.B), A: 255}
	} else {
		solid.A = uint8(255 * opacity)
	}
	v.SetColor(solid)
	v.Fill(v.outline(points, true))
}

func (v *vgCanvas) rect(x, y, w, h float64, c Color) {
	v.SetColor(v.colors[c])
	v.Fill(v.outline([]point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, true))
}

func (v *vgCanvas) mark(x, y float64, shape int, c Color) {
	v.SetColor(v.colors[c])
	if shape%4 != 0 {
		v.Fill(v.outline(markShape(x, y, shape), true))
		return
	}
	var path vg.Path
	center := v.at(x, y)
	path.Move(vg.Point{X: center.X + 3.6*unit, Y: center.Y})
	path.Arc(center, 3.6*unit, 0, 6.283185307179586)
	path.Close()
	v.Fill(path)
}

func (v *vgCanvas) text(x, y float64, s string, size float64, at anchor, c Color, bold bool) {
	if s == "" {
		return
	}
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: font.Length(size) * unit}
	if bold {
		f.Weight = xfont.WeightBold
	}
	face := v.fonts.Lookup(f, f.Size)
	p := v.at(x, y)
	switch width := face.Width(s); at {
	case middle:
		p.X -= width / 2
	case end:
		p.X -= width
	}
	v.SetColor(v.colors[c])
	if v.outlines {
		v.fillOutlines(face, p, s)
		return
	}
	v.FillString(face, p, s)
}

// fillOutlines draws text as filled shapes.
func (v *vgCanvas) fillOutlines(face font.Face, at vg.Point, s string) {
	var buffer sfnt.Buffer
	const resolution = 1000 // font units are scaled to this many per em
	em := fixed.I(resolution)
	size := face.Font.Size / resolution
	place := func(p fixed.Point26_6) vg.Point {
		return vg.Point{X: at.X + size*vg.Length(p.X)/64, Y: at.Y - size*vg.Length(p.Y)/64}
	}
	for _, r := range s {
		index, err := face.Face.GlyphIndex(&buffer, r)
		if err != nil {
			continue
		}
		segments, err := face.Face.LoadGlyph(&buffer, index, em, nil)
		if err != nil {
			continue
		}
		var path vg.Path
		for _, segment := range segments {
			a := segment.Args
			switch segment.Op {
			case sfnt.SegmentOpMoveTo:
				path.Move(place(a[0]))
			case sfnt.SegmentOpLineTo:
				path.Line(place(a[0]))
			case sfnt.SegmentOpQuadTo:
				path.QuadTo(place(a[0]), place(a[1]))
			case sfnt.SegmentOpCubeTo:
				path.CubeTo(place(a[0]), place(a[1]), place(a[2]))
			}
		}
		if len(path) > 0 { // not a space
			path.Close()
			v.Fill(path)
		}
		if advance, err := face.Face.GlyphAdvance(&buffer, index, em, xfont.HintingNone); err == nil {
			at.X += size * vg.Length(advance) / 64
		}
	}
}

func (v *vgCanvas) legend(rows [][]entry, x0, y float64) {
	for _, row := range rows {
		x := x0
		for _, e := range row {
			if e.line {
				v.path([]point{{x, y - 4}, {x + 20, y - 4}}, e.color, 2.2, e.dashed)
			} else {
				v.rect(x+4, y-9, 11, 11, e.color)
			}
			v.text(x+26, y, e.name, smallText, start, Ink, false)
			x += textWidth(e.name, smallText) + 48
		}
		y += 20
	}
}

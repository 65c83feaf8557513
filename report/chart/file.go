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
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// init gives every PDF the same date, so that the same chart is the same file.
func init() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
}

// Formats are the kinds of files a chart can be written as.
var Formats = []string{"svg", "png", "pdf"}

// unit is the size of one drawing unit in a file.
const unit = vg.Length(0.75)

// resolution of a PNG, in dots per inch: fine enough for print.
const resolution = 220

// newCanvas returns a canvas of a size in drawing units.
func newCanvas(format string, width, height float64) (vg.CanvasWriterTo, error) {
	w, h := vg.Length(width)*unit, vg.Length(height)*unit
	switch format {
	case "svg":
		return vgsvg.New(w, h), nil
	case "png":
		return vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(w, h), vgimg.UseDPI(resolution))}, nil
	case "pdf":
		return vgpdf.New(w, h), nil
	}
	return nil, fmt.Errorf("chart: format %q, want svg, png or pdf", format)
}

// File draws the whole chart, title and legend included, as the contents of a
// file of one of Formats. Files are drawn on white.
func (c Chart) File(format string) ([]byte, error) {
	const margin = 18.0
	frames, right, bottom := c.frames()
	width := right + 2*margin
	rows := c.legendRows(width - 2*margin)
	top := margin + 20*float64(len(rows))
	if c.Title != "" {
		top += 30
	}
	height := top + bottom + margin/2

	canvas, err := newCanvas(format, width, height)
	if err != nil {
		return nil, err
	}
	v := newVGCanvas(canvas, height)
	v.outlines = format == "pdf"
	v.rect(0, 0, width, height, Paper)
	v.text(margin, margin+12, c.Title, 16, start, Ink, true)
	v.legend(rows, margin, top-20*float64(len(rows))+4)
	for i, p := range c.panels() {
		f := frames[i]
		f.x, f.y = f.x+margin, f.y+top
		if c.Shared {
			p.X.Label = ""
		}
		p.draw(v, f)
	}
	if c.Shared && len(c.Panels) > 0 {
		v.text(width/2, height-margin, c.Panels[0].X.Label, smallText+0.5, middle, Ink, false)
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("chart: write %s: %w", format, err)
	}
	// Readers without the font take their own sans-serif.
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"),
		[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
}

// frames places the panels in rows, and returns how far they reach.
func (c Chart) frames() (frames []frame, right, bottom float64) {
	columns := min(c.columns(), max(1, len(c.Panels)))
	width, gap, gutter := c.panelWidth(), 26.0, 0.0
	if c.Shared && len(c.Panels) > 0 {
		title := textWidth(c.Panels[0].X.Label, smallText+0.5)
		width, gap, gutter = max(sharedWidth, title/float64(columns)), 14, c.panels()[0].gutter()
	}
	for i := 0; i < len(c.Panels); i += columns {
		tallest, x := 0.0, 0.0
		for k, p := range c.Panels[i:min(i+columns, len(c.Panels))] {
			f := frame{x: x, y: bottom, width: width, height: p.heightAt(width), beside: c.Shared && k > 0}
			if k == 0 {
				f.width += gutter
			}
			frames = append(frames, f)
			x += f.width + gap
			tallest = max(tallest, f.height)
		}
		right = max(right, x-gap)
		bottom += tallest + 10
	}
	if c.Shared { // the title of the first axis, once
		bottom += 22
	}
	return frames, right, bottom
}

func (c Chart) legendRows(room float64) [][]Legend {
	var rows [][]Legend
	used := room
	for _, e := range c.Legend() {
		need := textWidth(e.Name, smallText) + 48
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
	const units = 1000 // per em
	em := fixed.I(units)
	size := face.Font.Size / units
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

func (v *vgCanvas) legend(rows [][]Legend, x0, y float64) {
	for _, row := range rows {
		x := x0
		for _, e := range row {
			switch {
			case e.Line:
				v.path([]point{{x, y - 4}, {x + 20, y - 4}}, e.Color, 2.2, e.Dashed)
			case e.Mark:
				v.mark(x+9.5, y-3.5, e.shape, e.Color)
			case e.Hollow:
				v.path([]point{{x + 4.5, y - 8.5}, {x + 14.5, y - 8.5}, {x + 14.5, y + 1.5}, {x + 4.5, y + 1.5}, {x + 4.5, y - 8.5}}, e.Color, 1, false)
			default:
				v.rect(x+4, y-9, 11, 11, e.Color)
			}
			v.text(x+26, y, e.Name, smallText, start, Ink, false)
			x += textWidth(e.Name, smallText) + 48
		}
		y += 20
	}
}

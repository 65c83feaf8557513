package report

import (
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// outlined draws text as the outlines of its letters. The PDF writer knows
// only the letters of Western Europe, and ε and μ are not among them.
type outlined struct{ vg.Canvas }

// FillString draws the text at pt.
func (o outlined) FillString(face font.Face, pt vg.Point, str string) {
	var buffer sfnt.Buffer
	em := face.Face.UnitsPerEm()
	ppem := fixed.I(int(em))
	scale := face.Font.Size / vg.Length(em)
	for _, letter := range str {
		glyph, err := face.Face.GlyphIndex(&buffer, letter)
		if err != nil {
			continue
		}
		segments, err := face.Face.LoadGlyph(&buffer, glyph, ppem, nil)
		if err == nil {
			o.Fill(outline(segments, pt, scale))
		}
		if advance, err := face.Face.GlyphAdvance(&buffer, glyph, ppem, 0); err == nil {
			pt.X += scale * units(advance)
		}
	}
}

func units(x fixed.Int26_6) vg.Length { return vg.Length(x) / 64 }

// outline turns a glyph, whose y axis points down, into a path at pt.
func outline(segments sfnt.Segments, pt vg.Point, scale vg.Length) vg.Path {
	at := func(p fixed.Point26_6) vg.Point {
		return vg.Point{X: pt.X + scale*units(p.X), Y: pt.Y - scale*units(p.Y)}
	}
	var path vg.Path
	for _, s := range segments {
		switch s.Op {
		case sfnt.SegmentOpMoveTo:
			if len(path) > 0 {
				path.Close()
			}
			path.Move(at(s.Args[0]))
		case sfnt.SegmentOpLineTo:
			path.Line(at(s.Args[0]))
		case sfnt.SegmentOpQuadTo:
			path.QuadTo(at(s.Args[0]), at(s.Args[1]))
		case sfnt.SegmentOpCubeTo:
			path.CubeTo(at(s.Args[0]), at(s.Args[1]), at(s.Args[2]))
		}
	}
	path.Close()
	return path
}

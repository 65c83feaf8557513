// Package report draws Grange's results. Figures come out as SVG, PNG or PDF,
// in one house style: sans-serif type, colours that colour-blind readers can
// tell apart, shared axes. The same input gives the same bytes.
package report

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"sync"
	"time"

	"codeberg.org/go-pdf/fpdf"
	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgpdf"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ErrFigure is returned for data that cannot be drawn.
var ErrFigure = errors.New("report: cannot draw")

// Formats are the file formats that can be drawn.
var Formats = []string{"svg", "png", "pdf"}

// pngResolution is fine enough for print.
const pngResolution = 220

var (
	ink   = color.NRGBA{R: 0x22, G: 0x22, B: 0x22, A: 0xff}
	muted = color.NRGBA{R: 0x66, G: 0x66, B: 0x66, A: 0xff}
	grid  = color.NRGBA{R: 0xe4, G: 0xe4, B: 0xe4, A: 0xff}
	white = color.NRGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
)

// sans is the house type at a size in points.
func sans(size float64, bold bool) font.Font {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
	if bold {
		f.Weight = xfont.WeightBold
	}
	return f
}

func style(size float64, bold bool, c color.Color) text.Style {
	return text.Style{Font: sans(size, bold), Color: c, Handler: plot.DefaultTextHandler}
}

// The PDF library puts the time into its files unless told another.
var fixPDF = sync.OnceFunc(func() {
	fpdf.SetDefaultCreationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultModificationDate(time.Unix(0, 0).UTC())
	fpdf.SetDefaultCatalogSort(true)
})

// render draws on a white canvas of the given size and returns the file.
func render(format string, width, height vg.Length, drawing func(draw.Canvas)) ([]byte, error) {
	var out bytes.Buffer
	switch format {
	case "svg":
		c := vgsvg.New(width, height)
		drawing(onWhite(c, width, height))
		if _, err := c.WriteTo(&out); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFigure, err)
		}
		// Readers without the font take their own sans-serif.
		return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"),
			[]byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")), nil
	case "png":
		c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngResolution))
		drawing(onWhite(c, width, height))
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		if err := encoder.Encode(&out, c.Image()); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFigure, err)
		}
	case "pdf":
		fixPDF()
		c := vgpdf.New(width, height)
		drawing(onWhite(outlined{c}, width, height))
		if _, err := c.WriteTo(&out); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFigure, err)
		}
	default:
		return nil, fmt.Errorf("%w: format %q, want svg, png or pdf", ErrFigure, format)
	}
	return out.Bytes(), nil
}

func onWhite(c vg.Canvas, width, height vg.Length) draw.Canvas {
	dc := draw.NewCanvas(c, width, height)
	dc.SetColor(white)
	dc.Fill(dc.Rectangle.Path())
	return dc
}

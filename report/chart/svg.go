package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// CSS declares the colours of all charts on a page: light, and dark where the
// reader prefers it. Printing is always light.
func CSS() template.CSS {
	var light, dark, rules strings.Builder
	for _, p := range palette {
		fmt.Fprintf(&light, "--%s:%s;", p.role, p.light)
		fmt.Fprintf(&dark, "--%s:%s;", p.role, p.dark)
		fmt.Fprintf(&rules, ".f-%s{fill:var(--%s)}.l-%s{stroke:var(--%s);fill:none}", p.role, p.role, p.role, p.role)
		fmt.Fprintf(&rules, ".b-%s{background:var(--%s);border-color:var(--%s)}", p.role, p.role, p.role)
	}
	return template.CSS(fmt.Sprintf(":root{%s}\n@media screen and (prefers-color-scheme:dark){:root{%s}}\n%s\n",
		light.String(), dark.String(), rules.String()))
}

// Inline returns the mark of a legend as an SVG element, for an entry with Mark.
func (e Legend) Inline() template.HTML {
	c := &svgCanvas{}
	c.mark(6, 6, e.shape, e.Color)
	return template.HTML(`<svg aria-hidden="true" viewBox="0 0 12 12">` + c.String() + `</svg>`)
}

// Inline draws the i-th panel as an SVG element whose colours are those
// declared by CSS, with a description for readers who cannot see it.
func (c Chart) Inline(i int) template.HTML {
	p := c.panels()[i]
	description := c.Title
	for _, part := range []string{p.Title, p.Note} {
		if part != "" {
			description += ": " + part
		}
	}
	var canvas svgCanvas
	f := frame{width: c.panelWidth(), height: p.heightAt(c.panelWidth())}
	p.draw(&canvas, f)
	return template.HTML(fmt.Sprintf(`<svg viewBox="0 0 %s %s" role="img" aria-label="%s">%s</svg>`,
		number(f.width), number(f.height), html.EscapeString(description+". "+c.Caption), canvas.String()))
}

type svgCanvas struct{ strings.Builder }

func number(v float64) string {
	return strconv.FormatFloat(float64(int64(v*10+0.5*sign(v)))/10, 'f', -1, 64)
}

func sign(v float64) float64 {
	if v < 0 {
		return -1
	}
	return 1
}

func coordinates(points []point) string {
	var b strings.Builder
	for i, p := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(number(p.x) + "," + number(p.y))
	}
	return b.String()
}

func (c *svgCanvas) path(points []point, color Color, width float64, dashed bool) {
	dash := ""
	if dashed {
		dash = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(&c.Builder, `<polyline class="l-%s" stroke-width="%s" stroke-linejoin="round"%s points="%s"/>`, color, number(width), dash, coordinates(points))
}

func (c *svgCanvas) area(points []point, color Color, opacity float64) {
	fmt.Fprintf(&c.Builder, `<polygon class="f-%s" fill-opacity="%.2g" points="%s"/>`, color, opacity, coordinates(points))
}

func (c *svgCanvas) rect(x, y, w, h float64, color Color) {
	fmt.Fprintf(&c.Builder, `<rect class="f-%s" x="%s" y="%s" width="%s" height="%s" rx="1"/>`, color, number(x), number(y), number(w), number(h))
}

func (c *svgCanvas) mark(x, y float64, shape int, color Color) {
	if shape%4 == 0 {
		fmt.Fprintf(&c.Builder, `<circle class="f-%s" cx="%s" cy="%s" r="3.6"/>`, color, number(x), number(y))
		return
	}
	fmt.Fprintf(&c.Builder, `<polygon class="f-%s" points="%s"/>`, color, coordinates(markShape(x, y, shape)))
}

// markShape returns the outline of a circle, a square, a triangle or a diamond.
func markShape(x, y float64, shape int) []point {
	switch shape % 4 {
	case 0:
		var circle []point
		for k := range 24 {
			sin, cos := math.Sincos(float64(k) * math.Pi / 12)
			circle = append(circle, point{x + 3.6*cos, y + 3.6*sin})
		}
		return circle
	case 1:
		return []point{{x - 3.3, y - 3.3}, {x + 3.3, y - 3.3}, {x + 3.3, y + 3.3}, {x - 3.3, y + 3.3}}
	case 2:
		return []point{{x, y - 4.4}, {x + 4.1, y + 3.1}, {x - 4.1, y + 3.1}}
	}
	return []point{{x, y - 4.6}, {x + 4.6, y}, {x, y + 4.6}, {x - 4.6, y}}
}

func (c *svgCanvas) text(x, y float64, text string, size float64, at anchor, color Color, bold bool) {
	weight := ""
	if bold {
		weight = ` font-weight="600"`
	}
	fmt.Fprintf(&c.Builder, `<text class="f-%s" x="%s" y="%s" font-size="%s" text-anchor="%s"%s>%s</text>`,
		color, number(x), number(y), number(size), at, weight, html.EscapeString(text))
}

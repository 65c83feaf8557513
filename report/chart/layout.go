package chart

import (
	"math"
	"slices"
)

// canvas is what a panel is drawn on; y grows downwards.
type canvas interface {
	path(points []point, color Color, width float64, dashed bool)
	area(points []point, color Color, opacity float64)
	rect(x, y, w, h float64, color Color)
	mark(x, y float64, shape int, color Color)
	text(x, y float64, text string, size float64, anchor anchor, color Color, bold bool)
}

type point struct{ x, y float64 }

type anchor string

const (
	start  anchor = "start"
	middle anchor = "middle"
	end    anchor = "end"
)

// Sizes of a panel, in the units of its drawing.
const (
	panelWidth  = 440.0
	narrowWidth = 330.0 // where more than two stand beside each other
	sharedWidth = 214.0 // where they share their axes
	panelHeight = 285.0
	smallText   = 12.5
	titleText   = 14.0
)

func (c Chart) panelWidth() float64 {
	if c.PageColumns() > 2 {
		return narrowWidth
	}
	return panelWidth
}

// heightAt is the height of a panel of some width.
func (p Panel) heightAt(width float64) float64 {
	if p.Heat != nil {
		return 74 + 25*float64(len(p.Heat.Rows))
	}
	if width <= narrowWidth {
		return 0.87 * panelHeight
	}
	return panelHeight
}

// panels returns the panels, with the same second axis where it is shared.
func (c Chart) panels() []Panel {
	if !c.Shared || len(c.Panels) == 0 {
		return c.Panels
	}
	all := Panel{Y: c.Panels[0].Y}
	for _, p := range c.Panels {
		all.Lines = append(all.Lines, p.Lines...)
		all.Bars = append(all.Bars, p.Bars...)
	}
	_, y, _ := all.ranges()
	panels := slices.Clone(c.Panels)
	for i := range panels {
		panels[i].Y.Fixed, panels[i].Y.Min, panels[i].Y.Max = true, y[0], y[1]
	}
	return panels
}

// frame is where a panel is drawn.
type frame struct {
	x, y, width, height float64
	beside              bool // the panel to the left says what the second axis is
}

// draw draws the panel.
func (p Panel) draw(c canvas, f frame) {
	x0 := f.x
	if p.Heat != nil {
		p.drawHeat(c, f)
		return
	}
	rx, ry, step := p.ranges()
	yTicks := ticks(ry[0], ry[1], step)
	left := 0.0
	if !f.beside {
		left = p.gutter()
	}
	top := f.y + 12
	margin := x0
	if f.beside {
		margin += 8 // where its lines begin
	}
	if p.Title != "" {
		c.text(margin, f.y+15, p.Title, titleText, start, Ink, true)
		top += 22
	}
	if p.Note != "" {
		if !f.beside || textWidth(p.Note, smallText) < f.width {
			c.text(margin, top+1, p.Note, smallText, start, Ink, false)
		}
		top += 17
	}
	if p.Y.Label != "" {
		if !f.beside {
			c.text(x0, top+3, p.Y.Label, smallText, start, Muted, false)
		}
		top += 15
	}
	bottom := f.y + f.height - 42
	if p.X.Label == "" {
		bottom += 18
	}
	sx := scale{rx[0], rx[1], x0 + left + 12, x0 + f.width - 12}
	if p.X.staggered(sx) {
		bottom -= rowHeight
	}
	sy := scale{ry[0], ry[1], bottom, top + 6}

	for _, v := range yTicks {
		color := Grid
		if v == ry[0] || v == 0 {
			color = Muted
		}
		c.path([]point{{sx.from - 4, sy.at(v)}, {sx.to + 4, sy.at(v)}}, color, 1, false)
		if !f.beside {
			c.text(sx.from-9, sy.at(v)+4, p.Y.label(v, step), smallText, end, Muted, false)
		}
	}
	p.drawX(c, sx, bottom)
	p.drawBars(c, sx, sy)
	for i, l := range p.Lines {
		l.draw(c, sx, sy, i)
	}
}

// gutter is the room that the numbers of the second axis take.
func (p Panel) gutter() float64 {
	_, y, step := p.ranges()
	widest := 0.0
	for _, v := range ticks(y[0], y[1], step) {
		widest = max(widest, textWidth(p.Y.label(v, step), smallText))
	}
	return widest
}

// rowHeight is how far the second row of names stands below the first.
const rowHeight = 14.0

// room is how wide one category is.
func (a Axis) room(sx scale) float64 { return (sx.to - sx.from) / float64(len(a.Categories)) }

// staggered reports whether the names stand in two rows by turns, because in
// one of them would not fit.
func (a Axis) staggered(sx scale) bool {
	return slices.ContainsFunc(a.Categories, func(name string) bool { return textWidth(name, smallText) > a.room(sx)-4 })
}

func (p Panel) drawX(c canvas, sx scale, bottom float64) {
	below := 0.0
	switch {
	case len(p.X.Categories) > 0:
		room, rows := p.X.room(sx), 1
		if p.X.staggered(sx) {
			room, rows = 2*room, 2
			below = rowHeight
		}
		for i, name := range p.X.Categories {
			c.text(sx.at(float64(i)), bottom+17+rowHeight*float64(i%rows), shorten(name, room-4), smallText, middle, Muted, false)
		}
	case len(p.X.Values) > 0: // where room is short, some numbers are left out
		widest := 0.0
		for _, v := range p.X.Values {
			widest = max(widest, textWidth(valueLabel(v), smallText)+4)
		}
		every := max(1, int(math.Ceil(widest*float64(len(p.X.Values))/(sx.to-sx.from))))
		for i := 0; i < len(p.X.Values); i += every {
			c.text(sx.at(float64(i)), bottom+17, valueLabel(p.X.Values[i]), smallText, middle, Muted, false)
		}
	default:
		step := p.X.roomyStep(sx.min, sx.max, sx.to-sx.from)
		for _, v := range ticks(sx.min, sx.max, step) {
			c.path([]point{{sx.at(v), bottom}, {sx.at(v), bottom + 4}}, Muted, 1, false)
			c.text(sx.at(v), bottom+17, p.X.label(v, step), smallText, middle, Muted, false)
		}
	}
	if p.X.Label != "" {
		c.text((sx.from+sx.to)/2, bottom+36+below, p.X.Label, smallText, middle, Muted, false)
	}
}

func (p Panel) drawBars(c canvas, sx, sy scale) {
	if len(p.Bars) == 0 {
		return
	}
	room := sx.at(1) - sx.at(0)
	width := min(0.82*room/float64(len(p.Bars)), 26)
	base := sy.at(0)
	for k, bars := range p.Bars {
		for i, v := range bars.Values {
			x := sx.at(float64(i)) + (float64(k)-float64(len(p.Bars))/2)*width
			height := base - sy.at(v.Y)
			switch { // a bar of nothing is still seen to be there
			case height >= 0 && height < 1.6:
				height = 1.6
			}
			y, gap := base-max(height, 0), min(0.6, 0.08*width)
			if v.Hollow {
				box := []point{{x + gap + 0.5, y + 0.5}, {x + width - gap - 0.5, y + 0.5}, {x + width - gap - 0.5, y + math.Abs(height)}, {x + gap + 0.5, y + math.Abs(height)}}
				c.path(append(box, box[0]), bars.Color, 1, false)
			} else {
				c.rect(x+gap, y, width-2*gap, math.Abs(height), bars.Color)
			}
			if v.Low != v.High {
				mid := x + width/2
				c.path([]point{{mid, sy.at(v.Low)}, {mid, sy.at(v.High)}}, Ink, 1.1, false)
				for _, e := range []float64{v.Low, v.High} {
					c.path([]point{{mid - 2.5, sy.at(e)}, {mid + 2.5, sy.at(e)}}, Ink, 1.1, false)
				}
			}
		}
	}
}

func (l Line) draw(c canvas, sx, sy scale, index int) {
	var path, upper, lower []point
	for _, v := range l.Points {
		path = append(path, point{sx.at(v.X), sy.at(v.Y)})
		upper = append(upper, point{sx.at(v.X), sy.at(v.High)})
		lower = append([]point{{sx.at(v.X), sy.at(v.Low)}}, lower...)
	}
	switch {
	case l.Band && l.Alone:
		c.area(append(upper, lower...), l.Color, 1)
		return
	case l.Band:
		c.area(append(upper, lower...), l.Color, 0.18)
	default:
		for _, v := range l.Points {
			if v.Low == v.High {
				continue
			}
			x := sx.at(v.X)
			c.path([]point{{x, sy.at(v.Low)}, {x, sy.at(v.High)}}, l.Color, 1.1, false)
			for _, e := range []float64{v.Low, v.High} {
				c.path([]point{{x - 3, sy.at(e)}, {x + 3, sy.at(e)}}, l.Color, 1.1, false)
			}
		}
	}
	if !l.Alone && len(path) > 1 {
		width := l.Width
		if width == 0 {
			width = 2
		}
		c.path(path, l.Color, width, l.Dashed)
	}
	for i, q := range path {
		switch {
		case l.Points[i].Hollow:
			ring := markShape(q.x, q.y, index)
			c.area(ring, Paper, 1)
			c.path(append(ring, ring[0]), l.Color, 1.2, false)
		case l.Marks || l.Alone:
			c.mark(q.x, q.y, index, l.Color)
		}
	}
}

func (p Panel) drawHeat(c canvas, f frame) {
	h, x0, y0 := p.Heat, f.x, f.y
	c.text(x0, y0+15, p.Title, titleText, start, Ink, true)
	left := 0.0
	for _, row := range h.Rows {
		left = max(left, textWidth(row, smallText))
	}
	left += x0 + 10
	top := y0 + 44
	c.text(x0, top-9, p.Y.Label, smallText, start, Muted, false)
	width := (x0 + f.width - 8 - left) / float64(len(h.Columns))
	const height = 25.0
	for r := range h.Rows {
		y := top + height*float64(len(h.Rows)-1-r)
		c.text(left-7, y+height/2+4, h.Rows[r], smallText, end, Muted, false)
		for k := range h.Columns {
			x := left + width*float64(k)
			cell := h.Cells[r][k]
			c.rect(x+1, y+1, width-2, height-2, cell.Color)
			c.text(x+width/2, y+height/2+4, cell.Sign, smallText, middle, Ink, false)
			if r == h.MarkRow && k == h.MarkColumn {
				c.path([]point{{x + 1, y + 1}, {x + width - 1, y + 1}, {x + width - 1, y + height - 1}, {x + 1, y + height - 1}, {x + 1, y + 1}}, Ink, 2, false)
			}
		}
	}
	bottom := top + height*float64(len(h.Rows))
	for k, name := range h.Columns {
		c.text(left+width*(float64(k)+0.5), bottom+14, shorten(name, width), smallText-1, middle, Muted, false)
	}
	c.text((left+x0+f.width)/2, bottom+29, p.X.Label, smallText, middle, Muted, false)
}

// textWidth estimates the width of text in a sans-serif face.
func textWidth(text string, size float64) float64 {
	width := 0.0
	for _, r := range text {
		switch r {
		case 'i', 'l', '.', ',', '\u202f', ' ', '1':
			width += 0.36
		case 'm', 'w', 'M', 'W', '%':
			width += 0.85
		default:
			width += 0.56
		}
	}
	return width * size
}

// shorten cuts text that is wider than the room it has.
func shorten(text string, room float64) string {
	runes := []rune(text)
	if textWidth(text, smallText) <= room {
		return text
	}
	for len(runes) > 1 && textWidth(string(runes)+"…", smallText) > room {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

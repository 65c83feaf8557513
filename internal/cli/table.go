package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mattn/go-runewidth"
)

// style is how a cell looks on a terminal with colours.
type style string

const (
	plain  style = ""
	bold   style = "1"
	faint  style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

type cell struct {
	text  string
	style style
	left  bool // aligned left instead of right
	span  int  // columns it covers; 0 means 1
}

func right(text string) cell { return cell{text: text} }
func left(text string) cell  { return cell{text: text, left: true} }

func (c cell) in(s style) cell    { c.style = s; return c }
func (c cell) over(span int) cell { c.span = span; return c }

// table is rows of cells in aligned columns. An empty row prints as a blank
// line, a row with the single cell rule as a line.
type table struct {
	rows [][]cell
	gaps map[int]int // extra blanks before a column
}

const ruleText = "\x00rule"

func (t *table) add(cells ...cell) { t.rows = append(t.rows, cells) }
func (t *table) rule()             { t.add(cell{text: ruleText}) }

// gap puts blanks before a column, to set groups apart.
func (t *table) gap(column, blanks int) {
	if t.gaps == nil {
		t.gaps = map[int]int{}
	}
	t.gaps[column] = blanks
}

func (t *table) render(colour bool) string {
	widths := t.widths()
	total := -1
	for i, w := range widths {
		total += w + t.before(i) + 1
	}
	var b strings.Builder
	for _, row := range t.rows {
		if len(row) == 1 && row[0].text == ruleText {
			b.WriteString(paint(strings.Repeat("─", max(total, 0)), faint, colour) + "\n")
			continue
		}
		var line strings.Builder
		column := 0
		for _, c := range row {
			span := max(c.span, 1)
			width := 0
			for i := column; i < column+span; i++ {
				width += widths[i]
				if i > column {
					width += 1 + t.before(i)
				}
			}
			if column > 0 {
				line.WriteString(strings.Repeat(" ", 1+t.before(column)))
			}
			pad := strings.Repeat(" ", max(0, width-runewidth.StringWidth(c.text)))
			if c.left {
				line.WriteString(paint(c.text, c.style, colour) + pad)
			} else {
				line.WriteString(pad + paint(c.text, c.style, colour))
			}
			column += span
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

func (t *table) before(column int) int { return t.gaps[column] }

// widths sizes columns by their single cells, then widens the last column of
// a span that does not fit.
func (t *table) widths() []int {
	var widths []int
	each := func(f func(c cell, column, span int)) {
		for _, row := range t.rows {
			column := 0
			for _, c := range row {
				span := max(c.span, 1)
				for len(widths) < column+span {
					widths = append(widths, 0)
				}
				if c.text != ruleText {
					f(c, column, span)
				}
				column += span
			}
		}
	}
	each(func(c cell, column, span int) {
		if span == 1 {
			widths[column] = max(widths[column], runewidth.StringWidth(c.text))
		}
	})
	each(func(c cell, column, span int) {
		have := 0
		for i := column; i < column+span; i++ {
			have += widths[i]
			if i > column {
				have += 1 + t.before(i)
			}
		}
		if need := runewidth.StringWidth(c.text) - have; need > 0 {
			widths[column+span-1] += need
		}
	})
	return widths
}

func paint(text string, s style, colour bool) string {
	if !colour || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// whole prints 12345 as 12,345.
func whole(x int64) string { return group(strconv.FormatInt(x, 10)) }

func group(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// money prints an amount with as many decimals as its size deserves.
func money(x float64) string {
	decimals := 2
	switch a := math.Abs(x); {
	case a >= 1e12:
		return significant(x)
	case a >= 1e4:
		decimals = 0
	case a >= 100:
		decimals = 1
	case a > 0 && a < 0.01:
		return significant(x)
	}
	text := strconv.FormatFloat(x, 'f', decimals, 64)
	if !strings.Contains(text, ".") {
		return group(text)
	}
	before, after, _ := strings.Cut(text, ".")
	return group(before) + "." + after
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// significant prints six significant digits, without trailing zeros.
func significant(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// exact prints the shortest text that reads back as x.
func exact(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

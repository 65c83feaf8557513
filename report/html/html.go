// Package html renders a report as one self-contained page: text, tables and
// figures, without scripts and without anything fetched from a network. It
// reads well wide and narrow, light and dark, and on paper.
package html

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"path"
	"strings"

	"grange/report/chart"
)

// Document is a page.
type Document struct {
	Title    string
	Subtitle string
	Facts    []Fact // the answer in a few numbers
	Sections []Section
	Footer   string
}

// Fact is one number worth a card of its own.
type Fact struct {
	Label string
	Value string
	Note  string
}

// Section is a heading and what stands under it.
type Section struct {
	ID     string
	Title  string
	Blocks []Block
}

// Block is exactly one of its fields.
type Block struct {
	Text    string       // a paragraph
	Answer  string       // a paragraph set apart: what the reader came for
	Warning string       // a doubt the reader must know
	Table   *Table       // numbers
	Tables  []*Table     // small tables beside each other
	Chart   *chart.Chart // a figure
	Pairs   []Pair       // names and values
	Claims  []Claim      // statements with a verdict each
	Links   []Link       // files beside the page
	Fold    *Fold        // detail few will read
}

// Table is a table of formatted cells.
type Table struct {
	Title string
	Head  []Head
	Rows  []Row
	Note  string
}

// Head is the head of a column.
type Head struct {
	Text string
	Left bool // text, not numbers
	Wide bool // keeps some room on a narrow page
}

// Row is one row. Strong rows stand out, as totals do.
type Row struct {
	Strong bool
	Cells  []Cell
}

// Cell is one formatted cell.
type Cell struct {
	Text  string
	Small string  // said more quietly after the text, such as an interval
	Bar   float64 // a bar behind the cell, as a share of its width
	Mark  Mark
}

// Mark colours a cell's text as a label.
type Mark string

const (
	Plain  Mark = ""
	Good   Mark = "good"
	Middle Mark = "middle"
	Bad    Mark = "bad"
)

// Pair is a name and a value.
type Pair struct{ Name, Value string }

// Link is a thing and the files it is in, by paths relative to the page.
type Link struct {
	Name  string
	Files []string
}

// Claim is a statement, what was found about it, and why.
type Claim struct {
	Name    string
	States  string
	Finding string
	Mark    Mark
	Because []string
}

// Fold is detail behind a heading that opens.
type Fold struct {
	Title  string
	Blocks []Block
}

//go:embed page.tmpl
var pageSource string

//go:embed page.css
var pageStyle string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"panel":   func(c *chart.Chart, i int) template.HTML { return c.Inline(i) },
	"kind":    func(file string) string { return strings.ToUpper(strings.TrimPrefix(path.Ext(file), ".")) },
	"percent": func(share float64) string { return fmt.Sprintf("%.1f%%", 100*min(1, max(0, share))) },
}).Parse(pageSource))

// Render returns the page.
func (d Document) Render() ([]byte, error) {
	var out bytes.Buffer
	err := page.Execute(&out, struct {
		Document
		Style template.CSS
	}{d, chart.CSS() + template.CSS(pageStyle)})
	if err != nil {
		return nil, fmt.Errorf("html: render: %w", err)
	}
	return bytes.TrimLeft(out.Bytes(), "\n"), nil
}

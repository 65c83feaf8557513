// Package story turns what the laboratory found into a report a board can
// read, and into the figures and tables behind it.
package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grange/lab"
	"grange/report/chart"
	"grange/report/html"
	"grange/report/table"
)

// Report is everything there is to show.
type Report struct {
	Page     html.Document
	Charts   []chart.Chart
	Tables   []*table.Table
	Findings any // observations.json; nil for none
}

// Origin says where a report comes from.
type Origin struct {
	Version string // of the program
	Command string // that makes this report again
	Folder  string // where the cells are kept
	Seed    uint64
}

// File is one file of a report.
type File struct {
	Name string // relative, with forward slashes
	Data []byte
}

// Files renders the report: the page, and beside it every figure and table.
func (r *Report) Files() ([]File, error) {
	page, err := r.Page.Render()
	if err != nil {
		return nil, err
	}
	files := []File{{"report.html", page}}
	for _, c := range r.Charts {
		for _, format := range chart.Formats {
			data, err := c.File(format)
			if err != nil {
				return nil, fmt.Errorf("story: figure %s: %w", c.ID, err)
			}
			files = append(files, File{"figures/" + c.ID + "." + format, data})
		}
	}
	for _, t := range r.Tables {
		data, err := t.CSV()
		if err != nil {
			return nil, err
		}
		files = append(files, File{"tables/" + t.Name + ".csv", data})
		if data, err = t.Parquet(); err != nil {
			return nil, err
		}
		files = append(files, File{"tables/" + t.Name + ".parquet", data})
	}
	if r.Findings != nil {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r.Findings); err != nil {
			return nil, fmt.Errorf("story: observations: %w", err)
		}
		files = append(files, File{"observations.json", out.Bytes()})
	}
	return files, nil
}

// figure adds a chart to the report and returns it as a block of the page.
func (r *Report) figure(c chart.Chart) html.Block {
	r.Charts = append(r.Charts, c)
	return html.Block{Chart: &c}
}

// links are the files of the figures and tables, for the page to name.
func (r *Report) links() html.Block {
	var links []html.Link
	for _, c := range r.Charts {
		link := html.Link{Name: "Figure: " + c.ID}
		for _, format := range chart.Formats {
			link.Files = append(link.Files, "figures/"+c.ID+"."+format)
		}
		links = append(links, link)
	}
	for _, t := range r.Tables {
		links = append(links, html.Link{Name: "Table: " + t.Name, Files: []string{"tables/" + t.Name + ".csv", "tables/" + t.Name + ".parquet"}})
	}
	return html.Block{Links: links}
}

func text(format string, args ...any) html.Block {
	return html.Block{Text: fmt.Sprintf(format, args...)}
}

// percent writes a share with one decimal.
func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }

// points writes a difference of accuracies.
func points(x float64) string { return fmt.Sprintf("%.1f points", 100*x) }

// whole writes a number with spaces between thousands, and a small one with a
// decimal.
func whole(x float64) string {
	if math.Abs(x) < 0.05 {
		return "0"
	}
	if math.Abs(x) < 10 && x != math.Trunc(x) {
		return strings.Replace(strconv.FormatFloat(x, 'f', 1, 64), "-", "−", 1)
	}
	digits := strconv.FormatFloat(math.Abs(x), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "\u202f" + digits[i:]
	}
	if x < 0 {
		return "−" + digits
	}
	return digits
}

// signed writes a number with its sign.
func signed(x float64) string {
	if x > 0 && whole(x) != "0" {
		return "+" + whole(x)
	}
	return whole(x)
}

// list writes "a, b and c".
func list(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " and " + items[len(items)-1]
}

// numeral writes a number with four significant digits.
func numeral(x float64) string {
	return strings.ReplaceAll(strconv.FormatFloat(x, 'g', 4, 64), "-", "−")
}

// ruleNames says in words what each rule does.
var ruleNames = map[string]string{
	"EG":  "equal shares",
	"LP":  "by amount and quality of data",
	"LOO": "by what the model loses without the member",
	"SV":  "by Shapley value",
}

// ruleTitles are what to call the rules where there is room for two words.
var ruleTitles = map[string]string{
	"EG":  "equal shares",
	"LP":  "proportional",
	"LOO": "leave one out",
	"SV":  "Shapley value",
}

// called writes "LP (proportional)".
func called(name string) string {
	if words, ok := ruleTitles[name]; ok {
		return name + " (" + words + ")"
	}
	return name
}

// ruleKey says how the rules share: "EG equally, LP by …".
func ruleKey(equilibria []lab.Equilibrium) string {
	var parts []string
	for _, e := range equilibria {
		if words, ok := ruleNames[e.Mechanism]; ok {
			parts = append(parts, e.Mechanism+" "+strings.Replace(words, "equal shares", "equally", 1))
		}
	}
	return list(parts)
}

func ruleName(name string) string {
	if words, ok := ruleNames[name]; ok {
		return name + " – " + words
	}
	return name
}

// counted writes "1 member" or "3 members".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// backends lists the distinct backends and kernels of the records.
func backends(records []*lab.Record) string {
	var names []string
	for _, r := range records {
		name := r.Outcome.Backend
		if r.Outcome.Kernel != "" {
			name += " (" + r.Outcome.Kernel + ")"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

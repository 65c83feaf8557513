package cli

import (
	"fmt"
	"strings"

	"grange/equilibrium"
	"grange/report"
)

// listedMembers is up to how many members a sweep's table has columns for.
const listedMembers = 8

// text prints one block per mechanism, with the cells down the rows.
func (g *grid) text(colour bool) string {
	var b strings.Builder
	members := g.cells[0].solution.game.Members
	fmt.Fprintf(&b, "%s: %s, %s\n\n", paint(g.scenario.Name, bold, colour), count(len(members), "member"), count(len(g.cells), "cell"))
	t := &table{}
	head := []cell{left("")}
	for i, ax := range g.axes {
		t.gap(1+i, 1)
		head = append(head, right(ax.key).in(faint))
	}
	first := 1 + len(g.axes)
	t.gap(first, 2)
	if len(members) <= listedMembers {
		for i, m := range members {
			t.gap(first+i, 1)
			head = append(head, right(m.Name).in(faint))
		}
		first += len(members)
	}
	t.gap(first, 2)
	head = append(head, right("contributed").in(faint), right("accuracy").in(faint), right("welfare").in(faint), left("").in(faint))
	t.add(head...)
	for i := range g.cells[0].solution.equilibria {
		t.rule()
		for k, c := range g.cells {
			t.add(g.row(c, i, k == 0)...)
		}
	}
	b.WriteString(t.render(colour))
	return b.String()
}

func (g *grid) row(c gridCell, i int, named bool) []cell {
	o := c.solution.equilibria[i]
	label := ""
	if named {
		label = o.Mechanism
	}
	row := []cell{left(label).in(bold)}
	for _, x := range c.at {
		row = append(row, right(exact(x)))
	}
	var given int64
	for _, x := range o.Contributions {
		given += x
		if len(o.Contributions) <= listedMembers {
			row = append(row, right(whole(x)))
		}
	}
	state := ""
	switch {
	case o.Status == equilibrium.Cycle:
		state = fmt.Sprintf(" cycle of %d", o.CycleLength)
	case o.Status == equilibrium.IterationLimit:
		state = " unsettled"
	case !o.Certificate.Certified:
		state = " not certified"
	}
	return append(row, right(whole(given)), right(fixed(o.Accuracy, 4)), right(money(o.Welfare)), left(state).in(red))
}

type sweepJSON struct {
	Scenario string     `json:"scenario"`
	Members  []string   `json:"members"`
	Vary     []varyJSON `json:"vary"`
	Cells    []cellJSON `json:"cells"`
}

type varyJSON struct {
	Key    string    `json:"key"`
	Values []float64 `json:"values"`
}

type cellJSON struct {
	At         map[string]float64 `json:"at"`
	Equilibria []outcomeJSON      `json:"equilibria"`
}

func (g *grid) json() sweepJSON {
	out := sweepJSON{Scenario: g.scenario.Name}
	for _, m := range g.scenario.Members {
		out.Members = append(out.Members, m.Name)
	}
	for _, ax := range g.axes {
		out.Vary = append(out.Vary, varyJSON{ax.key, ax.values})
	}
	for _, c := range g.cells {
		j := cellJSON{At: map[string]float64{}}
		for i, ax := range g.axes {
			j.At[ax.key] = c.at[i]
		}
		for _, o := range c.solution.equilibria {
			j.Equilibria = append(j.Equilibria, c.solution.outcomeJSON(o))
		}
		out.Cells = append(out.Cells, j)
	}
	return out
}

// csv has one row per cell, mechanism and member.
func (g *grid) csv() [][]string {
	var head []string
	for _, ax := range g.axes {
		head = append(head, ax.key)
	}
	rows := [][]string{append(head, outcomeColumns...)}
	for _, c := range g.cells {
		var at []string
		for _, x := range c.at {
			at = append(at, exact(x))
		}
		for _, o := range c.solution.equilibria {
			for _, row := range c.solution.outcomeRows(o) {
				rows = append(rows, append(append([]string{}, at...), row...))
			}
		}
	}
	return rows
}

// figure is the sweep as report draws it. Cells that are not solved yet have
// no equilibria.
func (g *grid) figure() report.Sweep {
	f := report.Sweep{Key: g.axes[0].key}
	for _, m := range g.scenario.Members {
		f.Members = append(f.Members, m.Name)
	}
	f.Values = g.axes[0].values
	f.Varied = g.varied()
	perValue := len(g.cells) / len(f.Values)
	for k := range perValue {
		row := report.SweepRow{}
		var parts []string
		for i, ax := range g.axes[1:] {
			parts = append(parts, ax.key+" = "+exact(g.cells[k].at[i+1]))
		}
		row.Label = strings.Join(parts, ", ")
		for i := range g.cells[0].solution.equilibria {
			panel := report.Panel{Mechanism: g.cells[0].solution.equilibria[i].Mechanism}
			for v := range f.Values {
				o := g.cells[v*perValue+k].solution.equilibria[i]
				panel.Contributions = append(panel.Contributions, o.Contributions)
				panel.Proven = append(panel.Proven, o.proven())
			}
			row.Panels = append(row.Panels, panel)
		}
		f.Rows = append(f.Rows, row)
	}
	return f
}

// varied tells the members whose own numbers the first key changes.
func (g *grid) varied() []bool {
	low, err := g.scenario.Vary(g.axes[0].key, g.axes[0].values[0])
	if err != nil {
		return nil
	}
	high, err := g.scenario.Vary(g.axes[0].key, g.axes[0].values[len(g.axes[0].values)-1])
	if err != nil {
		return nil
	}
	varied := make([]bool, len(low.Members))
	for n := range varied {
		a, b := low.Members[n], high.Members[n]
		varied[n] = a.Data != b.Data || a.Noise != b.Noise || a.Privacy != b.Privacy || a.Outside != b.Outside
	}
	return varied
}

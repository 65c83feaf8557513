package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"grange/equilibrium"
	"grange/game"
)

// manyMembers is from where members are summed up instead of listed.
const manyMembers = 25

// Marks behind a contribution.
const (
	freeRiderMark = "°"
	unwillingMark = "!"
)

// text prints the solution for people.
func (s *solution) text(all, colour bool) string {
	var b strings.Builder
	b.WriteString(s.heading(colour))
	b.WriteString("\n")
	if len(s.game.Members) > manyMembers && !all {
		b.WriteString(s.summary(colour))
	} else {
		b.WriteString(s.sideBySide(colour))
		b.WriteString(s.notes())
	}
	if s.planner != nil {
		b.WriteString(s.plannerText())
	}
	for _, o := range s.equilibria {
		if o.explored != nil {
			b.WriteString("\n" + s.exploredText(o, colour))
		}
		if len(o.Path) > 0 {
			b.WriteString("\n" + s.pathText(o, colour))
		}
	}
	for _, o := range s.equilibria {
		if o.IndexError > 0 {
			fmt.Fprintf(&b, "%s: indices by quadrature, each within %.1e of exact\n", o.Mechanism, o.IndexError)
		}
		for _, w := range o.Warnings {
			b.WriteString("warning: " + w + "\n")
		}
	}
	for _, w := range s.warnings {
		b.WriteString("warning: " + w + "\n")
	}
	return b.String()
}

func (s *solution) heading(colour bool) string {
	var owned int64
	for _, m := range s.game.Members {
		owned += m.Capacity
	}
	return fmt.Sprintf("%s: %s, %s data points\n", paint(s.scenario.Name, bold, colour), count(len(s.game.Members), "member"), whole(owned))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return whole(int64(n)) + " " + noun + "s"
}

// sideBySide has a row per member and a group of columns per mechanism.
func (s *solution) sideBySide(colour bool) string {
	t := &table{}
	head, sub := []cell{left("")}, []cell{left("member").in(faint)}
	for i, o := range s.equilibria {
		t.gap(1+4*i, 2)
		head = append(head, centred(o.Mechanism, 24).in(bold).over(4))
		sub = append(sub, right("gives").in(faint), left(""), right("share").in(faint), right("payoff").in(faint))
	}
	t.add(head...)
	t.add(sub...)
	t.rule()
	for n, m := range s.game.Members {
		row := []cell{left(m.Name)}
		for _, o := range s.equilibria {
			mark, look := s.mark(o, n)
			row = append(row, right(whole(o.Contributions[n])), left(mark).in(look), right(percent(o.Shares[n])), right(money(o.Payoffs[n])))
		}
		t.add(row...)
	}
	t.rule()
	s.totals(t, 4)
	return t.render(colour)
}

func centred(text string, width int) cell {
	return left(strings.Repeat(" ", max(0, (width-len(text))/2)) + text)
}

func (s *solution) mark(o *outcome, n int) (string, style) {
	mark, look := "", plain
	if slices.Contains(o.freeRiders, n) {
		mark, look = freeRiderMark, yellow
	}
	if slices.Contains(o.unwilling, n) {
		mark, look = mark+unwillingMark, red
	}
	return mark, look
}

// totals adds the rows that concern all members together; each value spans a
// mechanism's columns.
func (s *solution) totals(t *table, span int) {
	row := func(label string, value func(o *outcome) (string, style)) {
		cells := []cell{left(label)}
		for _, o := range s.equilibria {
			text, look := value(o)
			cells = append(cells, right(text).in(look).over(span))
		}
		t.add(cells...)
	}
	row("contributed", func(o *outcome) (string, style) {
		var given, owned int64
		for n, x := range o.Contributions {
			given += x
			owned += s.game.Members[n].Capacity
		}
		return fmt.Sprintf("%s (%s)", whole(given), percent(float64(given)/math.Max(1, float64(owned)))), plain
	})
	row("accuracy", func(o *outcome) (string, style) { return fixed(o.Accuracy, 4), plain })
	row("profit", func(o *outcome) (string, style) { return money(o.Profit), plain })
	row("welfare", func(o *outcome) (string, style) { return money(o.Welfare), bold })
	if s.planner != nil {
		row("price of anarchy", func(o *outcome) (string, style) {
			if p := s.priceOfAnarchy(o); game.Finite(p) {
				return fixed(p, 3), plain
			}
			return "–", plain
		})
	}
	row("passes", func(o *outcome) (string, style) {
		switch o.Status {
		case equilibrium.Cycle:
			return fmt.Sprintf("cycle of %d", o.CycleLength), red
		case equilibrium.IterationLimit:
			return fmt.Sprintf("%d, unsettled", o.Iterations), red
		}
		return strconv.Itoa(o.Iterations), plain
	})
	row("regret", func(o *outcome) (string, style) { return significant(o.Certificate.Regret), plain })
	row("equilibrium", func(o *outcome) (string, style) {
		if o.proven() {
			return "proven", green
		}
		return "not proven", red
	})
}

func fixed(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// notes explains the marks that occur.
func (s *solution) notes() string {
	riders, unwilling := false, false
	for _, o := range s.equilibria {
		riders = riders || len(o.freeRiders) > 0
		unwilling = unwilling || len(o.unwilling) > 0
	}
	var b strings.Builder
	if riders || unwilling {
		b.WriteString("\n")
	}
	if riders {
		fmt.Fprintf(&b, "%s free rider: gives the minimum or under 1%% of its data, and still gains\n", freeRiderMark)
	}
	if unwilling {
		fmt.Fprintf(&b, "%s would rather not take part: its payoff is below what it has outside\n", unwillingMark)
	}
	return b.String()
}

func (s *solution) plannerText() string {
	p := s.planner
	var given int64
	for _, x := range p.Contributions {
		given += x
	}
	text := fmt.Sprintf("\nPlanner's optimum: welfare %s with %s points and accuracy %s", money(p.Welfare), whole(given), fixed(p.Accuracy, 4))
	slack := p.Bound - p.Welfare
	switch {
	case !game.Finite(p.Bound):
		text += " (best found; no bound)"
	case slack <= 1e-9*math.Max(1, math.Abs(p.Welfare)):
		text += " (proven)"
	case p.Welfare > 0:
		text += fmt.Sprintf(" (proven to within %s%%)", strconv.FormatFloat(100*slack/p.Welfare, 'g', 2, 64))
	default:
		text += fmt.Sprintf(" (no profile can exceed %s)", money(p.Bound))
	}
	text += "\n"
	if len(p.Contributions) <= manyMembers {
		text += "  " + profileText(p.Contributions, s.game.Members) + "\n"
	}
	return text
}

func profileText(p game.Profile, members []game.Member) string {
	var parts []string
	for n, x := range p {
		parts = append(parts, members[n].Name+" "+whole(x))
	}
	return strings.Join(parts, ", ")
}

// exploredText lists the equilibria found from many starts, best first.
func (s *solution) exploredText(o *outcome, colour bool) string {
	e := o.explored
	var b strings.Builder
	fmt.Fprintf(&b, "%s from %s: %s", paint(o.Mechanism, bold, colour), count(o.starts, "start"), countEquilibria(len(e.Equilibria)))
	if e.Cycles > 0 {
		fmt.Fprintf(&b, ", %s in a cycle", count(e.Cycles, "run"))
	}
	if e.Limits > 0 {
		fmt.Fprintf(&b, ", %s unsettled", count(e.Limits, "run"))
	}
	b.WriteString("\n")
	const most = 10
	t := &table{}
	t.gap(1, 1)
	for i, f := range e.Equilibria {
		label := ""
		switch {
		case len(e.Equilibria) > 1 && i == 0:
			label = "best"
		case len(e.Equilibria) > 1 && i == len(e.Equilibria)-1:
			label = "worst"
		case i >= most:
			continue
		}
		contributions := ""
		if len(s.game.Members) <= manyMembers {
			contributions = profileText(f.Result.Contributions, s.game.Members)
		}
		t.add(left("  "+label), right("welfare "+money(f.Result.Welfare)), right("accuracy "+fixed(f.Result.Accuracy, 4)),
			right(count(f.Count, "run")), left(" "+contributions))
	}
	b.WriteString(t.render(colour))
	if hidden := len(e.Equilibria) - most - 1; hidden > 0 {
		fmt.Fprintf(&b, "  and %d more; --json has all\n", hidden)
	}
	return b.String()
}

func countEquilibria(n int) string {
	switch n {
	case 0:
		return "no equilibrium"
	case 1:
		return "one equilibrium"
	}
	return fmt.Sprintf("%d equilibria", n)
}

// pathText shows the profile after every pass.
func (s *solution) pathText(o *outcome, colour bool) string {
	t := &table{}
	members := s.game.Members
	if len(members) > manyMembers {
		t.add(left(o.Mechanism).in(bold), right("contributed").in(faint))
		for i, p := range o.Path {
			var given int64
			for _, x := range p {
				given += x
			}
			t.add(left(passName(i)), right(whole(given)))
		}
		return t.render(colour)
	}
	head := []cell{left(o.Mechanism).in(bold)}
	for n := range members {
		t.gap(1+n, 1)
		head = append(head, right(members[n].Name).in(faint))
	}
	t.add(head...)
	for i, p := range o.Path {
		row := []cell{left(passName(i))}
		for _, x := range p {
			row = append(row, right(whole(x)))
		}
		t.add(row...)
	}
	return t.render(colour)
}

func passName(i int) string {
	if i == 0 {
		return "start"
	}
	return fmt.Sprintf("pass %d", i)
}

// csv has one row per mechanism and member.
func (s *solution) csv() [][]string {
	rows := [][]string{outcomeColumns}
	for _, o := range s.equilibria {
		rows = append(rows, s.outcomeRows(o)...)
	}
	return rows
}

var outcomeColumns = []string{"mechanism", "member", "data", "noise", "privacy", "contribution", "share", "payoff", "index",
	"free_rider", "unwilling", "accuracy", "profit", "welfare", "status", "iterations", "regret", "certified"}

func (s *solution) outcomeRows(o *outcome) [][]string {
	var rows [][]string
	for n, m := range s.game.Members {
		rows = append(rows, []string{
			o.Mechanism, m.Name, strconv.FormatInt(m.Capacity, 10), exact(m.Noise), exact(m.Privacy),
			strconv.FormatInt(o.Contributions[n], 10), exact(o.Shares[n]), exact(o.Payoffs[n]), exact(o.Indices[n]),
			strconv.FormatBool(slices.Contains(o.freeRiders, n)), strconv.FormatBool(slices.Contains(o.unwilling, n)),
			exact(o.Accuracy), exact(o.Profit), exact(o.Welfare), string(o.Status), strconv.Itoa(o.Iterations),
			exact(o.Certificate.Regret), strconv.FormatBool(o.Certificate.Certified),
		})
	}
	return rows
}

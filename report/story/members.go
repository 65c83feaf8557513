package story

import (
	"fmt"
	"slices"
	"strings"

	"grange/lab"
	"grange/report/chart"
	"grange/report/html"
)

// manyMembers is how many members a table or figure can still list.
const manyMembers = 24

func (r *Report) members(s *lab.Study) []html.Block {
	var tables []*html.Table
	shown := s.Game.Members[:min(len(s.Game.Members), manyMembers)]
	for i := range s.Equilibria {
		e := &s.Equilibria[i]
		t := &html.Table{
			Title: ruleName(e.Mechanism),
			Head:  []html.Head{{Text: "Member", Left: true, Wide: true}, {Text: "Gives"}, {Text: "Share"}, {Text: "Money"}, {Text: "Privacy cost"}, {Text: "Payoff"}},
		}
		for n, m := range shown {
			gives := html.Cell{Text: whole(float64(e.Contributions[n])), Bar: max(0.004, float64(e.Contributions[n])/float64(m.Capacity))}
			if e.ContributionIntervals != nil {
				if in := e.ContributionIntervals[n]; in.Low < in.High {
					gives.Small = fmt.Sprintf("%s–%s", whole(in.Low), whole(in.High))
				}
			}
			cost := s.Game.CostOf(n, e.Contributions[n])
			payoff := html.Cell{Text: whole(e.Payoffs[n])}
			if e.Payoffs[n] < m.Outside {
				payoff.Mark = html.Bad
			}
			t.Rows = append(t.Rows, html.Row{Cells: []html.Cell{
				{Text: m.Name, Small: describe(m.Noise, m.Privacy)}, gives, {Text: percent(e.Shares[n])},
				{Text: whole(e.Shares[n] * e.Profit)}, {Text: whole(cost)}, payoff,
			}})
		}
		if extra := len(s.Game.Members) - len(shown); extra > 0 {
			t.Note = fmt.Sprintf("%d more members are in the table file equilibria.csv.", extra)
		}
		tables = append(tables, t)
	}
	return []html.Block{
		text("Gives: data points put in, with the bar showing the part of what the member owns%s. Money is the member's share of the profit; payoff is what remains after the cost of giving data away. A marked payoff is below what the member would have without taking part.", intervalNote(s)),
		{Tables: tables},
		r.figure(contributionChart(s)),
	}
}

func intervalNote(s *lab.Study) string {
	if s.Spread == nil {
		return ""
	}
	return ", and a 90% range for it from the scatter of the measured accuracies (in trials with known answers such ranges held the truth about 85 times in a hundred)"
}

func describe(noise, privacy float64) string {
	quality := "clean labels"
	if noise > 0 {
		quality = fmt.Sprintf("%.0f%% wrong labels", 100*noise)
	}
	return fmt.Sprintf("%s · privacy %g", quality, privacy)
}

func memberNames(s *lab.Study) []string {
	var names []string
	for n, m := range s.Game.Members {
		if n < manyMembers {
			names = append(names, m.Name)
		}
	}
	return names
}

func contributionChart(s *lab.Study) chart.Chart {
	p := chart.Panel{X: chart.Axis{Categories: memberNames(s)}, Y: chart.Axis{Label: "data points", FromZero: true}}
	q := chart.Panel{X: p.X, Y: chart.Axis{Label: "money", FromZero: true}, Title: "Payoff"}
	p.Title = "Contribution"
	for i := range s.Equilibria {
		e := &s.Equilibria[i]
		bars := chart.Bars{Name: e.Mechanism, Color: chart.Mechanism(e.Mechanism)}
		payoffs := bars
		for n := range p.X.Categories {
			v := chart.XY{Y: float64(e.Contributions[n])}
			if e.ContributionIntervals != nil {
				v.Low, v.High = e.ContributionIntervals[n].Low, e.ContributionIntervals[n].High
			}
			bars.Values = append(bars.Values, v)
			payoffs.Values = append(payoffs.Values, chart.XY{Y: e.Payoffs[n]})
		}
		p.Bars = append(p.Bars, bars)
		q.Bars = append(q.Bars, payoffs)
	}
	return chart.Chart{ID: "members", Title: "Contribution and payoff of every member", Panels: []chart.Panel{p, q},
		Caption: "Whiskers: 90% interval from the scatter of the measured accuracies."}
}

// losers compares each rule with every other from the members' point of view.
func (r *Report) losers(s *lab.Study) []html.Block {
	best := bestRule(s.Equilibria)
	var blocks []html.Block
	for i := range s.Equilibria {
		base := &s.Equilibria[i]
		if base.Mechanism != "EG" || base == best {
			continue
		}
		var gain, lose []string
		for n, m := range s.Game.Members {
			d := best.Payoffs[n] - base.Payoffs[n]
			switch {
			case whole(d) == "0":
			case d > 0:
				gain = append(gain, fmt.Sprintf("%s (%s)", m.Name, signed(d)))
			default:
				lose = append(lose, fmt.Sprintf("%s (%s)", m.Name, signed(d)))
			}
		}
		blocks = append(blocks, html.Block{Answer: fmt.Sprintf("Compared with equal shares, under %s %s and %s.", best.Mechanism, verb(gain, "gains", "gain"), verb(lose, "loses", "lose"))})
	}
	if richest := richestRule(s.Equilibria); richest != best && richest.Mechanism != "EG" {
		var prefer []string
		for n, m := range s.Game.Members {
			if d := richest.Payoffs[n] - best.Payoffs[n]; d > 0 && whole(d) != "0" {
				prefer = append(prefer, fmt.Sprintf("%s (%s)", m.Name, signed(d)))
			}
		}
		blocks = append(blocks, html.Block{Answer: fmt.Sprintf("Compared with %s, under %s, where the members earn most together, %s.", best.Mechanism, richest.Mechanism, verb(prefer, "has more", "have more"))})
	}
	t := &html.Table{Title: "Each member's payoff under each rule", Head: []html.Head{{Text: "Member", Left: true, Wide: true}},
		Note: "Best for the member: marked green; worst: marked red. Nobody has to agree with anybody: this is what a vote would look like."}
	for _, e := range s.Equilibria {
		t.Head = append(t.Head, html.Head{Text: e.Mechanism})
	}
	t.Head = append(t.Head, html.Head{Text: "Prefers", Left: true})
	for n, m := range s.Game.Members {
		if n >= manyMembers {
			break
		}
		var payoffs []float64
		for _, e := range s.Equilibria {
			payoffs = append(payoffs, e.Payoffs[n])
		}
		row := html.Row{Cells: []html.Cell{{Text: m.Name}}}
		top, bottom := slices.Max(payoffs), slices.Min(payoffs)
		prefers := ""
		for i, p := range payoffs {
			c := html.Cell{Text: whole(p)}
			switch {
			case whole(top) == whole(bottom):
			case p == top:
				c.Mark = html.Good
				prefers = s.Equilibria[i].Mechanism
			case p == bottom:
				c.Mark = html.Bad
			}
			row.Cells = append(row.Cells, c)
		}
		row.Cells = append(row.Cells, html.Cell{Text: prefers})
		t.Rows = append(t.Rows, row)
	}
	return append(blocks, html.Block{Table: t})
}

// verb writes "nobody gains", "ash gains" or "ash and birch gain".
func verb(items []string, one, several string) string {
	switch len(items) {
	case 0:
		return "nobody " + one
	case 1:
		return items[0] + " " + one
	}
	return some(items) + " " + several
}

func some(items []string) string {
	if len(items) > 8 {
		return strings.Join(items[:8], ", ") + fmt.Sprintf(" and %d others", len(items)-8)
	}
	return list(items)
}

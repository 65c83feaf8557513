package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// summary is the table for co-operatives too large to list: how contributions
// and payoffs are spread, and who gives most.
func (s *solution) summary(colour bool) string {
	t := &table{}
	head := []cell{left("")}
	for i, o := range s.equilibria {
		t.gap(1+i, 2)
		head = append(head, right(o.Mechanism).in(bold))
	}
	t.add(head...)
	t.rule()
	row := func(label string, value func(o *outcome) string) {
		cells := []cell{left(label)}
		for _, o := range s.equilibria {
			cells = append(cells, right(value(o)))
		}
		t.add(cells...)
	}
	total := len(s.game.Members)
	tally := func(which func(n int) bool) string {
		k := 0
		for n := range s.game.Members {
			if which(n) {
				k++
			}
		}
		return fmt.Sprintf("%s of %s", whole(int64(k)), whole(int64(total)))
	}
	row("members giving all", func(o *outcome) string {
		return tally(func(n int) bool { return o.Contributions[n] == s.game.Members[n].Capacity })
	})
	row("giving the minimum", func(o *outcome) string {
		return tally(func(n int) bool {
			return o.Contributions[n] == s.game.Minimum && s.game.Minimum < s.game.Members[n].Capacity
		})
	})
	row("free riders", func(o *outcome) string {
		return tally(func(n int) bool { return slices.Contains(o.freeRiders, n) })
	})
	row("rather not taking part", func(o *outcome) string {
		return tally(func(n int) bool { return slices.Contains(o.unwilling, n) })
	})
	for _, q := range []struct {
		label string
		at    float64
	}{{"lower quartile", 0.25}, {"median", 0.5}, {"upper quartile", 0.75}, {"largest", 1}} {
		row("contribution, "+q.label, func(o *outcome) string {
			return whole(quantile(o.Contributions, q.at))
		})
	}
	for _, q := range []struct {
		label string
		at    float64
	}{{"smallest", 0}, {"median", 0.5}, {"largest", 1}} {
		row("payoff, "+q.label, func(o *outcome) string { return money(quantile(o.Payoffs, q.at)) })
	}
	t.rule()
	s.totals(t, 1)
	var b strings.Builder
	b.WriteString(t.render(colour))
	b.WriteString("\n" + s.top(colour))
	b.WriteString("\n--all lists every member.\n")
	return b.String()
}

// quantile returns the value at rank at·(n−1), rounded down.
func quantile[T cmp.Ordered](values []T, at float64) T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[int(at*float64(len(sorted)-1))]
}

// top lists, per mechanism, the members that give most.
func (s *solution) top(colour bool) string {
	const most = 5
	t := &table{}
	head := []cell{left("giving most").in(faint)}
	ranked := make([][]int, len(s.equilibria))
	for i, o := range s.equilibria {
		t.gap(1+i, 2)
		head = append(head, right(o.Mechanism).in(bold))
		for n := range s.game.Members {
			ranked[i] = append(ranked[i], n)
		}
		slices.SortStableFunc(ranked[i], func(a, b int) int { return cmp.Compare(o.Contributions[b], o.Contributions[a]) })
	}
	t.add(head...)
	for k := range most {
		row := []cell{left(fmt.Sprintf("%d.", k+1))}
		for i, o := range s.equilibria {
			n := ranked[i][k]
			row = append(row, right(fmt.Sprintf("%s %s", s.game.Members[n].Name, whole(o.Contributions[n]))))
		}
		t.add(row...)
	}
	return t.render(colour)
}

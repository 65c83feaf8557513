package scenario

import (
	"fmt"
	"math"
)

func (r *reader) members(top fields, minimum int64) []Member {
	n := top.need("members", "a list of members")
	if n == nil {
		return nil
	}
	var members []Member
	named := map[string]int{}
	var total int64
	for i, item := range r.list(n, "members", "a list of members") {
		m := r.member(item, fmt.Sprintf("members[%d]", i), minimum)
		if r.err != nil {
			return nil
		}
		if line, twice := named[m.Name]; twice {
			at := item.child("name")
			r.fail(at, fmt.Sprintf("members[%d].name", i), "a second member named %q, the first is on line %d; want every name once", shorten(m.Name), line)
			return nil
		}
		named[m.Name] = item.child("name").line
		total += m.Data
		if total > exactLimit {
			r.fail(item.child("data"), fmt.Sprintf("members[%d].data", i),
				"members[%d].data takes the members' data past 2^53 points together, where totals are no longer exact", i)
			return nil
		}
		members = append(members, m)
	}
	return members
}

func (r *reader) member(n *node, path string, minimum int64) Member {
	f := r.fields(n, path, "name", "data", "noise", "privacy", "outside", "transition")
	m := Member{
		Name:    f.text("name", "the member's name, as text"),
		Data:    f.data(minimum),
		Noise:   f.number("noise", rate),
		Privacy: f.number("privacy", notNegative),
		Outside: f.numberOr("outside", 0, anyNumber),
	}
	if f.has("transition") {
		m.Transition = r.transition(f.node.child("transition"), f.key("transition"))
	}
	return m
}

// transition reads a square matrix whose rows are probability distributions:
// row k is what labels of class k turn into.
func (r *reader) transition(n *node, key string) [][]float64 {
	const want = "a square matrix of probabilities, each row adding up to 1"
	rows := r.list(n, key, want)
	matrix := make([][]float64, len(rows))
	for k, row := range rows {
		path := fmt.Sprintf("%s[%d]", key, k)
		cells := r.list(row, path, want)
		if len(cells) != len(rows) {
			r.fail(row, path, "%s has %d entries for %d classes, want %s", path, len(cells), len(rows), want)
			return nil
		}
		sum := 0.0
		for l, cell := range cells {
			p := r.number(cell, fmt.Sprintf("%s[%d]", path, l), fraction)
			matrix[k] = append(matrix[k], p)
			sum += p
		}
		if math.Abs(sum-1) > 1e-9 {
			r.fail(row, path, "%s adds up to %g, want %s", path, sum, want)
		}
	}
	return matrix
}

// data reads D_n, which may not be under the least contribution.
func (f fields) data(minimum int64) int64 {
	d := f.integer("data", 0)
	if d < minimum && f.r.err == nil {
		n := f.node.child("data")
		f.r.fail(n, f.key("data"), "%s is %s, want a whole number ≥ %d, the solver's minimum", f.key("data"), n.text, minimum)
	}
	return d
}

package scenario

import "time"

// Federation is the section `federation`: whom a round waits for when members
// are on other machines.
type Federation struct {
	Deadline time.Duration // how long a round waits for everybody; default 0, for ever
	Minimum  int           // updates that a round needs to go on at the deadline; default 1
}

// longest is the longest deadline that makes sense: a leap year.
const longest = 366 * 24 * time.Hour

func (r *reader) federation(top fields, members int) Federation {
	f := r.section(top, "federation", "deadline", "minimum")
	section := Federation{Minimum: int(f.integerOr("minimum", 1, 1))}
	if f.has("deadline") {
		section.Deadline = f.duration("deadline")
	}
	n := f.node.child("minimum")
	switch {
	case n == nil:
	case section.Minimum > members:
		r.fail(n, "federation.minimum", "federation.minimum is %s, want at most %d, as many as there are members", n.text, members)
	case !f.has("deadline"):
		r.fail(n, "federation.minimum", "federation.minimum is there without federation.deadline, want both: a round that waits for ever waits for all")
		r.hint("add a deadline such as 10m, or take the minimum out")
	}
	return section
}

// duration reads a time span such as 90s, 10m or 1h30m.
func (f fields) duration(name string) time.Duration {
	const want = "a duration such as 90s, 10m or 1h30m, of a year at most"
	n := f.node.child(name)
	if n.kind == text {
		if d, err := time.ParseDuration(n.text); err == nil && d > 0 && d <= longest {
			return d
		}
	}
	f.r.fail(n, f.key(name), "%s is %s, want %s", f.key(name), n.show(), want)
	if n.kind == number && numeral.MatchString(n.text) {
		f.r.hint("write the unit: %s: %ss", name, n.text)
	}
	return 0
}

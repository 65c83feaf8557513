package scenario

import (
	"fmt"
	"strconv"
	"strings"
)

// YAML returns the section as a line of a scenario file, ready to paste.
// Numbers keep every digit.
func (a *Accuracy) YAML() string {
	parts := []string{"form: " + a.Form}
	add := func(key string, x float64) { parts = append(parts, key+": "+numeralOf(x)) }
	switch a.Form {
	case "loglinear":
		var alpha []string
		for _, x := range a.Alpha {
			alpha = append(alpha, numeralOf(x))
		}
		parts = append(parts, "alpha: ["+strings.Join(alpha, ", ")+"]")
	case "power":
		add("a", a.A)
		add("b", a.B)
		add("c", a.C)
		add("d", a.D)
	case "exponential":
		add("a", a.A)
		add("b", a.B)
		add("c", a.C)
	case "expression":
		parts = append(parts, fmt.Sprintf("expression: %q", a.Expression))
	}
	if a.Gamma != 0 {
		add("gamma", a.Gamma)
	}
	for _, o := range []struct {
		key   string
		value *float64
	}{{"untrained", a.Untrained}, {"floor", a.Floor}, {"ceiling", a.Ceiling}} {
		if o.value != nil {
			add(o.key, *o.value)
		}
	}
	return "accuracy: {" + strings.Join(parts, ", ") + "}\n"
}

// numeralOf writes the shortest numeral that reads back as x.
func numeralOf(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

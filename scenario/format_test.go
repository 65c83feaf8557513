package scenario_test

import (
	"strings"
	"testing"

	"grange/scenario"
)

// TestFormatNamesEveryKey asks each section for its keys by giving it a wrong
// one, and looks for them in the documentation.
func TestFormatNamesEveryKey(t *testing.T) {
	const member = "members: [{name: a, data: 1, noise: 0, privacy: 0}]\n"
	for _, text := range []string{
		"zzzzzz: 1\n",
		"members: [{zzzzzz: 1}]\n",
		member + "accuracy: {form: loglinear, zzzzzz: 1}\n",
		member + "accuracy: {form: power, zzzzzz: 1}\n",
		member + "accuracy: {form: expression, zzzzzz: 1}\n",
		member + "profit: {form: power, zzzzzz: 1}\n",
		member + "cost: {form: power, zzzzzz: 1}\n",
		member + "solver: {zzzzzz: 1}\n",
		member + "training: {zzzzzz: 1}\n",
		member + "training: {split: {zzzzzz: 1}}\n",
		member + "federation: {zzzzzz: 1}\n",
	} {
		_, err := scenario.Parse("test.yaml", []byte(text))
		if err == nil {
			t.Fatalf("%q was accepted", text)
		}
		_, list, found := strings.Cut(err.Error(), "want one of ")
		if !found {
			t.Fatalf("%q: %v does not list keys", text, err)
		}
		for _, key := range strings.Split(list, ", ") {
			documented := strings.Contains(scenario.Format, "`"+key+"`") || strings.Contains(scenario.Format, "`"+key+":") ||
				strings.Contains(scenario.Format, "{"+key+":") || strings.Contains(scenario.Format, " "+key+":")
			if !documented {
				t.Errorf("format.md does not mention the key %q", key)
			}
		}
	}
}

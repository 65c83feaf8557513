package scenario_test

import (
	"errors"
	"strings"
	"testing"

	"grange/scenario"
)

// Every test changes one thing in this file.
const valid = `name: test
members:
  - {name: a, data: 100, noise: 0.1, privacy: 0.4}
  - {name: b, data: 100, noise: 0.0, privacy: 0.4}
accuracy: {form: loglinear, alpha: [1, 1, 1, 1, 1], gamma: 0.9}
profit: {form: quadratic, beta: [1, 0]}
cost: {form: linear}
mechanisms: [EG, LP]
negative: clip
solver: {start: 0.1, minimum: 1}
training: {dataset: fashion}
`

func TestInvalid(t *testing.T) {
	tests := []struct{ old, new, want string }{
		{"privacy: 0.4}\n  - {name: b", "privcy: 0.4}\n  - {name: b", `test.yaml:3:38: unknown key "privcy" in members[0], did you mean "privacy"?`},
		{"negative:", "negatve:", `test.yaml:9:1: unknown key "negatve", did you mean "negative"?`},
		{"negative:", "zzz:", `test.yaml:9:1: unknown key "zzz", want one of name, members, accuracy, profit, cost, mechanisms, negative, solver, training, federation`},
		{"gamma", "gamm", `test.yaml:5:53: unknown key "gamm" in accuracy, did you mean "gamma"?`},
		{"alpha: [1, 1, 1, 1, 1]", "alpha: [1, 1, 1, 1, 1], a: 3", `test.yaml:5:53: unknown key "a" in accuracy of form loglinear, want one of form, alpha, gamma, untrained, floor, ceiling`},
		{"data: 100, noise: 0.1", `data: "100", noise: 0.1`, `test.yaml:3:21: members[0].data is "100", want a whole number ≥ 0`},
		{"data: 100, noise: 0.1", "data: 100.5, noise: 0.1", `test.yaml:3:21: members[0].data is 100.5, want a whole number ≥ 0`},
		{"data: 100, noise: 0.1", "data: 0, noise: 0.1", `test.yaml:3:21: members[0].data is 0, want a whole number ≥ 1, the solver's minimum`},
		{"data: 100, noise: 0.1", "data: -5, noise: 0.1", `test.yaml:3:21: members[0].data is -5, want a whole number ≥ 0`},
		{"data: 100, noise: 0.1", "data: 010, noise: 0.1", `test.yaml:3:21: members[0].data is 010, which can be read in more than one way, want a whole number ≥ 0`},
		{"data: 100, noise: 0.1", "data: 0x10, noise: 0.1", `test.yaml:3:21: members[0].data is 0x10, which can be read in more than one way, want a whole number ≥ 0`},
		{"noise: 0.1", "noise: 1:30", `test.yaml:3:33: members[0].noise is 1:30, which can be read in more than one way, want a number in [0, 1)`},
		{"name: b", "name: 007", `test.yaml:4:12: members[1].name is 007, which can be read in more than one way, want the member's name, as text`},
		{"negative: clip", "negative: 0o7", `test.yaml:9:11: negative is 0o7, which can be read in more than one way, want one of clip, raw`},
		{"data: 100, noise: 0.1", "data: 9007199254740992, noise: 0.1", `test.yaml:4:21: members[1].data takes the members' data past 2^53 points together, where totals are no longer exact`},
		{"data: 100, noise: 0.1", "data: 99999999999999999999999, noise: 0.1", `test.yaml:3:21: members[0].data is 99999999999999999999999, want a whole number from 0 to 9007199254740992`},
		{"data: 100, noise: 0.1", "data: 9007199254740993, noise: 0.1", `test.yaml:3:21: members[0].data is 9007199254740993, want a whole number from 0 to 9007199254740992`},
		{"data: 100, noise: 0.1", "data: 9.007199254740993e15, noise: 0.1", `test.yaml:3:21: members[0].data is 9.007199254740993e15, want a whole number from 0 to 9007199254740992`},
		{"data: 100, noise: 0.1", "data: 1e999999999999999999999, noise: 0.1", `test.yaml:3:21: members[0].data is 1e999999999999999999999, want a whole number from 0 to 9007199254740992`},
		{"data: 100, noise: 0.1", "data: 1e-999, noise: 0.1", `test.yaml:3:21: members[0].data is 1e-999, want a whole number ≥ 0`},
		{"data: 100, noise: 0.1", "data: 100.00000000000000001, noise: 0.1", `test.yaml:3:21: members[0].data is 100.00000000000000001, want a whole number ≥ 0`},
		{"data: 100, noise: 0.1", "data: .inf, noise: 0.1", `test.yaml:3:21: members[0].data is .inf, want a whole number ≥ 0`},
		{"dataset: fashion", "seed: 9007199254740993", `test.yaml:11:18: training.seed is 9007199254740993, want a whole number from 0 to 9007199254740992`},
		{"noise: 0.1", "noise: 1", `test.yaml:3:33: members[0].noise is 1, want a number in [0, 1)`},
		{"noise: 0.1", "noise: -0.1", `test.yaml:3:33: members[0].noise is -0.1, want a number in [0, 1)`},
		{"noise: 0.1", "noise: .nan", `test.yaml:3:33: members[0].noise is .nan, want a number in [0, 1)`},
		{"noise: 0.1", "noise: .inf", `test.yaml:3:33: members[0].noise is .inf, want a number in [0, 1)`},
		{"noise: 0.1", "noise: 1e999", `test.yaml:3:33: members[0].noise is 1e999, want a number in [0, 1)`},
		{"noise: 0.1, privacy: 0.4", "noise: 0.1, privacy: .inf", `test.yaml:3:47: members[0].privacy is .inf, want a finite number ≥ 0`},
		{"beta: [1, 0]", "beta: [1, -.Inf]", `test.yaml:6:37: profit.beta[1] is -.Inf, want a finite number`},
		{"beta: [1, 0]", "beta: [.NaN, 0]", `test.yaml:6:34: profit.beta[0] is .NaN, want a finite number`},
		{"gamma: 0.9", "gamma: -1e999", `test.yaml:5:60: accuracy.gamma is -1e999, want a finite number`},
		{"name: b", "name: .nan", `test.yaml:4:12: members[1].name is .nan, want the member's name, as text`},
		{"negative: clip", "federation: {deadline: .inf}", `test.yaml:9:24: federation.deadline is .inf, want a duration such as 90s, 10m or 1h30m, of a year at most`},
		{"noise: 0.1", "noise: nan", `test.yaml:3:33: members[0].noise is "nan", want a number in [0, 1)`},
		{"noise: 0.1", "noise: true", `test.yaml:3:33: members[0].noise is true, want a number in [0, 1)`},
		{"noise: 0.1", "noise: [0.1]", `test.yaml:3:33: members[0].noise is a list of 1, want a number in [0, 1)`},
		{"noise: 0.1, ", "", `test.yaml:3:6: members[0] has no key "noise", want a number in [0, 1)`},
		{"privacy: 0.4}\n  - {name: b", "privacy: -0.4}\n  - {name: b", `test.yaml:3:47: members[0].privacy is -0.4, want a number ≥ 0`},
		{"privacy: 0.4}\n  - {name: b", "privacy: 0.4, transition: [[1, 0], [0.5]]}\n  - {name: b", `test.yaml:3:73: members[0].transition[1] has 1 entries for 2 classes, want a square matrix of probabilities, each row adding up to 1`},
		{"privacy: 0.4}\n  - {name: b", "privacy: 0.4, transition: [[1, 0], [0.5, 0.6]]}\n  - {name: b", `test.yaml:3:73: members[0].transition[1] adds up to 1.1, want a square matrix of probabilities, each row adding up to 1`},
		{"name: b", "name: a", `test.yaml:4:12: a second member named "a", the first is on line 3; want every name once`},
		{"name: b", "name: 5", `test.yaml:4:12: members[1].name is 5, want the member's name, as text`},
		{"name: b", "name: b, name: c", `test.yaml:4:15: key "name" appears twice, first on line 4`},
		{"negative: clip", "negative: clip\nnegative: raw", `test.yaml:10:1: key "negative" appears twice, first on line 9`},
		{"negative: clip", "negative: cut", `test.yaml:9:11: negative is "cut", want one of clip, raw`},
		{"mechanisms: [EG, LP]", "mechanisms: []", `test.yaml:8:13: mechanisms is an empty list, want a list of mechanisms out of EG, LP, LOO, SV`},
		{"mechanisms: [EG, LP]", "mechanisms: [EG, SVV]", `test.yaml:8:18: mechanisms[1] is "SVV", want one of EG, LP, LOO, SV; did you mean "SV"?`},
		{"mechanisms: [EG, LP]", "mechanisms: [EG, EG]", `test.yaml:8:18: mechanism EG is listed twice, want each once`},
		{"mechanisms: [EG, LP]", "mechanisms: EG", `test.yaml:8:13: mechanisms is "EG", want a list of mechanisms out of EG, LP, LOO, SV`},
		{"form: loglinear", "form: loglin", `test.yaml:5:18: accuracy.form is "loglin", want one of loglinear, power, exponential, expression; did you mean "loglinear"?`},
		{"accuracy: {form: loglinear, alpha: [1, 1, 1, 1, 1], gamma: 0.9}", "accuracy: 3", `test.yaml:5:11: accuracy is 3, want a mapping such as {form: loglinear, …}`},
		{"alpha: [1, 1, 1, 1, 1]", "alpha: [1, 1]", `test.yaml:5:36: accuracy.alpha has 2 numbers, want a list of five numbers, α1 … α5`},
		{"alpha: [1, 1, 1, 1, 1]", "alpha: [1, 1, 1, 1, x]", `test.yaml:5:49: accuracy.alpha[4] is "x", want a number`},
		{"gamma: 0.9", "floor: 1, ceiling: 0", `test.yaml:5:60: accuracy.floor is 1, above the ceiling 0; want floor ≤ ceiling`},
		{"beta: [1, 0]", "beta: [1]", `test.yaml:6:33: profit.beta has 1 numbers, want a list of two numbers, β1 and β2`},
		{"form: quadratic", "form: power", `test.yaml:6:10: profit has no key "exponent", want a number > 0`},
		{"cost: {form: linear}", "cost: {form: power, exponent: 0}", `test.yaml:7:31: cost.exponent is 0, want a number > 0`},
		{"cost: {form: linear}", "cost: {form: expression, expression: s +}", `test.yaml:7:38: cost.expression "s +": unexpected token EOF (1:3); want an expression in s with the functions ln, log, exp, sqrt, pow, abs, min, max, tanh`},
		{"cost: {form: linear}", "cost: {form: expression, expression: S}", `test.yaml:7:38: cost.expression "S": unknown name S; want an expression in s with the functions ln, log, exp, sqrt, pow, abs, min, max, tanh`},
		{"cost: {form: linear}", "cost: {form: expression, expression: s > 1}", `test.yaml:7:38: cost.expression "s > 1": expected float64, but got bool; want an expression in s with the functions ln, log, exp, sqrt, pow, abs, min, max, tanh`},
		{"cost: {form: linear}", "cost: {form: expression, expression: '(1..1000000000)[0]'}", `test.yaml:7:38: cost.expression "(1..1000000000)[0]": operator .. cannot be used; want an expression in s with the functions ln, log, exp, sqrt, pow, abs, min, max, tanh`},
		{"cost: {form: linear}", "cost: {form: expression, expression: " + strings.Repeat("(", 4_000_000) + "s" + strings.Repeat(")", 4_000_000) + "}", `test.yaml:7:38: cost.expression "(((((((((((((((((((((((((((((((((((((((…": 8000001 bytes long, more than the 4096 an expression may have; want an expression in s with the functions ln, log, exp, sqrt, pow, abs, min, max, tanh`},
		{"start: 0.1", "start: 1.5", `test.yaml:10:17: solver.start is 1.5, want a fraction in [0, 1] or a list of 2 contributions`},
		{"start: 0.1", "start: [1]", `test.yaml:10:17: solver.start has 1 contributions, want 2, one per member`},
		{"start: 0.1", "start: [1, 101]", `test.yaml:10:21: solver.start[1] is 101, want a whole number from 1 to 100`},
		{"start: 0.1", "start: [0, 1]", `test.yaml:10:18: solver.start[0] is 0, want a whole number from 1 to 100`},
		{"minimum: 1", "minimum: -1", `test.yaml:10:31: solver.minimum is -1, want 1, as in Algorithm 1, or 0`},
		{"minimum: 1", "minimum: 2", `test.yaml:10:31: solver.minimum is 2, want 1, as in Algorithm 1, or 0`},
		{"minimum: 1", "minimum: 0.5", `test.yaml:10:31: solver.minimum is 0.5, want 1, as in Algorithm 1, or 0`},
		{"minimum: 1", "minimum: .nan", `test.yaml:10:31: solver.minimum is .nan, want 1, as in Algorithm 1, or 0`},
		{"minimum: 1", "minimum: true", `test.yaml:10:31: solver.minimum is true, want 1, as in Algorithm 1, or 0`},
		{"minimum: 1", "tolerance: 0", `test.yaml:10:33: solver.tolerance is 0, want a number > 0`},
		{"minimum: 1", "max_iterations: 0", `test.yaml:10:38: solver.max_iterations is 0, want a whole number ≥ 1`},
		{"dataset: fashion", "dataset: fasion", `test.yaml:11:21: training.dataset is "fasion", want one of fashion, fashion-full, cifar10, folder:PATH; did you mean "fashion"?`},
		{"dataset: fashion", "model: vgg", `test.yaml:11:19: training.model is "vgg", want one of mlp, softmax, cnn, resnet18`},
		{"dataset: fashion", "backend: gpu", `test.yaml:11:21: training.backend is "gpu", want cpu or xla:NAME, such as xla:cuda`},
		{"dataset: fashion", "split: {kind: shares, shares: [1, 1]}", `test.yaml:11:42: training.split.shares adds up to 2, want at most 1`},
		{"dataset: fashion", "split: {kind: uniform, alpha: 1}", `test.yaml:11:35: unknown key "alpha" in training.split of kind uniform, want one of kind`},
		{"negative: clip", "federation: {deadline: 600}", `test.yaml:9:24: federation.deadline is 600, want a duration such as 90s, 10m or 1h30m, of a year at most`},
		{"negative: clip", "federation: {deadline: soon}", `test.yaml:9:24: federation.deadline is "soon", want a duration such as 90s, 10m or 1h30m, of a year at most`},
		{"negative: clip", "federation: {deadline: -5m}", `test.yaml:9:24: federation.deadline is "-5m", want a duration such as 90s, 10m or 1h30m, of a year at most`},
		{"negative: clip", "federation: {deadline: 90000h}", `test.yaml:9:24: federation.deadline is "90000h", want a duration such as 90s, 10m or 1h30m, of a year at most`},
		{"negative: clip", "federation: {deadline: 5m, minimum: 0}", `test.yaml:9:37: federation.minimum is 0, want a whole number ≥ 1`},
		{"negative: clip", "federation: {deadline: 5m, minimum: 3}", `test.yaml:9:37: federation.minimum is 3, want at most 2, as many as there are members`},
		{"negative: clip", "federation: {minimum: 2}", `test.yaml:9:23: federation.minimum is there without federation.deadline, want both: a round that waits for ever waits for all`},
		{"negative: clip", "federation: {wait: 5m}", `test.yaml:9:14: unknown key "wait" in federation, want one of deadline, minimum`},
		{"negative: clip", "negative: &x clip", `test.yaml:9:11: negative has "&": anchors, aliases and merges are not accepted, want the value written out`},
		{"negative: clip", "negative: *x", `test.yaml:9:11: negative has "*": anchors, aliases and merges are not accepted, want the value written out`},
		{"noise: 0.1", "noise: *x", `test.yaml:3:33: members[0].noise has "*": anchors, aliases and merges are not accepted, want the value written out`},
		{"noise: 0.1", "<<: {a: 1}", `test.yaml:3:26: members[0] has "<<": anchors, aliases and merges are not accepted, want the value written out`},
		{"negative: clip", "negative: !!str clip", `test.yaml:9:11: negative has "!!str": tags are not accepted, want a plain value`},
		{"noise: 0.1", "noise: !!float 0.1", `test.yaml:3:33: members[0].noise has "!!float": tags are not accepted, want a plain value`},
		{"noise: 0.1", "noise: !own 0.1", `test.yaml:3:33: members[0].noise has "!own": tags are not accepted, want a plain value`},
		{"alpha: [1, 1, 1, 1, 1]", "alpha: [1, 1, &x 1, 1, 1]", `test.yaml:5:43: accuracy.alpha[2] has "&": anchors, aliases and merges are not accepted, want the value written out`},
		{"negative: clip", "negative: " + strings.Repeat("!x ", 100_000), `test.yaml:9:`},
		{"negative: clip", "negative: " + strings.Repeat("&x\n ", 100_000), `test.yaml:`},
		{"negative: clip", "negative: [clip", `test.yaml:`},
		{"negative: clip", "negative: " + strings.Repeat("[", 100_000), `test.yaml:9:27: nested deeper than 16 levels`},
		{"negative: clip", "? [a, b]\n: clip", `test.yaml:`},
		{"training: {dataset: fashion}\n", "---\nname: again\n", `test.yaml:12:5: a second YAML document, want one per file`},
		{"name: test\n", "name: ''\n", `test.yaml:1:7: name is empty, want the scenario's name`},
	}
	for _, tt := range tests {
		text := strings.Replace(valid, tt.old, tt.new, 1)
		if text == valid {
			t.Errorf("%q is not in the file", tt.old)
			continue
		}
		_, err := scenario.Parse("test.yaml", []byte(text))
		if err == nil {
			t.Errorf("%s: no error, want %s", shorten(tt.new), tt.want)
			continue
		}
		if !errors.Is(err, scenario.ErrInvalid) {
			t.Errorf("%s: %v does not wrap ErrInvalid", shorten(tt.new), err)
		}
		if got := err.Error(); got != tt.want && !(strings.HasSuffix(tt.want, ":") && strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s:\n got %s\nwant %s", shorten(tt.new), got, tt.want)
		}
	}
}

func shorten(s string) string { return s[:min(len(s), 80)] }

func TestInvalidWholeFiles(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+", ", 9), ", ") + "]\n"
	}
	for text, want := range map[string]string{
		"":                             "test.yaml: empty, want a scenario",
		"   \n\n":                      "test.yaml: empty, want a scenario",
		"# only a comment\n":           "test.yaml: empty, want a scenario",
		"---\n":                        "test.yaml:",
		"null":                         "test.yaml:",
		"just words":                   `test.yaml:1:1: the file is "just words", want a mapping with the keys name`,
		"- 1\n- 2\n":                   "test.yaml:1:1: the file is a list of 2, want a mapping",
		"name: x\n":                    `test.yaml:1:1: the file has no key "members", want a list of members`,
		"members: []\n":                "test.yaml:1:10: members is an empty list, want a list of members",
		"members: {}\n":                "test.yaml:1:10: members is a mapping, want a list of members",
		"members:\n":                   "test.yaml:1:10: members is nothing, want a list of members",
		"members: [a]\n":               `test.yaml:1:11: members[0] is "a", want a mapping with the keys name, data`,
		"<<: {a: 1}\n":                 `test.yaml:1:1: the file has "<<": anchors, aliases and merges are not accepted`,
		"\x00\x01\x02":                 "test.yaml:",
		"a: 1\nb: \xff\n":              "test.yaml:2:4: not text in UTF-8",
		"a: b: c":                      "test.yaml:1:",
		"\ta: 1":                       "test.yaml:",
		bomb:                           `test.yaml:1:4: a has "&": anchors, aliases and merges are not accepted`,
		strings.Repeat("- ", 100_000):  "test.yaml:1:",
		strings.Repeat("{a: ", 100000): "test.yaml:1:",
	} {
		_, err := scenario.Parse("test.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", text, err, want)
		}
	}
}

func TestVary(t *testing.T) {
	s, err := scenario.Parse("test.yaml", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Vary("members[0:2].noise", 0.25)
	if err != nil {
		t.Fatal(err)
	}
	if v.Members[0].Noise != 0.25 || v.Members[1].Noise != 0.25 || s.Members[0].Noise != 0.1 {
		t.Errorf("varied %v, original %v", v.Members, s.Members)
	}
	for key, read := range map[string]func(*scenario.Scenario) float64{
		"members[1].privacy":   func(s *scenario.Scenario) float64 { return s.Members[1].Privacy },
		"members[b].data":      func(s *scenario.Scenario) float64 { return float64(s.Members[1].Data) },
		"members[1:].outside":  func(s *scenario.Scenario) float64 { return s.Members[1].Outside },
		"members[:1].data":     func(s *scenario.Scenario) float64 { return float64(s.Members[0].Data) },
		"profit.beta[1]":       func(s *scenario.Scenario) float64 { return s.Profit.Beta[1] },
		"accuracy.alpha[4]":    func(s *scenario.Scenario) float64 { return s.Accuracy.Alpha[4] },
		"accuracy.ceiling":     func(s *scenario.Scenario) float64 { return *s.Accuracy.Ceiling },
		"solver.tolerance":     func(s *scenario.Scenario) float64 { return s.Solver.Tolerance },
		"training.rounds":      func(s *scenario.Scenario) float64 { return float64(s.Training.Rounds) },
		"training.global_rate": func(s *scenario.Scenario) float64 { return s.Training.GlobalRate },
	} {
		v, err := s.Vary(key, 7)
		if err != nil {
			t.Error(err)
		} else if got := read(v); got != 7 {
			t.Errorf("%s = %v, want 7", key, got)
		}
	}
	for key, want := range map[string]string{
		"members[0:3].noise":   "members[0:3] does not exist, want from:to with 0 ≤ from < to ≤ 2",
		"members[2].noise":     "members[2] does not exist, want an index from 0 to 1",
		"members[0].nois":      `unknown key "nois" in members[0], did you mean "noise"?`,
		"members[0].noise":     "members[0].noise is 7, want a number in [0, 1)",
		"solver.minimum":       "solver.minimum is 7, want 1, as in Algorithm 1, or 0",
		"members[0]":           "members[0] is a mapping, want one of its keys",
		"members.noise":        "members is a list, want an index such as members[0]",
		"acuracy.gamma":        `the file has no acuracy, did you mean "accuracy"?`,
		"accuracy":             "accuracy is a section, want one of its keys: form, alpha, gamma",
		"profit.beta":          "profit.beta is a list, want an index such as profit.beta[0]",
		"profit.beta[0].x":     "profit.beta[0] is 1 and has no keys",
		"profit.gamma[0]":      "the file has no profit.gamma",
		"name":                 "name is 7, want the scenario's name",
		"":                     "is not a key",
		"members[0]..noise":    "is not a key",
		"members[nobody].data": "members[nobody] does not exist, want an index from 0 to 1 or a name",
	} {
		_, err := s.Vary(key, 7)
		if !errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", key, err, want)
		}
	}
}

// Whole numbers are read digit by digit, however they are written.
func TestWholeNumbers(t *testing.T) {
	for text, want := range map[string]int64{
		"9007199254740991": 1<<53 - 1, "9007199254740892": 1<<53 - 100, "1e3": 1000, "1.5e3": 1500, "+1_000": 1000, "100.0": 100, "1000e-1": 100,
	} {
		s, err := scenario.Parse("test.yaml", []byte(strings.Replace(strings.Replace(valid, "data: 100", "data: "+text, 1), "data: 100, noise: 0.0", "data: 1, noise: 0.0", 1)))
		if err != nil {
			t.Error(err)
		} else if got := s.Members[0].Data; got != want {
			t.Errorf("%s is read as %d, want %d", text, got, want)
		}
	}
}

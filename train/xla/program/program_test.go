package program

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"grange/model"
)

// programs writes every program of every architecture.
func programs(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, name := range model.Names() {
		spec, err := model.New(name, model.Shape{Channels: 3, Height: 32, Width: 28}, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []Precision{BFloat16, Float32} {
			o := Options{Images: 100, Batch: 8, Steps: 3, Precision: p}
			all[name+" train "+string(p)] = Train(spec, o)
			all[name+" score "+string(p)] = Score(spec, o)
			o.Momentum, o.Proximal = true, true
			all[name+" train all "+string(p)] = Train(spec, o)
		}
	}
	return all
}

var (
	defined   = regexp.MustCompile(`^(%\w+)(?::\d+)? = "stablehlo\.(\w+)"`)
	operation = regexp.MustCompile(`"(?:stablehlo|func)\.(\w+)"\(([^)]*)\)`)
	typed     = regexp.MustCompile(`(%\w+): (tensor<[^>]*>)`)
	ending    = regexp.MustCompile(` : \(([^()]*)\) -> \(?([^()]*)\)?$`)
)

// TestSound reads the programs back: every operand is defined before it is used, with the type it is used with, and
// operations on elements do not change the type.
func TestSound(t *testing.T) {
	for name, text := range programs(t) {
		types := map[string]string{}
		var open []string // operations whose regions are being read
		for number, line := range strings.Split(text, "\n") {
			fault := func(what string) { t.Fatalf("%s, line %d: %s: %.300s", name, number+1, what, line) }
			for _, m := range typed.FindAllStringSubmatch(line, -1) {
				types[m[1]] = m[2]
			}
			begun := operation.FindStringSubmatch(line)
			if begun != nil && strings.HasSuffix(line, "{") {
				open = append(open, line)
				continue
			}
			end := ending.FindStringSubmatch(line)
			if end == nil {
				continue
			}
			if begun == nil {
				begun = operation.FindStringSubmatch(open[len(open)-1])
				line = open[len(open)-1]
				open = open[:len(open)-1]
			}
			operands, used := list(begun[2]), list(end[1])
			if len(operands) != len(used) {
				fault("operands without types")
			}
			for i, operand := range operands {
				if types[operand] != used[i] {
					fault(operand + " is " + types[operand] + ", used as " + used[i])
				}
			}
			results := list(end[2])
			if d := defined.FindStringSubmatch(line); d != nil {
				types[d[1]] = results[0]
				for i, result := range results {
					types[fmt.Sprintf("%s#%d", d[1], i)] = result
				}
				switch d[2] {
				case "add", "subtract", "multiply", "divide", "maximum":
					if used[0] != used[1] || used[0] != results[0] {
						fault("types differ")
					}
				}
			}
		}
		if len(open) != 0 {
			t.Errorf("%s: %d operations do not end", name, len(open))
		}
	}
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ", ")
}

// TestSame writes programs twice: the text is the key under which a compiled one is kept.
func TestSame(t *testing.T) {
	first, second := programs(t), programs(t)
	for name, text := range first {
		if text != second[name] {
			t.Errorf("%s is not written the same twice", name)
		}
	}
}

// TestPrecision looks for where each type belongs.
func TestPrecision(t *testing.T) {
	for name, text := range programs(t) {
		low := strings.HasSuffix(name, "bf16")
		if strings.Contains(text, "bf16") != low {
			t.Errorf("%s: bf16 %v", name, !low)
		}
		if strings.Contains(text, "precision HIGHEST") == low {
			t.Errorf("%s: highest precision %v", name, low)
		}
		for _, line := range strings.Split(text, "\n") {
			if strings.Contains(line, `"stablehlo.reduce"`) && strings.Contains(line, "bf16") {
				t.Errorf("%s sums in bfloat16: %s", name, line)
			}
		}
	}
}

package interval_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"grange/interval"
)

// function is a smooth function with its jet, built at random.
type function struct {
	at  func(x float64) float64
	jet interval.Jet
}

// draw builds a random expression of the given depth over x in [a, b]. What
// may be large is not looked at: there rounding would drown the test.
func draw(t *rapid.T, depth int, a, b float64) function {
	f := build(t, depth, a, b)
	if f.jet.Value.Magnitude() > 100 {
		f.jet = interval.Unknown
	}
	return f
}

func build(t *rapid.T, depth int, a, b float64) function {
	if depth == 0 {
		if rapid.Bool().Draw(t, "variable") {
			return function{func(x float64) float64 { return x }, interval.Variable(a, b)}
		}
		c := rapid.Float64Range(-3, 3).Draw(t, "constant")
		return function{func(float64) float64 { return c }, interval.Constant(c)}
	}
	f := draw(t, depth-1, a, b)
	switch rapid.IntRange(0, 7).Draw(t, "operation") {
	case 0:
		g := draw(t, depth-1, a, b)
		return function{func(x float64) float64 { return f.at(x) + g.at(x) }, f.jet.Add(g.jet)}
	case 1:
		g := draw(t, depth-1, a, b)
		return function{func(x float64) float64 { return f.at(x) - g.at(x) }, f.jet.Sub(g.jet)}
	case 2:
		g := draw(t, depth-1, a, b)
		return function{func(x float64) float64 { return f.at(x) * g.at(x) }, f.jet.Mul(g.jet)}
	case 3:
		g := draw(t, depth-1, a, b)
		quotient := function{func(x float64) float64 { return f.at(x) / g.at(x) }, f.jet.Div(g.jet)}
		if g.jet.Value.Inverse().Magnitude() > 20 {
			quotient.jet = interval.Unknown
		}
		return quotient
	case 4:
		k := rapid.SampledFrom([]float64{-2, -0.7, 0.3, 1.5}).Draw(t, "factor")
		return function{func(x float64) float64 { return k*f.at(x) + 1 }, f.jet.Scale(k).Shift(1)}
	case 5:
		return function{func(x float64) float64 { return max(f.at(x), 0) }, f.jet.PositivePart()}
	case 6:
		p := rapid.SampledFrom([]float64{0.5, 1, 1.5, 2, 3}).Draw(t, "power")
		return function{func(x float64) float64 { return math.Pow(max(f.at(x), 0), p) }, f.jet.Power(p)}
	}
	return function{func(x float64) float64 { return min(max(f.at(x), -0.5), 0.7) }, f.jet.Clamp(-0.5, 0.7)}
}

// TestJetsEnclose checks values, difference quotients and second differences
// of random expressions against their jets.
func TestJetsEnclose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(-2, 2).Draw(t, "a")
		b := a + rapid.Float64Range(0.01, 1).Draw(t, "width")
		f := draw(t, rapid.IntRange(1, 4).Draw(t, "depth"), a, b)
		if f.jet == interval.Unknown {
			return
		}
		h := (b - a) / 16
		for i := 1; i < 16; i++ {
			low, middle, high := f.at(a+float64(i-1)*h), f.at(a+float64(i)*h), f.at(a+float64(i+1)*h)
			if math.IsNaN(low + middle + high) {
				continue
			}
			scale := 1 + math.Abs(low) + math.Abs(middle) + math.Abs(high)
			within(t, "value", f.jet.Value, middle, 1e-6*scale)
			within(t, "slope", f.jet.Slope, (high-middle)/h, 1e-6*scale/h)
			within(t, "second", f.jet.Second, (high-2*middle+low)/(h*h), 1e-6*scale/(h*h))
		}
	})
}

func within(t *rapid.T, what string, i interval.Interval, x, slack float64) {
	if !math.IsNaN(x) && !math.IsInf(x, 0) && !(x >= i.Lo-slack && x <= i.Hi+slack) {
		t.Fatalf("%s %v outside [%v, %v]", what, x, i.Lo, i.Hi)
	}
}

func TestIntervalEdges(t *testing.T) {
	if got := interval.Of(math.NaN(), 1); got != interval.Whole {
		t.Errorf("Of(NaN, 1) = %v, want everything", got)
	}
	if got := (interval.Interval{Lo: -1, Hi: 2}).Inverse(); got != interval.Whole {
		t.Errorf("1/[-1, 2] = %v, want everything", got)
	}
	if got := (interval.Interval{Lo: -3, Hi: 2}).Square(); got != (interval.Interval{Lo: 0, Hi: 9}) {
		t.Errorf("[-3, 2]² = %v, want [0, 9]", got)
	}
	if got := (interval.Interval{Lo: -3, Hi: 2}).Magnitude(); got != 3 {
		t.Errorf("magnitude of [-3, 2] = %v, want 3", got)
	}
}

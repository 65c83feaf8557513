package chart

import (
	"math"
	"strconv"
	"strings"
)

// scale maps data to positions along one axis.
type scale struct {
	min, max float64
	from, to float64
}

func (s scale) at(v float64) float64 {
	return s.from + (v-s.min)/(s.max-s.min)*(s.to-s.from)
}

// ticks returns the multiples of step within [min, max].
func ticks(min, max, step float64) []float64 {
	var out []float64
	for k := math.Ceil(min/step - 1e-9); k*step <= max+1e-9*step; k++ {
		out = append(out, k*step)
	}
	return out
}

// niceStep rounds up to 1, 2, 2.5 or 5 times a power of ten.
func niceStep(raw float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 2.5, 5} {
		if raw <= m*power*(1+1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// values calls yield for every coordinate a panel shows.
func (p Panel) values(yield func(x, y float64)) {
	for _, l := range p.Lines {
		for _, v := range l.Points {
			yield(v.X, v.Y)
			if v.Low != v.High {
				yield(v.X, v.Low)
				yield(v.X, v.High)
			}
		}
	}
	for _, b := range p.Bars {
		for i, v := range b.Values {
			yield(float64(i), v.Y)
			yield(float64(i), 0)
			if v.Low != v.High {
				yield(float64(i), v.Low)
				yield(float64(i), v.High)
			}
		}
	}
}

// ranges finds the range of both axes, and the distance of ticks on the second.
func (p Panel) ranges() (x, y [2]float64, step float64) {
	x = [2]float64{math.Inf(1), math.Inf(-1)}
	y = x
	p.values(func(vx, vy float64) {
		x = [2]float64{min(x[0], vx), max(x[1], vx)}
		y = [2]float64{min(y[0], vy), max(y[1], vy)}
	})
	y, step = p.Y.round(p.Y.widen(y))
	return p.X.widen(x), y, step
}

func (a Axis) widen(r [2]float64) [2]float64 {
	if a.Fixed {
		return [2]float64{a.Min, a.Max}
	}
	if n := max(len(a.Categories), len(a.Values)); n > 0 {
		return [2]float64{-0.5, float64(n) - 0.5}
	}
	if a.FromZero {
		r = [2]float64{min(r[0], 0), max(r[1], 0)}
	}
	if math.IsInf(r[0], 0) {
		r = [2]float64{0, 1}
	}
	if r[1]-r[0] < 1e-12*max(1, math.Abs(r[1])) {
		half := max(math.Abs(r[1])/10, 1e-3)
		r = [2]float64{r[0] - half, r[1] + half}
	}
	return r
}

// round widens a range to whole ticks and returns their distance.
func (a Axis) round(r [2]float64) (whole [2]float64, step float64) {
	step = a.step(r[1]-r[0], 5)
	if a.Fixed || len(a.Categories) > 0 {
		return r, step
	}
	if r[0] < 0 && r[0] > -0.03*step { // a hair under zero is no reason for a tick
		r[0] = 0
	}
	return [2]float64{math.Floor(r[0]/step+1e-9) * step, math.Ceil(r[1]/step-1e-9) * step}, step
}

// step is the distance of ticks that divide a range into some parts.
func (a Axis) step(length float64, parts int) float64 {
	step := niceStep(length / float64(parts))
	if a.Counts {
		step = max(1, step)
		if step != math.Trunc(step) { // 2.5
			step *= 2
		}
	}
	return step
}

// roomyStep is the distance of ticks whose labels fit beside each other.
func (a Axis) roomyStep(min, max, room float64) float64 {
	for parts := 6; ; parts-- {
		step := a.step(max-min, parts)
		need := 0.0
		for _, v := range ticks(min, max, step) {
			need += textWidth(a.label(v, step), smallText) + 8
		}
		if need <= room || parts == 1 {
			return step
		}
	}
}

// valueLabel writes a number that stands for a category.
func valueLabel(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e12 {
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	}
	return strings.Replace(strconv.FormatFloat(v, 'g', 6, 64), "-", "−", 1)
}

// label writes a number of an axis.
func (a Axis) label(v, step float64) string {
	unit := ""
	if a.Percent {
		v, step, unit = 100*v, 100*step, "%"
	}
	decimals := 0
	for s := step; decimals < 6 && math.Abs(s-math.Round(s)) > 1e-9*math.Abs(s)+1e-12; s *= 10 {
		decimals++
	}
	return group(strconv.FormatFloat(v+0, 'f', decimals, 64)) + unit
}

// group puts thin spaces between thousands.
func group(text string) string {
	whole, rest, dot := strings.Cut(text, ".")
	sign := ""
	if w, ok := strings.CutPrefix(whole, "-"); ok {
		sign, whole = "−", w
	}
	if len(whole) > 4 {
		var parts []string
		for len(whole) > 3 {
			parts = append([]string{whole[len(whole)-3:]}, parts...)
			whole = whole[:len(whole)-3]
		}
		whole = strings.Join(append([]string{whole}, parts...), "\u202f")
	}
	if dot {
		whole += "." + rest
	}
	return sign + whole
}

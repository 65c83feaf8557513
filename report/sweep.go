package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"grange/game"
)

// Sweep is what members contribute at equilibrium while one key of the
// scenario changes: the paper's Figures 3 and 4.
type Sweep struct {
	Key     string    // what changes, such as members[0:3].noise
	Values  []float64 // its values
	Members []string
	Varied  []bool     // whose value changes; nil when it is nobody's own
	Rows    []SweepRow // one row of panels per combination of further keys
}

// SweepRow is one row of panels.
type SweepRow struct {
	Label  string // "" when there is only one row
	Panels []Panel
}

// Panel is one mechanism.
type Panel struct {
	Mechanism     string
	Contributions []game.Profile // one per value
	Proven        []bool         // whether each is a certified equilibrium
}

const (
	maxRows        = 6
	listedMembers  = 10 // more members are drawn as a distribution
	panelWidth     = 2.35 * vg.Inch
	panelHeight    = 2.1 * vg.Inch
	leftMargin     = 0.75 * vg.Inch
	bottomMargin   = 0.3 * vg.Inch
	legendLine     = 0.2 * vg.Inch
	legendGap      = 0.12 * vg.Inch
	labelSize      = 10
	tickSize       = 8.5
	maxBarsInPanel = 60
)

// CheckFigure says whether a sweep can be drawn, before it is solved.
func CheckFigure(s Sweep) error {
	if len(s.Rows) > maxRows {
		return fmt.Errorf("%w: %d rows of panels, want at most %d", ErrFigure, len(s.Rows), maxRows)
	}
	return nil
}

// Draw draws a sweep: one panel per mechanism, all with the same axes.
// Contributions that are not a proven equilibrium are drawn hollow.
func Draw(s Sweep, format string) ([]byte, error) {
	if err := CheckFigure(s); err != nil {
		return nil, err
	}
	if len(s.Rows) == 0 || len(s.Rows[0].Panels) == 0 || len(s.Values) == 0 || len(s.Members) == 0 {
		return nil, fmt.Errorf("%w: an empty sweep", ErrFigure)
	}
	f := &sweepFigure{Sweep: s, legend: newLegend(s)}
	columns := len(s.Rows[0].Panels)
	width := leftMargin + vg.Length(columns)*panelWidth
	legendHeight := legendGap + vg.Length(f.legend.lines(width))*legendLine
	height := bottomMargin + vg.Length(len(s.Rows))*panelHeight + legendHeight
	return render(format, width, height, func(c draw.Canvas) {
		f.legend.draw(draw.Crop(c, 0, 0, c.Max.Y-legendHeight, 0))
		f.axisTitles(draw.Crop(c, 0, 0, 0, -legendHeight))
		f.panels(draw.Crop(c, 0.3*vg.Inch, -0.08*vg.Inch, bottomMargin, -legendHeight))
	})
}

type sweepFigure struct {
	Sweep
	legend *legend
}

// axisTitles writes what the axes are, once for all panels.
func (f *sweepFigure) axisTitles(c draw.Canvas) {
	x := style(labelSize, false, ink)
	x.XAlign, x.YAlign = draw.XCenter, draw.YBottom
	middle := (c.Min.X + leftMargin + c.Max.X) / 2
	c.FillText(x, vg.Point{X: middle, Y: c.Min.Y + 0.09*vg.Inch}, axisTitle(f.Sweep))
	y := style(labelSize, false, ink)
	y.Rotation = math.Pi / 2
	y.XAlign, y.YAlign = draw.XCenter, draw.YTop
	c.FillText(y, vg.Point{X: c.Min.X + 0.1*vg.Inch, Y: (c.Min.Y + bottomMargin + c.Max.Y) / 2}, "contribution s* (data points)")
}

func (f *sweepFigure) panels(c draw.Canvas) {
	top := 1.0
	for _, row := range f.Rows {
		for _, p := range row.Panels {
			for _, s := range p.Contributions {
				top = math.Max(top, float64(slices.Max(s)))
			}
		}
	}
	plots := make([][]*plot.Plot, len(f.Rows))
	for r, row := range f.Rows {
		for i, p := range row.Panels {
			drawn := f.panel(p, top)
			if i > 0 {
				drawn.Y.Tick.Marker = unlabelled{drawn.Y.Tick.Marker}
			}
			plots[r] = append(plots[r], drawn)
		}
	}
	title := f.titleHeight()
	tiles := draw.Tiles{Rows: len(f.Rows), Cols: len(plots[0]), PadX: 0.16 * vg.Inch, PadY: title, PadTop: title, PadRight: 0.1 * vg.Inch}
	canvases := plot.Align(plots, tiles, c)
	for r, row := range f.Rows {
		for i, p := range row.Panels {
			plots[r][i].Draw(canvases[r][i])
			f.title(plots[r][i].DataCanvas(canvases[r][i]), p.Mechanism, row.Label)
		}
	}
}

func (f *sweepFigure) titleHeight() vg.Length {
	if f.Rows[0].Label == "" {
		return 0.22 * vg.Inch
	}
	return 0.42 * vg.Inch
}

// title names a panel, and the row where there are several.
func (f *sweepFigure) title(data draw.Canvas, mechanism, row string) {
	at := vg.Point{X: (data.Min.X + data.Max.X) / 2, Y: data.Max.Y + vg.Points(6)}
	name := style(labelSize, true, ink)
	name.XAlign, name.YAlign = draw.XCenter, draw.YBottom
	if row != "" {
		label := style(tickSize, false, muted)
		label.XAlign, label.YAlign = draw.XCenter, draw.YBottom
		data.FillText(label, at, row)
		at.Y += vg.Points(13)
	}
	data.FillText(name, at, panelTitle(mechanism))
}

// panel draws one mechanism.
func (f *sweepFigure) panel(p Panel, top float64) *plot.Plot {
	out := plot.New()
	for _, axis := range []*plot.Axis{&out.X, &out.Y} {
		axis.Tick.Label.Font = sans(tickSize, false)
		axis.Tick.Label.Color = ink
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = muted, muted
		axis.LineStyle.Width, axis.Tick.LineStyle.Width = vg.Points(0.6), vg.Points(0.6)
		axis.Tick.Length = vg.Points(3.5)
		axis.Padding = 0
	}
	step := math.Max(1, roundStep(top/5))
	out.Y.Min, out.Y.Max = 0, 1.02*step*math.Ceil(top/step)
	out.Y.Tick.Marker = pointTicks{}
	switch {
	case len(f.Members) > listedMembers:
		out.Add(gridLines{}, band{f.Values, p})
		f.numericAxis(out)
	case len(f.Values)*len(f.Members) > maxBarsInPanel:
		out.Add(gridLines{}, lines{f.Values, p, f.legend.colours})
		f.numericAxis(out)
	default:
		out.Add(gridLines{}, bars{p, f.legend.colours})
		out.X.Min, out.X.Max = -0.5, float64(len(f.Values))-0.5
		out.X.Tick.Marker = valueTicks(f.Values)
		out.X.Tick.LineStyle.Color = color.Transparent
	}
	return out
}

func (f *sweepFigure) numericAxis(p *plot.Plot) {
	p.X.Min, p.X.Max = slices.Min(f.Values), slices.Max(f.Values)
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	p.X.Padding = vg.Points(4)
	p.X.Tick.Marker = fewTicks{}
}

func panelTitle(mechanism string) string {
	if name := map[string]string{
		"EG": "equal shares", "LP": "by clean data", "LOO": "leave one out", "SV": "Shapley value",
	}[mechanism]; name != "" {
		return mechanism + " · " + name
	}
	return mechanism
}

// axisTitle says in words what a key is, and whose.
func axisTitle(s Sweep) string {
	key := s.Key[strings.LastIndex(s.Key, ".")+1:]
	title := map[string]string{
		"noise":   "ε, share of wrong labels",
		"privacy": "μ, privacy sensitivity",
		"data":    "D, data points owned",
		"outside": "payoff outside",
	}[key]
	if !strings.HasPrefix(s.Key, "members[") || title == "" {
		return s.Key
	}
	var whose []string
	for n, v := range s.Varied {
		if v {
			whose = append(whose, s.Members[n])
		}
	}
	switch {
	case len(whose) == 0 || len(whose) > 5:
		return fmt.Sprintf("%s (%s)", title, s.Key)
	case len(whose) == len(s.Members):
		return title + ", of all members"
	case len(whose) == 1:
		return title + ", of " + whose[0]
	}
	last := len(whose) - 1
	return title + ", of " + strings.Join(whose[:last], ", ") + " and " + whose[last]
}

// pointTicks are round numbers of data points, with thousands set apart.
type pointTicks struct{}

func (pointTicks) Ticks(low, high float64) []plot.Tick {
	step := math.Max(1, roundStep((high-low)/5))
	var ticks []plot.Tick
	for i := math.Ceil(low / step); i*step <= high; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: thousands(i * step)})
	}
	return ticks
}

// roundStep returns the 1, 2 or 5 times a power of ten that is nearest above
// three quarters of x.
func roundStep(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, k := range []float64{1, 2, 5} {
		if k*power >= 0.75*x {
			return k * power
		}
	}
	return 10 * power
}

func thousands(x float64) string {
	digits, sign := strconv.FormatFloat(math.Abs(x), 'f', 0, 64), ""
	if x < 0 {
		sign = "−"
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// fewTicks are a handful of round numbers.
type fewTicks struct{}

func (fewTicks) Ticks(low, high float64) []plot.Tick {
	step := roundStep((high - low) / 4)
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		at := i*step + 0 // no −0
		ticks = append(ticks, plot.Tick{Value: at, Label: numberLabel(at)})
	}
	return ticks
}

// numberLabel prints six significant digits, and thousands set apart.
func numberLabel(x float64) string {
	if a := math.Abs(x); a >= 1e4 && a < 1e12 && x == math.Trunc(x) {
		return thousands(x)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// unlabelled has the ticks but not their labels.
type unlabelled struct{ plot.Ticker }

func (u unlabelled) Ticks(low, high float64) []plot.Tick {
	ticks := slices.Clone(u.Ticker.Ticks(low, high))
	for i := range ticks {
		ticks[i].Label = ""
	}
	return ticks
}

// valueTicks put the values under their groups of bars.
type valueTicks []float64

func (v valueTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for i, x := range v {
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: numberLabel(x)})
	}
	return ticks
}

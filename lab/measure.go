package lab

import (
	"fmt"
	"math"

	"grange/curve"
)

// Kind says what a measured point is for.
type Kind string

const (
	KindContribution Kind = "contribution" // clean labels, part of the data
	KindNoise        Kind = "noise"        // all data, wrong labels
	KindMixed        Kind = "mixed"        // part of the data and wrong labels: tests clean(S) − γR
)

// Mixed is a point with both part of the data and wrong labels. When Members
// is not 0 only that many members, the first ones, have wrong labels.
type Mixed struct {
	Fraction float64
	Noise    float64
	Members  int
}

// Plan is what to train in order to learn the accuracy curve.
type Plan struct {
	Training   Training
	Capacities []int64
	Untrained  float64 // accuracy of a model that learned nothing, 1/C

	// Fractions of everyone's data, with clean labels. Default: the paper's
	// 0.1 … 1.0, and 0.01, 0.025 and 0.05, without which nothing would be
	// known of the curve where free riders play; they cost next to nothing.
	Fractions []float64
	Noise     []float64 // rates, with all data; default 0 … 0.5
	Mixed     []Mixed   // default DefaultMixed
	Repeats   int       // runs of each point with different seeds; default 1
	Seed      uint64    // of the first run; the others count on from it
}

// DefaultMixed tests the surrogate inside the region and with unequal members.
var DefaultMixed = []Mixed{
	{Fraction: 0.25, Noise: 0.2},
	{Fraction: 0.25, Noise: 0.4},
	{Fraction: 0.5, Noise: 0.3, Members: 3},
	{Fraction: 0.75, Noise: 0.4, Members: 2},
}

func (p Plan) withDefaults() Plan {
	if p.Fractions == nil {
		p.Fractions = []float64{0.01, 0.025, 0.05}
		for k := 1; k <= 10; k++ {
			p.Fractions = append(p.Fractions, float64(k)/10)
		}
	}
	if p.Noise == nil {
		for k := range 6 {
			p.Noise = append(p.Noise, float64(k)/10)
		}
	}
	if p.Mixed == nil {
		p.Mixed = DefaultMixed
	}
	p.Repeats = max(1, p.Repeats)
	return p
}

// Measurement is one point of a plan: the same contributions and noise rates,
// trained Repeats times.
type Measurement struct {
	Kind       Kind
	Fraction   float64 // of everyone's data
	Noise      float64 // of the members with wrong labels
	Total      int64   // S
	WrongShare float64 // R
	Cells      []Cell
	Records    []*Record // one per cell, in the order of the seeds
	Mean       float64   // accuracy after the last round
	// StandardError of Mean; 0 with a single run.
	StandardError float64
}

// Measurements lists the points of the plan, untrained as yet. The point with
// all data and clean labels is in both grids, but its cells are the same.
func (p Plan) Measurements() []Measurement {
	p = p.withDefaults()
	var points []Measurement
	for _, f := range p.Fractions {
		points = append(points, p.point(KindContribution, f, 0, 0))
	}
	for _, e := range p.Noise {
		points = append(points, p.point(KindNoise, 1, e, 0))
	}
	for _, m := range p.Mixed {
		points = append(points, p.point(KindMixed, m.Fraction, m.Noise, m.Members))
	}
	return points
}

func (p Plan) point(kind Kind, fraction, noise float64, noisy int) Measurement {
	contributions := make([]int64, len(p.Capacities))
	rates := make([]float64, len(p.Capacities))
	for n, capacity := range p.Capacities {
		contributions[n] = max(1, int64(math.Round(fraction*float64(capacity))))
		if noisy == 0 || n < noisy {
			rates[n] = noise
		}
	}
	m := Measurement{Kind: kind, Fraction: fraction, Noise: noise}
	m.Cells = Repeat(p.Training, p.Capacities, contributions, rates, p.Seed, p.Repeats)
	m.Total, m.WrongShare = m.Cells[0].Total(), m.Cells[0].WrongShare()
	return m
}

// Repeat returns the cells of one profile with seeds seed, seed+1, ….
func Repeat(t Training, capacities, contributions []int64, noise []float64, seed uint64, repeats int) []Cell {
	var cells []Cell
	for k := range max(1, repeats) {
		cells = append(cells, Cell{
			Training: t, Capacities: capacities, Contributions: contributions, Noise: noise, Seed: seed + uint64(k),
		}.Canonical())
	}
	return cells
}

// AllCells returns the cells of all points; some occur twice.
func AllCells(points []Measurement) []Cell {
	var cells []Cell
	for _, m := range points {
		cells = append(cells, m.Cells...)
	}
	return cells
}

// Collect fills in the results. It fails on a cell that has none.
func Collect(points []Measurement, records map[string]*Record) error {
	for i := range points {
		m := &points[i]
		m.Records = nil
		for _, cell := range m.Cells {
			record, ok := records[cell.Key()]
			if !ok {
				return fmt.Errorf("%w: %s", ErrMissing, cell.Key())
			}
			m.Records = append(m.Records, record)
		}
		m.Mean, m.StandardError = MeanAccuracy(m.Records)
	}
	return nil
}

// MeanAccuracy returns the mean of the final accuracies and its standard
// error, 0 for a single run.
func MeanAccuracy(records []*Record) (mean, standardError float64) {
	values := make([]float64, len(records))
	for i, r := range records {
		values[i] = r.Outcome.Accuracy
	}
	return meanOf(values)
}

func meanOf(values []float64) (mean, standardError float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	if len(values) < 2 {
		return mean, 0
	}
	for _, v := range values {
		standardError += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(standardError / (n - 1) / n)
}

// CurvePoints returns what a curve is fitted to: one point per trained cell,
// each cell once, and the untrained model at S = 0.
func (p Plan) CurvePoints(points []Measurement) []curve.Point {
	out := []curve.Point{{Total: 0, Accuracy: p.Untrained}}
	seen := map[string]bool{}
	for _, m := range points {
		for _, r := range m.Records {
			if seen[r.Key] {
				continue
			}
			seen[r.Key] = true
			out = append(out, curve.Point{
				Total:      float64(r.Cell.Total()),
				WrongShare: r.Cell.WrongShare(),
				Accuracy:   r.Outcome.Accuracy,
			})
		}
	}
	return out
}

// Surrogate says how well clean(S) − γR, fitted to the two grids alone,
// predicts the mixed points, which it has not seen.
type Surrogate struct {
	Points int     `json:"points"` // mixed points
	RMSE   float64 `json:"rmse"`   // of the prediction
	Bias   float64 `json:"bias"`   // mean of measured minus predicted
	Worst  float64 `json:"worst"`  // the largest, with its sign
	Scale  float64 `json:"scale"`  // typical residual on the grids themselves
}

// TestSurrogate fits the form to the grids and compares it with the mixed
// points. It returns nil when there are no mixed points.
func (p Plan) TestSurrogate(fitter curve.Fitter, form curve.Form, points []Measurement) (*Surrogate, error) {
	var grids, mixed []Measurement
	for _, m := range points {
		if m.Kind == KindMixed {
			mixed = append(mixed, m)
		} else {
			grids = append(grids, m)
		}
	}
	if len(mixed) == 0 {
		return nil, nil
	}
	fit, err := fitter.Fit(form, p.CurvePoints(grids))
	if err != nil {
		return nil, err
	}
	s := &Surrogate{Points: len(mixed), Scale: fit.RMSE}
	for _, m := range mixed {
		miss := m.Mean - fit.At(float64(m.Total), m.WrongShare)
		s.Bias += miss / float64(len(mixed))
		s.RMSE += miss * miss / float64(len(mixed))
		if math.Abs(miss) > math.Abs(s.Worst) {
			s.Worst = miss
		}
	}
	s.RMSE = math.Sqrt(s.RMSE)
	return s, nil
}

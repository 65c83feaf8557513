package story

import (
	"fmt"
	"math"

	"grange/lab"
	"grange/report/chart"
	"grange/report/html"
)

// accuracy shows what was measured and the curve through it.
func (r *Report) accuracy(s *lab.Study) []html.Block {
	fit := s.Fit
	top := capacity(s.Game)
	wrong := fmt.Sprintf("every tenth of the labels that is wrong costs %s", points(fit.Gamma.Value/10))
	if !s.KnowsGamma() {
		wrong = "what wrong labels cost was not measured"
	}
	return []html.Block{
		text("Models were trained on parts of the data and with wrong labels, and their accuracy on untouched test images was measured. A curve through these measurements says what any contribution is worth: all %s points of data with clean labels give %s, and %s.",
			whole(top), percent(fit.Clean.At(top)), wrong),
		r.figure(accuracyChart(s)),
		r.figure(roundsChart(s)),
	}
}

// accuracyChart is Figures 1b and 2b: accuracy against data and wrong labels.
func accuracyChart(s *lab.Study) chart.Chart {
	measured := chart.Line{Name: "measured", Color: chart.Series(1), Alone: true}
	noisy := measured
	mixed := chart.Line{Name: "measured, mixed", Color: chart.Series(2), Alone: true}
	for _, m := range s.Points {
		v := chart.XY{Y: m.Mean, Low: m.Mean - 2*m.StandardError, High: m.Mean + 2*m.StandardError}
		switch m.Kind {
		case lab.KindContribution:
			v.X = float64(m.Total)
			measured.Points = append(measured.Points, v)
		case lab.KindNoise:
			v.X = m.WrongShare
			noisy.Points = append(noisy.Points, v)
		case lab.KindMixed:
			// Shown where the surrogate would put a clean point.
			v.X = float64(m.Total)
			lift := s.Fit.Gamma.Value * m.WrongShare
			v.Y, v.Low, v.High = v.Y+lift, v.Low+lift, v.High+lift
			mixed.Points = append(mixed.Points, v)
		}
	}
	fitted := chart.Line{Name: "fitted curve", Color: chart.Ink}
	fittedNoise := fitted
	top := capacity(s.Game)
	for k := 0; k <= 80; k++ {
		x := top * math.Pow(float64(k)/80, 1.6)
		fitted.Points = append(fitted.Points, chart.XY{X: x, Y: s.Fit.Clean.At(x)})
	}
	last := 0.0
	for _, p := range noisy.Points {
		last = max(last, p.X)
	}
	for k := 0; k <= 10; k++ {
		x := last * float64(k) / 10
		fittedNoise.Points = append(fittedNoise.Points, chart.XY{X: x, Y: s.Fit.At(top, x)})
	}
	return chart.Chart{
		ID: "accuracy", Title: "Accuracy against data and wrong labels",
		Caption: fmt.Sprintf("More data: clean labels, all members giving the same part; mixed points have wrong labels as well and are moved up by γ·R, so they lie on the curve if the surrogate clean(S) − γR holds. Wrong labels: all data.%s", whiskers(s)),
		Panels: []chart.Panel{
			{Title: "More data", X: chart.Axis{Label: "data points in all (S)"}, Y: chart.Axis{Label: "accuracy", Percent: true}, Lines: nonEmpty(fitted, measured, mixed)},
			{Title: "Wrong labels", X: chart.Axis{Label: "share of wrong labels (R)", Percent: true}, Y: chart.Axis{Label: "accuracy", Percent: true}, Lines: nonEmpty(fittedNoise, noisy)},
		},
	}
}

// whiskers says what they are, where there are any.
func whiskers(s *lab.Study) string {
	if _, most := runs(s); most < 2 {
		return ""
	}
	return fmt.Sprintf(" Whiskers: two standard errors over %s runs.", runCount(s))
}

// runs are the fewest and the most runs that a measured point has.
func runs(s *lab.Study) (fewest, most int) {
	for i, m := range s.Points {
		n := len(m.Records)
		if i == 0 {
			fewest = n
		}
		fewest, most = min(fewest, n), max(most, n)
	}
	return fewest, most
}

// runCount writes "1" or "2 to 5".
func runCount(s *lab.Study) string {
	fewest, most := runs(s)
	if fewest < most {
		return fmt.Sprintf("%d to %d", fewest, most)
	}
	return fmt.Sprint(most)
}

func nonEmpty(lines ...chart.Line) []chart.Line {
	var out []chart.Line
	for _, l := range lines {
		if len(l.Points) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// roundsChart is Figures 1a and 2a: accuracy round by round.
func roundsChart(s *lab.Study) chart.Chart {
	var data, noise []lab.Measurement
	for _, m := range s.Points {
		switch {
		case m.Kind == lab.KindContribution:
			data = append(data, m)
		case m.Kind == lab.KindNoise:
			noise = append(noise, m)
		}
	}
	return chart.Chart{
		ID: "rounds", Title: "Accuracy round by round",
		Caption: "Part of the data given: clean labels; darker to lighter as members give more of their data. Wrong labels: all data; darker to lighter as more labels are wrong. A line that peaks and falls has begun to learn the wrong labels.",
		Panels: []chart.Panel{
			{Title: "Part of the data given", X: chart.Axis{Label: "round", Counts: true}, Y: chart.Axis{Label: "accuracy", Percent: true}, Lines: roundLines(data, func(m lab.Measurement) string { return fmt.Sprintf("%.3g%% of data", 100*m.Fraction) })},
			{Title: "Wrong labels", X: chart.Axis{Label: "round", Counts: true}, Y: chart.Axis{Label: "accuracy", Percent: true}, Lines: roundLines(noise, func(m lab.Measurement) string { return fmt.Sprintf("ε = %.1f", m.Noise) })},
		},
	}
}

func roundLines(points []lab.Measurement, name func(lab.Measurement) string) []chart.Line {
	var lines []chart.Line
	for i, m := range points {
		line := chart.Line{Name: name(m), Color: chart.Step(i, len(points))}
		for _, r := range lab.MeanRounds(m.Records) {
			line.Points = append(line.Points, chart.XY{X: float64(r.Round), Y: r.Accuracy})
		}
		lines = append(lines, line)
	}
	return lines
}

package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"grange/equilibrium"
	"grange/theory"
)

// judgeAccuracy tests O1 on the measured accuracies. A change in the wrong
// direction counts against it only when it exceeds two standard errors of the
// difference.
func judgeAccuracy(points []Measurement) Verdict {
	var data, noise []Measurement
	for _, m := range points {
		switch m.Kind {
		case KindContribution:
			data = append(data, m)
		case KindNoise:
			noise = append(noise, m)
		}
	}
	sigma := pooledError(points)
	rising := part{of: max(0, len(data)-1)}
	for i := 1; i < len(data); i++ {
		if data[i].Mean >= data[i-1].Mean-2*sigma*math.Sqrt2 {
			rising.held++
		}
	}
	if len(data) > 1 {
		scatter := fmt.Sprintf("scatter of a mean %.2f points", 100*sigma)
		if !slices.ContainsFunc(points, func(m Measurement) bool { return len(m.Records) > 1 }) {
			scatter = fmt.Sprintf("one run each, whose scatter is taken to be %.2f points", 100*sigma)
		}
		rising.text = fmt.Sprintf("accuracy rises from %.1f%% with %d points to %.1f%% with %d: %d of %d steps do not fall (%s)",
			100*data[0].Mean, data[0].Total, 100*data[len(data)-1].Mean, data[len(data)-1].Total, rising.held, rising.of, scatter)
	}
	concave := part{of: max(0, len(data)-2)}
	for i := 2; i < len(data); i++ {
		first := slope(data[i-2], data[i-1])
		second := slope(data[i-1], data[i])
		width := float64(data[i].Total-data[i-1].Total) / 2
		if (second-first)*width <= 2*sigma*math.Sqrt(6) {
			concave.held++
		}
	}
	if concave.of > 0 {
		concave.text = fmt.Sprintf("gains shrink: %d of %d second differences are not positive beyond scatter; 100 points more are worth %.2f points of accuracy at first, %.3f in the end",
			concave.held, concave.of, 1e4*slope(data[0], data[1]), 1e4*slope(data[len(data)-2], data[len(data)-1]))
	}
	fallingNoise := part{of: max(0, len(noise)-1)}
	for i := 1; i < len(noise); i++ {
		if noise[i].Mean <= noise[i-1].Mean+2*sigma*math.Sqrt2 {
			fallingNoise.held++
		}
	}
	if len(noise) > 1 {
		last := noise[len(noise)-1]
		fallingNoise.text = fmt.Sprintf("accuracy falls from %.1f%% with clean labels to %.1f%% with %.0f%% wrong: %d of %d steps do not rise",
			100*noise[0].Mean, 100*last.Mean, 100*last.Noise, fallingNoise.held, fallingNoise.of)
	}
	return conclude("O1", "Accuracy rises concavely in contributed data and falls in the wrong-label share; with a large wrong share the model overfits.",
		rising, concave, fallingNoise, overfitting(noise, sigma))
}

func slope(a, b Measurement) float64 {
	return (b.Mean - a.Mean) / float64(max(1, b.Total-a.Total))
}

// overfitting tests that with wrong labels (ε ≥ 0.3) accuracy peaks and then
// falls by more than two standard errors before the last round.
func overfitting(noise []Measurement, sigma float64) part {
	p := part{}
	var notes []string
	for _, m := range noise {
		if m.Noise < 0.3 {
			continue
		}
		curve := MeanRounds(m.Records)
		if len(curve) < 3 {
			continue
		}
		peak := slices.MaxFunc(curve, func(a, b Round) int {
			switch {
			case a.Accuracy < b.Accuracy:
				return -1
			case a.Accuracy > b.Accuracy:
				return 1
			}
			return 0
		})
		drop := peak.Accuracy - curve[len(curve)-1].Accuracy
		p.of++
		if drop > 2*sigma*math.Sqrt2 && peak.Round < len(curve) {
			p.held++
		}
		notes = append(notes, fmt.Sprintf("ε = %.1f: best %.1f%% in round %d, %.1f%% in round %d", m.Noise, 100*peak.Accuracy, peak.Round, 100*curve[len(curve)-1].Accuracy, len(curve)))
	}
	p.text = fmt.Sprintf("overfitting: accuracy peaks and falls in %d of %d noisy settings (%s)", p.held, p.of, strings.Join(notes, "; "))
	return p
}

// MeanRounds averages accuracy and loss over runs, round by round.
func MeanRounds(records []*Record) []Round {
	if len(records) == 0 {
		return nil
	}
	out := slices.Clone(records[0].Outcome.Rounds)
	for i := range out {
		out[i].Accuracy, out[i].Loss = 0, 0
		for _, r := range records {
			if i >= len(r.Outcome.Rounds) {
				return out[:i]
			}
			out[i].Accuracy += r.Outcome.Rounds[i].Accuracy / float64(len(records))
			out[i].Loss += r.Outcome.Rounds[i].Loss / float64(len(records))
		}
	}
	return out
}

// pooledError is the standard error of a mean, from the scatter between
// repeats at all points together. With single runs it is what a test set of
// 2,000 leaves open.
func pooledError(points []Measurement) float64 {
	sum, free, repeats := 0.0, 0, 0.0
	for _, m := range points {
		n := len(m.Records)
		if n < 2 {
			continue
		}
		sum += m.StandardError * m.StandardError * float64(n) * float64(n-1)
		free += n - 1
		repeats = max(repeats, float64(n))
	}
	if free == 0 {
		return 0.005
	}
	return math.Sqrt(sum / float64(free) / repeats)
}

// judgeExistence tests Theorem 1: Algorithm 1 ends in a certified equilibrium.
func (r *Reproduction) judgeExistence() Verdict {
	p := part{}
	var failed []string
	for _, s := range r.Settings {
		for _, e := range s.Equilibria {
			p.of++
			if e.Status == equilibrium.Converged && e.Certificate.Certified {
				p.held++
			} else {
				failed = append(failed, fmt.Sprintf("%s at %s %.1f: %s", e.Mechanism, s.Sweep, s.Value, e.Status))
			}
		}
	}
	p.text = fmt.Sprintf("%d of %d games have an equilibrium certified against every integer deviation", p.held, p.of)
	if len(failed) > 0 {
		p.text += " (not: " + strings.Join(failed, ", ") + ")"
	}
	return conclude("T1", "An equilibrium exists under the assumptions.", p, assumptions(r.Study.Theory))
}

// assumptions says for which rules the theorem's assumptions hold. It is no
// test of the theorem: where they fail the theorem says nothing.
func assumptions(report *theory.Report) part {
	p := part{}
	if report == nil {
		return p
	}
	var apply, not []string
	for _, t := range report.Theorems {
		if t.Number != 1 {
			continue
		}
		p.of, p.held = 1, 1
		if t.Applies {
			apply = append(apply, t.Mechanism)
		} else {
			not = append(not, t.Mechanism)
		}
	}
	words := func(names []string) string {
		if len(names) == 0 {
			return "no rule"
		}
		return strings.Join(names, ", ")
	}
	p.text = fmt.Sprintf("its assumptions hold on the fitted curve for %s, and fail for %s, where the theorem promises nothing", words(apply), words(not))
	return p
}

// judgeOwn tests a monotone effect of a member's own parameter.
func judgeOwn(claim, states string, effects []OwnEffect, parameters ...string) Verdict {
	var parts []part
	for _, parameter := range parameters {
		for _, e := range effects {
			if e.Parameter != parameter {
				continue
			}
			p := part{}
			worst := int64(0)
			for i := 1; i < len(e.Values); i++ {
				if e.Status[i-1] != equilibrium.Converged || e.Status[i] != equilibrium.Converged {
					continue
				}
				p.of++
				against := e.Contributions[i] - e.Contributions[i-1]
				if parameter == "data" {
					against = -against
				}
				if against <= 1 {
					p.held++
				}
				worst = max(worst, against)
			}
			p.text = fmt.Sprintf("%s, %s: %d of %d steps", parameter, e.Mechanism, p.held, p.of)
			if p.held < p.of {
				p.text += fmt.Sprintf(" (largest step against it %d points)", worst)
			}
			parts = append(parts, p)
		}
	}
	return conclude(claim, states, parts...)
}

// judgeConvergence tests that Algorithm 1 ends within ten iterations.
func (r *Reproduction) judgeConvergence() Verdict {
	p := part{}
	most, cycles := 0, 0
	for _, s := range r.Settings {
		for _, e := range s.Equilibria {
			p.of++
			if e.Status == equilibrium.Cycle {
				cycles++
				continue
			}
			most = max(most, e.Iterations)
			if e.Status == equilibrium.Converged && e.Iterations <= 10 {
				p.held++
			}
		}
	}
	p.text = fmt.Sprintf("%d of %d runs end within 10 iterations; the longest took %d, %d went round in a cycle", p.held, p.of, most, cycles)
	return conclude("A1", "Algorithm 1 converges within about ten iterations.", p)
}

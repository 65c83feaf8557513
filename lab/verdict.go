package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"grange/equilibrium"
)

// Finding is the answer to one claim.
type Finding string

const (
	Holds   Finding = "holds"
	Partly  Finding = "holds partly"
	Fails   Finding = "fails"
	Unknown Finding = "cannot be judged" // the cells it needs are missing
)

// Verdict judges one claim of the paper by numbers.
type Verdict struct {
	Claim   string   `json:"claim"` // O1 … O5, T1 … T3, A1
	States  string   `json:"states"`
	Finding Finding  `json:"finding"`
	Because []string `json:"because"` // the numbers, part by part
}

// part is one statement within a claim, tested on several cases.
type part struct {
	text string // with the numbers in it
	held int    // cases in which it holds
	of   int
	// tends: the claim is about most cases, and holds when nine in ten do.
	tends bool
}

func (p part) whole() bool {
	if p.tends {
		return 10*p.held >= 9*p.of
	}
	return p.held == p.of
}

// conclude combines the parts of a claim. It holds when every case of every
// part does, fails when each part fails in most of its cases, and holds partly
// in between.
func conclude(claim, states string, parts ...part) Verdict {
	v := Verdict{Claim: claim, States: states}
	whole, broken, judged := 0, 0, 0
	for _, p := range parts {
		if p.of == 0 {
			continue
		}
		judged++
		switch {
		case p.whole():
			whole++
		case 2*p.held < p.of:
			broken++
		}
		v.Because = append(v.Because, p.text)
	}
	switch {
	case judged == 0:
		v.Finding = Unknown
	case whole == judged:
		v.Finding = Holds
	case broken == judged:
		v.Finding = Fails
	default:
		v.Finding = Partly
	}
	return v
}

// combine is the finding of parts without their text.
func combine(parts ...part) Finding { return conclude("", "", parts...).Finding }

// judge goes through the paper's claims. All but O1 rest on γ, and cannot be
// judged while no run with wrong labels is there to measure it.
func (r *Reproduction) judge() []Verdict {
	verdicts := r.judgeAll()
	if r.Study.KnowsGamma() {
		return verdicts
	}
	for i := range verdicts {
		v := &verdicts[i]
		if v.Claim != "O1" {
			v.Finding, v.Because = Unknown, []string{"no run with wrong labels is there, so γ is not known"}
			continue
		}
		v.Because = append(v.Because, "no run with wrong labels is there")
		if v.Finding == Holds {
			v.Finding = Partly
		}
	}
	return verdicts
}

func (r *Reproduction) judgeAll() []Verdict {
	names := mechanismNames(r.Settings)
	return []Verdict{
		judgeAccuracy(r.Study.Points),
		conclude("O2", "A member's equilibrium contribution falls in its own wrong share; members with better data contribute more.",
			falling(r.Settings, Quality, names), better(r.Settings, Quality, names)),
		conclude("O3", "A member's equilibrium contribution falls in its privacy sensitivity; less sensitive members contribute more.",
			falling(r.Settings, Privacy, names), better(r.Settings, Privacy, names)),
		conclude("O4", "EG does not reward good data; LP, LOO and SV do. LOO can be lopsided.", rewards(r.Settings)...),
		conclude("O5", "LOO tends to give the best model at equilibrium.",
			best(r.Settings, "by the fitted curve", predicted), best(r.Settings, "by the trained models", trained)),
		r.judgeExistence(),
		judgeOwn("T2", "s_n* does not rise in μ_n and does not fall in D_n.", r.Own, "privacy", "data"),
		judgeOwn("T3", "s_n* does not rise in ε_n.", r.Own, "noise"),
		r.judgeConvergence(),
	}
}

func mechanismNames(settings []Setting) []string {
	var names []string
	for _, e := range settings[0].Equilibria {
		names = append(names, e.Mechanism)
	}
	return names
}

// of returns the settings of a sweep.
func of(settings []Setting, sweep Sweep) []Setting {
	var out []Setting
	for _, s := range settings {
		if s.Sweep == sweep {
			out = append(out, s)
		}
	}
	return out
}

// stable reports whether an equilibrium is one.
func stable(e *Equilibrium) bool { return e.Status == equilibrium.Converged }

// falling tests that members 1 to 3 contribute no more, each, as the parameter
// they share rises. A step counts when both its ends are equilibria, and may
// rise by the tolerance of Algorithm 1.
func falling(settings []Setting, sweep Sweep, names []string) part {
	p := part{}
	var notes []string
	series := of(settings, sweep)
	for _, name := range names {
		held, steps, worst := 0, 0, int64(0)
		for i := 1; i < len(series); i++ {
			before, after := series[i-1].Under(name), series[i].Under(name)
			if !stable(before) || !stable(after) {
				continue
			}
			for n := range 3 {
				steps++
				rise := after.Contributions[n] - before.Contributions[n]
				if rise <= 1 {
					held++
				}
				worst = max(worst, rise)
			}
		}
		note := fmt.Sprintf("%s %d of %d", name, held, steps)
		if held < steps {
			note += fmt.Sprintf(" (largest rise %d)", worst)
		}
		notes = append(notes, note)
		p.held += held
		p.of += steps
	}
	p.text = fmt.Sprintf("steps along which a member's contribution does not rise: %s", strings.Join(notes, ", "))
	return p
}

// better tests that members 4 and 5 contribute at least as much as any of
// members 1 to 3 wherever their data are better (or their privacy cost lower).
func better(settings []Setting, sweep Sweep, names []string) part {
	p := part{}
	var notes []string
	for _, name := range names {
		held, cases := 0, 0
		for _, s := range of(settings, sweep) {
			ahead := s.Value > 0
			if sweep == Privacy {
				ahead = s.Value > 0.3
			}
			e := s.Under(name)
			if !ahead || !stable(e) {
				continue
			}
			cases++
			if slices.Min(e.Contributions[3:])+1 >= slices.Max(e.Contributions[:3]) {
				held++
			}
		}
		notes = append(notes, fmt.Sprintf("%s %d of %d", name, held, cases))
		p.held += held
		p.of += cases
	}
	p.text = fmt.Sprintf("settings in which members 4–5 contribute at least as much as 1–3: %s", strings.Join(notes, ", "))
	return p
}

// rewards tests O4. Good data are rewarded when having better labels than the
// others brings out more of a member's data: by a hundredth of what it has at
// least, beyond any difference there is between the same members when all
// labels are clean. (There is one: who moves first can end up carrying all.)
func rewards(settings []Setting) []part {
	var parts []part
	quality := of(settings, Quality)
	for _, s := range mechanismNames(settings) {
		p := part{}
		clean, ok := lead(quality, 0, s)
		if !ok {
			continue
		}
		var gaps []string
		for _, setting := range quality {
			gap, ok := lead(quality, setting.Value, s)
			if setting.Value == 0 || !ok {
				continue
			}
			gaps = append(gaps, signed(gap-clean))
			p.of++
			if rewarded := gap-clean > 0.01*float64(setting.Game.Members[3].Capacity); rewarded == (s != "EG") {
				p.held++
			}
		}
		verb := "brings out more data"
		if s == "EG" {
			verb = "brings out no more data"
		}
		p.text = fmt.Sprintf("%s: better quality %s in %d of %d noisy settings (members 4–5 over 1–3, beyond the %s there are with clean labels: %s points)",
			s, verb, p.held, p.of, signed(clean), strings.Join(gaps, ", "))
		parts = append(parts, p)
	}
	for _, s := range of(settings, Quality) {
		e := s.Under("LOO")
		if s.Value != 0 || e == nil || !stable(e) {
			continue
		}
		idle, full := 0, 0
		for n, x := range e.Contributions {
			if x <= s.Game.Minimum {
				idle++
			}
			if x >= s.Game.Members[n].Capacity {
				full++
			}
		}
		p := part{of: 1, text: fmt.Sprintf("LOO with clean labels: %d members idle, %d give all they have", idle, full)}
		if idle > 0 && idle < len(e.Contributions) {
			p.held = 1
		}
		parts = append(parts, p)
	}
	return parts
}

// signed writes a whole number with its sign; 0 has none.
func signed(x float64) string {
	if math.RoundToEven(x) == 0 {
		return "0"
	}
	return fmt.Sprintf("%+.0f", x)
}

// lead is how much more members 4 and 5 contribute than 1 to 3, on average.
func lead(settings []Setting, value float64, mechanism string) (float64, bool) {
	for _, s := range settings {
		if s.Value != value {
			continue
		}
		e := s.Under(mechanism)
		c := e.Contributions
		return float64(c[3]+c[4])/2 - float64(c[0]+c[1]+c[2])/3, stable(e)
	}
	return 0, false
}

func predicted(e *Equilibrium) (float64, bool) { return e.Accuracy, stable(e) }

func trained(e *Equilibrium) (float64, bool) { return e.Trained, stable(e) && len(e.Records) > 0 }

// best tests that LOO's model is the best, or within half a point of it.
func best(settings []Setting, by string, accuracy func(*Equilibrium) (float64, bool)) part {
	const tie = 0.005
	p := part{tends: true}
	worst := 0.0
	for _, s := range settings {
		loo := s.Under("LOO")
		if loo == nil {
			continue
		}
		own, ok := accuracy(loo)
		if !ok {
			continue
		}
		p.of++
		top := math.Inf(-1)
		for k := range s.Equilibria {
			if v, ok := accuracy(&s.Equilibria[k]); ok {
				top = max(top, v)
			}
		}
		if own >= top-tie {
			p.held++
		}
		worst = max(worst, top-own)
	}
	p.text = fmt.Sprintf("%s LOO is best, or within half a point, in %d of %d settings (largest shortfall %.1f points)", by, p.held, p.of, 100*worst)
	return p
}

package cli

import (
	"fmt"
	"math"
	"strings"

	"grange/federated/network/silo"
)

// siloJSON is the outcome of grange silo run.
type siloJSON struct {
	Member       string          `json:"member"`
	Coordinator  string          `json:"coordinator"`
	Scenario     string          `json:"scenario"`
	Rounds       int             `json:"rounds"`
	Contribution int             `json:"contribution"`
	Data         int             `json:"data"`
	Kernel       string          `json:"kernel"`
	Accepted     int             `json:"accepted"`
	Updates      []siloRoundJSON `json:"updates"`
}

type siloRoundJSON struct {
	Round   int     `json:"round"`
	Outcome string  `json:"outcome"`
	Loss    float64 `json:"training_loss,omitempty"`
	Reason  string  `json:"reason,omitempty"`
}

// siloReport tells a person what a silo does, and collects it for the end.
type siloReport struct {
	app    *app
	bar    *progress
	result siloJSON
}

// prepared keeps what the silo takes part with.
func (r *siloReport) prepared(p *silo.Prepared) {
	if p != nil {
		r.result.Contribution, r.result.Data, r.result.Kernel = p.Contribution, p.Data, p.Kernel
	}
}

func (r *siloReport) stop() {
	if r.bar != nil {
		r.bar.stop()
	}
}

// say shows a line, or on a terminal what is being done beside the bar.
func (r *siloReport) say(format string, args ...any) {
	if r.bar != nil && r.bar.bar != nil {
		r.bar.say(fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintf(r.app.env.Stderr, format+"\n", args...)
}

// step is told what the silo does.
func (r *siloReport) step(s silo.Step) {
	switch s.Action {
	case silo.Joined:
		t := s.Terms
		r.result.Scenario, r.result.Rounds = t.Scenario, t.Rounds
		r.say("joined %s as %s: %s on images of %v, %d rounds, contributing %s of %s data points, kernel %s", t.Scenario, t.Name,
			t.Spec.Name, t.Data.Shape, t.Rounds, whole(int64(r.result.Contribution)), whole(int64(r.result.Data)), r.result.Kernel)
		if r.bar == nil {
			r.bar = r.app.work("rounds", t.Rounds)
		}
	case silo.Downloading, silo.Training, silo.Uploading:
		if r.bar != nil && r.bar.bar != nil {
			r.bar.say(fmt.Sprintf("%s in round %d", s.Action, s.Round))
		}
	case silo.Accepted, silo.Refused, silo.Stale, silo.Failed:
		r.round(s)
	case silo.Offline:
		r.say("offline: %s; trying again in %.1f s", s.Reason, s.Pause.Seconds())
	}
}

// round reports what became of a round.
func (r *siloReport) round(s silo.Step) {
	done := siloRoundJSON{Round: s.Round, Outcome: string(s.Action), Reason: s.Reason}
	if s.Action != silo.Failed && !math.IsNaN(s.Loss) && !math.IsInf(s.Loss, 0) {
		done.Loss = s.Loss
	}
	r.result.Updates = append(r.result.Updates, done)
	if r.bar != nil {
		r.bar.step()
	}
	if s.Action == silo.Accepted {
		r.result.Accepted++
		r.say("round %d of %d: accepted, training loss %.4f", s.Round, r.result.Rounds, s.Loss)
		return
	}
	r.say("round %d of %d: %s: %s", s.Round, r.result.Rounds, s.Action, s.Reason)
}

// text is what a person reads at the end.
func (r *siloReport) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d rounds, %d updates of %s counted", r.result.Scenario, r.result.Rounds, r.result.Accepted, r.result.Member)
	if n := len(r.result.Updates); n > 0 && r.result.Accepted > 0 {
		fmt.Fprintf(&b, ", the last with a training loss of %.4f", r.result.Updates[n-1].Loss)
	}
	b.WriteString("\n")
	for _, u := range r.result.Updates {
		if u.Outcome != string(silo.Accepted) {
			fmt.Fprintf(&b, "Note: round %d: %s: %s\n", u.Round, u.Outcome, u.Reason)
		}
	}
	return b.String()
}

package cli

import (
	"fmt"
	"strings"

	"grange/federated/network"
)

// lastRounds is how many rounds the table shows; JSON has all of them.
const lastRounds = 10

// standingText is what a person reads.
func (a *app) standingText(s *standing) string {
	var b strings.Builder
	b.WriteString(s.headline())
	if len(s.Members) > 0 {
		b.WriteByte('\n')
		b.WriteString(a.standingMembers(s))
	}
	for _, o := range s.Outsiders {
		fmt.Fprintf(&b, "Note: %s\nTry: %s\n", paint(o.text(), yellow, a.colour()), o.try(s.Folder))
	}
	if len(s.History) > 0 {
		b.WriteByte('\n')
		b.WriteString(a.standingRounds(s))
	}
	var notes []string
	for _, n := range s.Notes {
		who := ""
		if n.Round > 0 {
			who = fmt.Sprintf(", round %d", n.Round)
		}
		if n.Member != "" {
			who += ", " + n.Member
		}
		line := fmt.Sprintf("%s  %s%s", n.Time.Local().Format("2006-01-02 15:04:05"), n.Kind, who)
		if n.Text != "" {
			line += ": " + n.Text
		}
		notes = append(notes, paint(line, noteStyle(n.Kind), a.colour()))
	}
	if notes != nil {
		b.WriteString("\n" + strings.Join(notes, "\n") + "\n")
	}
	return b.String()
}

func noteStyle(kind network.Kind) style {
	switch kind {
	case network.Refused, network.Failed:
		return red
	case network.Late, network.Stale, network.TurnedAway:
		return yellow
	}
	return plain
}

// headline says where the run is.
func (s *standing) headline() string {
	name := s.Name
	if name == "" {
		name = s.Folder
	}
	text := name + ": " + s.Phase
	switch s.Phase {
	case "round":
		text = fmt.Sprintf("%s: round %d of %d", name, s.Round, s.Rounds)
	case "stopped", "done", "failed":
		text += fmt.Sprintf(" after %d of %d rounds", len(s.History), s.Rounds)
	}
	if s.Accuracy != nil {
		text += fmt.Sprintf(", accuracy %.2f%%", 100**s.Accuracy)
	}
	if s.Running && s.Address != "" {
		text += ", at " + s.Address
	}
	if s.Failure != "" {
		text += "\n" + s.Failure
	}
	return text + "\n"
}

func (a *app) standingMembers(s *standing) string {
	t := &table{}
	t.add(left("member").in(bold), left("state").in(bold), right("contributes").in(bold), right("of").in(bold), right("used").in(bold),
		right("rounds").in(bold), left("by").in(bold))
	t.rule()
	for _, m := range s.Members {
		contributes, of, by, used := "–", "–", "", "–"
		if m.Declared != nil {
			contributes, of, by = whole(int64(m.Declared.Contribution)), whole(int64(m.Declared.Data)), m.Declared.Transport
		}
		if m.Used > 0 {
			used = whole(int64(m.Used))
		}
		state, look := m.state(s)
		t.add(left(m.Name), left(state).in(look), right(contributes), right(of), right(used), right(fmt.Sprint(m.Rounds)), left(by))
	}
	return t.render(a.colour())
}

// state says in a word or two what a member is doing.
func (m *memberStanding) state(s *standing) (string, style) {
	admission := m.Admission
	switch {
	case s.Phase == "round" && m.Out != "":
		return "out for this round", red
	case s.Phase == "round" && m.Delivered:
		return "delivered", green
	case s.Phase == "round" && m.Connected && m.Declared != nil && m.Declared.Contribution > 0:
		return "training", plain
	case m.Connected:
		return "connected", green
	case m.Declared != nil && s.Running:
		return "away", yellow
	case m.Declared != nil:
		return "declared", plain
	case admission == nil:
		return "not invited", yellow
	case admission.Certificates > 0 || admission.Nodes > 0:
		return "enrolled", plain
	case admission.Invited != nil:
		return "invited until " + admission.Invited.Local().Format("2006-01-02 15:04"), plain
	}
	return "revoked", red
}

func (a *app) standingRounds(s *standing) string {
	t := &table{}
	t.add(right("round").in(bold), right("accuracy").in(bold), right("test loss").in(bold), right("training loss").in(bold),
		right("updates").in(bold), left("without").in(bold))
	t.rule()
	from := max(0, len(s.History)-lastRounds)
	for _, r := range s.History[from:] {
		var absent []string
		for _, member := range r.Absent {
			absent = append(absent, member.Name)
		}
		accuracy := "–"
		if r.Accuracy != nil {
			accuracy = fmt.Sprintf("%.2f%%", 100**r.Accuracy)
		}
		t.add(right(fmt.Sprint(r.Round)), right(accuracy), right(fourDecimals(r.Loss)), right(fourDecimals(r.Training)), right(fmt.Sprint(len(r.Updates))), left(strings.Join(absent, ", ")))
	}
	return t.render(a.colour())
}

// fourDecimals prints a number that may be none.
func fourDecimals(x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.4f", *x)
}

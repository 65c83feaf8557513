package network

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"grange/federated"
)

// Connect tells that a member is there; the returned function that it has gone.
func (f *Federation) Connect(member int) (disconnect func()) {
	if f.known(member) != nil {
		return func() {}
	}
	f.connection(member, 1)
	return sync.OnceFunc(func() { f.connection(member, -1) })
}

func (f *Federation) connection(member, change int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	before := f.connections[member]
	f.connections[member] += change
	switch {
	case before == 0:
		f.note(Connected, 0, member, "")
	case f.connections[member] == 0:
		f.note(Disconnected, 0, member, "")
	}
}

// TurnAway notes that somebody who was let in by this name has asked to take part, and is no member: once a minute at most,
// however often it asks.
func (f *Federation) TurnAway(name string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.config.Now()
	if last, before := f.away[name]; before && now.Sub(last) < time.Minute {
		return
	}
	f.away[name] = now
	f.note(TurnedAway, 0, -1, fmt.Sprintf("%.100q was let in, but is no member of %s", name, f.config.Name))
}

// Status is how things stand.
func (f *Federation) Status() Status {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	s := Status{Name: f.config.Name, Phase: "waiting for members", Round: len(f.finished), Rounds: f.config.Rounds}
	switch {
	case f.failure != nil:
		s.Phase, s.Failure = "failed", f.failure.Error()
	case f.over:
		s.Phase = "done"
	case f.open != nil:
		s.Phase, s.Round = "round", len(f.finished)+1
	case len(f.finished) > 0:
		s.Phase = "between rounds"
	}
	if n := len(f.finished); n > 0 {
		if accuracy := f.finished[n-1].Accuracy; !math.IsNaN(accuracy) && !math.IsInf(accuracy, 0) {
			s.Accuracy = &accuracy
		}
	}
	for i, name := range f.config.Members {
		m := MemberStatus{Name: name, Declaration: f.declarations[i], Connected: f.connections[i] > 0}
		if f.open != nil {
			m.Delivered = f.open.deliveries[i] != nil
			if f.open.out[i] != nil {
				m.Out = f.open.out[i].Error()
			}
		}
		if m.Declaration != nil && m.Declaration.Contribution > 0 {
			m.Rounds = len(f.finished)
			for _, round := range f.finished {
				if slices.ContainsFunc(round.Absent, func(a federated.Absence) bool { return a.Member == i }) {
					m.Rounds--
				}
			}
		}
		s.Members = append(s.Members, m)
	}
	return s
}

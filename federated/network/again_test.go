package network_test

import (
	"testing"

	"grange/federated/network"
)

// A run that has ended stays as it ended when it is taken up again: its result is there, and nothing is written.
func TestEndedIsEnded(t *testing.T) {
	w := newWorld(t, 2)
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	wait := w.join(t.Context(), t, f, 0, 1, 2)
	if _, err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait()
	notes := len(w.record.notes)
	over := false
	w.config.Observe = func(n network.Note) { over = over || n.Kind == network.RunEnded }
	again := w.open(t)
	result, err := again.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.sameAsInOneProcess(t, result)
	if len(w.record.notes) != notes || len(w.record.about(network.RunEnded)) != 1 {
		t.Errorf("noted again: %v", w.record.notes[notes:])
	}
	if !over || again.Status().Phase != "done" {
		t.Errorf("nobody is told that it is over: %+v", again.Status())
	}
}

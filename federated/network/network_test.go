package network_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"grange/federated"
	"grange/federated/network"
)

func TestSameAsInOneProcess(t *testing.T) {
	w := newWorld(t, 3)
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	wait := w.join(t.Context(), t, f, 2, 1, 0)
	result, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait()
	w.sameAsInOneProcess(t, result)
	if status := f.Status(); status.Phase != "done" || status.Members[1].Rounds != 3 {
		t.Errorf("status %+v", status)
	}
	if !w.record.ended {
		t.Error("the end is not recorded")
	}
}

// TestTakenUpAgain stops the coordinator wherever it writes something, and goes on with a new one.
func TestTakenUpAgain(t *testing.T) {
	for kind, fresh := range records {
		for stop := range 12 {
			t.Run(fmt.Sprint(kind, stop), func(t *testing.T) { takenUpAgain(t, fresh(t), stop) })
		}
	}
}

func takenUpAgain(t *testing.T, record func() network.Record, stop int) {
	w := newWorld(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	writes := 0
	w.config.Observe = func(note network.Note) {
		if note.Kind == network.Accepted || note.Kind == network.RoundBegun || note.Kind == network.RoundEnded {
			if writes++; writes > stop {
				cancel()
			}
		}
	}
	w.config.Record = record()
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	wait := w.join(ctx, t, f, 0, 1, 2)
	result, err := f.Run(ctx)
	cancel()
	wait()
	if err == nil {
		w.sameAsInOneProcess(t, result)
		return
	}
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	w.config.Observe, w.config.Record = nil, record()
	f = w.open(t)
	wait = w.join(t.Context(), t, f, 0, 1, 2)
	if result, err = f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait()
	w.sameAsInOneProcess(t, result)
}

// TestLostModel goes on from the round before when the last model did not survive.
func TestLostModel(t *testing.T) {
	for kind, fresh := range records {
		for name, spoil := range map[string]func(string) error{
			"gone":    os.Remove,
			"changed": func(file string) error { return os.Truncate(file, 100) },
		} {
			t.Run(kind+" "+name, func(t *testing.T) { lostModel(t, fresh(t), spoil) })
		}
	}
}

func lostModel(t *testing.T, record func() network.Record, spoil func(file string) error) {
	w := newWorld(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	w.config.Observe = func(note network.Note) {
		if note.Kind == network.RoundBegun && note.Round == 3 {
			cancel()
		}
	}
	w.config.Record = record()
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	wait := w.join(ctx, t, f, 0, 1, 2)
	if _, err := f.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	wait()
	w.config.Record = record()
	saved, err := w.config.Record.Resume(t.Context(), w.config.RunInfo)
	if err != nil {
		t.Fatal(err)
	}
	file, err := w.config.Objects.Open(saved.Finished[1].Model)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(file.Close(), spoil(file.Name())); err != nil {
		t.Fatal(err)
	}
	var lost []network.Note
	w.config.Observe = func(note network.Note) {
		if note.Kind == network.Lost {
			lost = append(lost, note)
		}
	}
	w.config.Record = record()
	f = w.open(t)
	if len(lost) != 1 || lost[0].Round != 2 {
		t.Errorf("noted were %v", lost)
	}
	wait = w.join(t.Context(), t, f, 0, 1, 2)
	result, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait()
	w.sameAsInOneProcess(t, result)
}

// TestDeadline goes on without a member that is not heard of, and takes it back later.
func TestDeadline(t *testing.T) {
	if _, err := fashion(); err != nil { // by the clock of everybody
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.config.Policy = network.Policy{Deadline: time.Hour, Minimum: 2}
		back := make(chan struct{})
		w.config.Observe = func(note network.Note) {
			if note.Kind == network.RoundEnded && note.Round == 2 {
				close(back)
			}
		}
		f := w.open(t)
		w.declare(t, f, 0, 1, 2)
		begin := time.Now()
		wait := w.join(t.Context(), t, f, 0, 1)
		var third sync.WaitGroup
		third.Go(func() {
			<-back
			if err := w.member(t.Context(), f, 2); err != nil {
				t.Error(err)
			}
		})
		result, err := f.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wait()
		third.Wait()
		for i, round := range result.Rounds {
			if late := i < 2; late != (len(round.Absent) == 1 && round.Absent[0].Name == "east") {
				t.Errorf("round %d: absent %v", round.Round, round.Absent)
			}
		}
		if taken := time.Since(begin); taken != 2*time.Hour {
			t.Errorf("it took %v, want the deadlines of two rounds", taken)
		}
	})
}

// TestMinimum waits past the deadline for enough members.
func TestMinimum(t *testing.T) {
	if _, err := fashion(); err != nil { // by the clock of everybody
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.config.Policy = network.Policy{Deadline: time.Hour, Minimum: 3}
		f := w.open(t)
		w.declare(t, f, 0, 1, 2)
		begin := time.Now()
		wait := w.join(t.Context(), t, f, 0, 1)
		var third sync.WaitGroup
		third.Go(func() {
			time.Sleep(3 * time.Hour)
			if status := f.Status(); status.Phase != "round" || !status.Members[0].Delivered || !status.Members[1].Delivered {
				t.Errorf("after the deadline: %+v", status)
			}
			if err := w.member(t.Context(), f, 2); err != nil {
				t.Error(err)
			}
		})
		result, err := f.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wait()
		third.Wait()
		if taken := time.Since(begin); taken != 3*time.Hour {
			t.Errorf("it took %v, want as long as the third member", taken)
		}
		w.sameAsInOneProcess(t, result)
	})
}

// TestFullDisk tells members to come back later, and forgets nothing.
func TestFullDisk(t *testing.T) {
	w := newWorld(t, 1)
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	wait := w.join(t.Context(), t, f, 0, 1)
	var third sync.WaitGroup
	third.Go(func() {
		assignment, err := f.Next(t.Context(), 2)
		if err != nil {
			t.Error(err)
			return
		}
		d, err := w.update(t.Context(), assignment.Task)
		if err != nil {
			t.Error(err)
		}
		w.record.mutex.Lock()
		w.record.full = errors.New("no space left on device")
		w.record.mutex.Unlock()
		if err := f.Deliver(t.Context(), d); !errors.Is(err, network.ErrRecord) {
			t.Errorf("got %v, want %v", err, network.ErrRecord)
		}
		w.record.mutex.Lock()
		w.record.full = nil
		w.record.mutex.Unlock()
		if err := w.member(t.Context(), f, 2); err != nil {
			t.Error(err)
		}
	})
	// The others may meet the full disk too: they come back as well.
	result, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait()
	third.Wait()
	w.sameAsInOneProcess(t, result)
}

func TestDeclare(t *testing.T) {
	w := newWorld(t, 1)
	f := w.open(t)
	for _, d := range []network.Declaration{
		{Member: 0, Contribution: -1, Data: 10},
		{Member: 0, Contribution: 11, Data: 10},
		{Member: 0, Contribution: 1, Data: math.MaxInt64},
	} {
		if err := f.Declare(t.Context(), d); !errors.Is(err, network.ErrDeclaration) {
			t.Errorf("%+v: got %v, want %v", d, err, network.ErrDeclaration)
		}
	}
	if err := f.Declare(t.Context(), network.Declaration{Member: 3}); !errors.Is(err, network.ErrUnknown) {
		t.Errorf("got %v, want %v", err, network.ErrUnknown)
	}
	if _, err := f.Member("west"); !errors.Is(err, network.ErrUnknown) {
		t.Errorf("got %v, want %v", err, network.ErrUnknown)
	}
	w.declare(t, f, 0, 1, 2)
	wait := w.join(t.Context(), t, f, 0, 1, 2)
	if _, err := f.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait()
	err := f.Declare(t.Context(), network.Declaration{Member: 0, Contribution: 5, Data: 100})
	if !errors.Is(err, network.ErrDeclaration) {
		t.Errorf("another contribution after the first round: %v", err)
	}
}

// TestEverybodyFails ends the run with an error that names somebody.
func TestEverybodyFails(t *testing.T) {
	w := newWorld(t, 2)
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	var group sync.WaitGroup
	for member := range names {
		group.Go(func() {
			if _, err := f.Next(t.Context(), member); err != nil {
				t.Error(err)
			}
			if err := f.Fail(t.Context(), 1, member, "out of memory"); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := f.Run(t.Context()); !errors.Is(err, federated.ErrNobody) {
		t.Errorf("got %v, want %v", err, federated.ErrNobody)
	}
	group.Wait()
	assignment, err := f.Next(t.Context(), 0)
	if err != nil || !assignment.Done || assignment.Failed == "" {
		t.Errorf("next: %+v, %v", assignment, err)
	}
}

package silo_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/silo"
)

var cutFor = flag.Duration("cut", 6*time.Second, "how long the network is cut in TestFaults")

// TestFaults lets things go wrong that go wrong, and prints a table of what came of it (go test -v -run Faults). The
// processes of coordinator and silos are killed for real in internal/cli.
func TestFaults(t *testing.T) {
	faults := []struct {
		what, then string
		test       func(*testing.T)
	}{
		{"silo killed during training", "trains the round again; same bytes", killedDuringTraining},
		{"silo killed during upload", "upload goes on where it stopped, nothing trained again; same bytes", killedDuringUpload},
		{"connection breaks in upload and download", "both go on where they stopped; same bytes", transfersGoOn},
		{"network cut for longer than keep-alive", "both ends notice, silo reconnects; same bytes", networkCut},
		{"silo vanishes for two rounds", "rounds go on at the deadline, absence recorded; takes part again", vanishesForTwoRounds},
		{"update delivered twice, late, or replaced", "counts once; others are stale", duplicateDelivery},
		{"coordinator restarts in mid-upload, twice", "silos come back by themselves; same bytes", coordinatorRestarts},
		{"coordinator's disk takes nothing more", "silo tries again until it does; same bytes", diskIsFull},
		{"clocks an hour apart, either way", "enrolment and TLS work; same bytes", clockIsOff},
	}
	var table strings.Builder
	for _, fault := range faults {
		outcome := "pass"
		if !t.Run(strings.ReplaceAll(fault.what, " ", "_"), fault.test) {
			outcome = "FAIL"
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", fault.what, fault.then, outcome)
	}
	t.Logf("\n| fault | what comes of it | |\n| --- | --- | --- |\n%s", &table)
}

// counting counts how often each round was trained, and can be told to do something before it.
type counting struct {
	federated.Trainer
	mutex  sync.Mutex
	rounds []int
	before func(round int)
}

func (c *counting) Train(ctx context.Context, task federated.Task) (federated.Update, error) {
	c.mutex.Lock()
	c.rounds = append(c.rounds, task.Round)
	c.mutex.Unlock()
	if c.before != nil {
		c.before(task.Round)
	}
	return c.Trainer.Train(ctx, task)
}

func (c *counting) trained() []int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.rounds)
}

// count makes a silo count its trainings.
func (c *counting) count(r *silo.Runner) *silo.Runner {
	prepare := r.Prepare
	r.Prepare = func(ctx context.Context, terms silo.Terms) (*silo.Prepared, error) {
		p, err := prepare(ctx, terms)
		if err == nil {
			c.Trainer, p.Trainer = p.Trainer, c
		}
		return p, err
	}
	return r
}

// run runs a silo in the background.
func run(t testing.TB, group *sync.WaitGroup, r *silo.Runner) {
	group.Go(func() {
		if err := r.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", r.Address, err)
		}
	})
}

// The mlp is 0.8 MB, so that a transfer can break off in its middle.
const half = 400_000

// A broken upload goes on where it stopped, a broken download as well, and nothing is trained twice.
func transfersGoOn(t *testing.T) {
	w := newWorld(t, "mlp", 3, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	p := newProxy(t, w.address, 5*time.Millisecond)
	var group sync.WaitGroup
	run(t, &group, w.silo(1))
	c := &counting{before: func(round int) {
		switch round {
		case 1:
			p.breakAfter(half, 0) // in this round's upload
		case 2:
			p.breakAfter(0, half) // in the next round's download
		}
	}}
	a := c.count(w.silo(0))
	a.Address = p.address
	run(t, &group, a)
	w.expect()
	group.Wait()
	if got := c.trained(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("trained in rounds %v, want each once", got)
	}
	up, down, cuts := p.passed()
	if cuts != 2 {
		t.Errorf("the network was cut %d times, want 2", cuts)
	}
	// Three files each way; one more half would show that a transfer began anew.
	const file = 797_000
	if up > 3*file+half/2 || down > 3*file+half/2 {
		t.Errorf("%d bytes up and %d down for three files of %d", up, down, file)
	}
}

// A silo that is killed during its upload goes on with it, and trains nothing again.
func killedDuringUpload(t *testing.T) {
	w := newWorld(t, "mlp", 3, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	p := newProxy(t, w.address, 5*time.Millisecond)
	var group sync.WaitGroup
	run(t, &group, w.silo(1))
	ctx, kill := context.WithCancel(t.Context())
	c := &counting{before: func(round int) {
		if round == 2 {
			p.breakAfter(half, 0)
		}
	}}
	a := c.count(w.silo(0))
	a.Address = p.address
	a.Observe = func(s silo.Step) {
		if s.Action == silo.Offline {
			kill() // when it notices that the upload broke, it is no more
		}
	}
	if err := a.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	before, _, _ := p.passed()
	again := c.count(w.silo(0))
	again.Address, again.Folder = p.address, a.Folder
	run(t, &group, again)
	w.expect()
	group.Wait()
	if got := c.trained(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("trained in rounds %v, want each once", got)
	}
	if up, _, _ := p.passed(); up-before > 2*797_000-half/2 {
		t.Errorf("%d bytes up after the restart: the upload began anew", up-before)
	}
}

// A silo that is killed during training trains that round again, with the same result.
func killedDuringTraining(t *testing.T) {
	w := newWorld(t, "softmax", 3, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	var group sync.WaitGroup
	run(t, &group, w.silo(1))
	ctx, kill := context.WithCancel(t.Context())
	c := &counting{before: func(round int) {
		if round == 2 {
			kill()
		}
	}}
	a := c.count(w.silo(0))
	if err := a.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	again := w.silo(0)
	again.Folder = a.Folder
	run(t, &group, again)
	w.expect()
	group.Wait()
}

// The network is cut between silo and coordinator for longer than both wait for an answer, and once more in such a way that
// connections survive it.
func networkCut(t *testing.T) {
	w := newWorld(t, "mlp", 4, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	p := newProxy(t, w.address, 5*time.Millisecond)
	var group sync.WaitGroup
	run(t, &group, w.silo(1))
	c := &counting{before: func(round int) {
		switch round {
		case 2:
			p.stall(*cutFor) // the coordinator gives up after 4 s
		case 3:
			p.stall(time.Second)
		}
	}}
	a := c.count(w.silo(0))
	a.Address = p.address
	run(t, &group, a)
	w.expect()
	group.Wait()
	if got := c.trained(); !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("trained in rounds %v, want each once", got)
	}
}

// A silo that vanishes for two rounds is missed in them, which is recorded, and takes part again when it is back.
func vanishesForTwoRounds(t *testing.T) {
	w := newWorld(t, "softmax", 12, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.config.Policy = network.Policy{Deadline: 3 * time.Second, Minimum: 1}
	var gone, back atomic.Int32
	late := make(chan struct{}, 12)
	w.config.Observe = func(n network.Note) {
		if n.Kind == network.Late && n.Member == 0 {
			late <- struct{}{}
		}
	}
	w.start()
	var group sync.WaitGroup
	run(t, &group, w.extra(1))
	ctx, vanish := context.WithCancel(t.Context())
	a := w.extra(0)
	a.Observe = func(s silo.Step) {
		if s.Action == silo.Accepted {
			gone.Store(int32(s.Round))
			vanish()
		}
	}
	if err := a.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	<-late
	<-late
	again := w.extra(0)
	again.Folder = a.Folder
	again.Observe = func(s silo.Step) {
		if s.Action == silo.Accepted && back.Load() == 0 {
			back.Store(int32(s.Round))
		}
	}
	run(t, &group, again)
	networked := <-w.result
	group.Wait()
	if networked.err != nil || back.Load() == 0 {
		t.Fatalf("the run ended with %v; the silo was back in round %d", networked.err, back.Load())
	}
	for _, round := range networked.result.Rounds[gone.Load()-1 : back.Load()] {
		missed := round.Round > int(gone.Load()) && round.Round < int(back.Load())
		absent := slices.ContainsFunc(round.Absent, func(a federated.Absence) bool { return a.Member == 0 })
		if absent != missed {
			t.Errorf("round %d: absent %v; the silo left after round %d and was back in round %d", round.Round, round.Absent, gone.Load(), back.Load())
		}
	}
	if missed := back.Load() - gone.Load() - 1; missed < 2 {
		t.Errorf("missed %d rounds, want at least 2", missed)
	}
}

// The coordinator cannot write what a silo sends, and then can again.
func diskIsFull(t *testing.T) {
	w := newWorld(t, "softmax", 3, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	var group sync.WaitGroup
	run(t, &group, w.silo(1))
	// Uploads are written in this folder. A file in its place takes no more of them than a full disk does.
	place := filepath.Join(w.folder, "partial")
	away := place + "-away"
	c := &counting{before: func(round int) {
		if round != 2 {
			return
		}
		if err := errors.Join(os.Rename(place, away), os.WriteFile(place, nil, 0o600)); err != nil {
			t.Error(err)
		}
	}}
	var told string
	a := c.count(w.silo(0))
	a.Observe = func(s silo.Step) {
		if s.Action == silo.Offline && told == "" {
			told = s.Reason
			if err := errors.Join(os.Remove(place), os.Rename(away, place)); err != nil {
				t.Error(err)
			}
		}
	}
	run(t, &group, a)
	w.expect()
	group.Wait()
	if !strings.Contains(told, "cannot write") {
		t.Errorf("the silo was told %q", told)
	}
	if got := c.trained(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("trained in rounds %v, want each once", got)
	}
}

// The coordinator is gone for a while in the middle of a run; silos come back by themselves.
func coordinatorRestarts(t *testing.T) {
	w := newWorld(t, "mlp", 4, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	var group sync.WaitGroup
	restart := make(chan struct{}, 1)
	offline := make([]chan struct{}, 2)
	for i := range 2 {
		s := w.silo(i)
		offline[i] = make(chan struct{}, 1)
		s.Observe = func(step silo.Step) {
			tell := offline[i]
			if i == 0 && step.Action == silo.Uploading && (step.Round == 1 || step.Round == 3) {
				tell = restart
			} else if step.Action != silo.Offline {
				return
			}
			select {
			case tell <- struct{}{}:
			default:
			}
		}
		run(t, &group, s)
	}
	for range 2 {
		<-restart
		w.stop()
		if ended := <-w.result; !errors.Is(ended.err, context.Canceled) {
			t.Fatalf("the coordinator ended with %v", ended.err)
		}
		for _, noticed := range offline { // and once more, when they found nobody
			<-noticed
			<-noticed
		}
		w.start()
	}
	w.expect()
	group.Wait()
}

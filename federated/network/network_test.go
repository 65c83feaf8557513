package network_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/internal/stream"
	"grange/model"
	"grange/train"
	"grange/train/cpu"
)

// memory is a Record that survives its Federation, but not the process.
type memory struct {
	mutex sync.Mutex
	saved network.Saved
	notes []network.Note
	ended bool
	// full, if not nil, is what writing returns.
	full error
}

func (m *memory) Resume(context.Context, network.RunInfo) (network.Saved, error) { return m.saved, nil }

func (m *memory) Declare(_ context.Context, d network.Declaration) error {
	return m.write(func() { m.saved.Declarations = append(m.saved.Declarations, d) })
}

func (m *memory) Deliver(_ context.Context, d network.Delivery) error {
	return m.write(func() { m.saved.Deliveries = append(m.saved.Deliveries, d) })
}

func (m *memory) Finish(_ context.Context, f network.Finished) error {
	return m.write(func() { m.saved.Finished, m.saved.Deliveries = append(m.saved.Finished[:f.Round.Round-1], f), nil })
}

func (m *memory) End(context.Context, error) error { return m.write(func() { m.ended = true }) }

func (m *memory) Note(_ context.Context, note network.Note) error {
	return m.write(func() { m.notes = append(m.notes, note) })
}

func (m *memory) write(change func()) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.full != nil {
		return m.full
	}
	change()
	return nil
}

// about lists the notes of a kind.
func (m *memory) about(kind network.Kind) []network.Note {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var found []network.Note
	for _, note := range m.notes {
		if note.Kind == kind {
			found = append(found, note)
		}
	}
	return found
}

// world is a training that can be done in one process or by a federation.
type world struct {
	job     train.Job
	config  network.Config
	trainer *cpu.Trainer
	record  *memory
}

var fashion = sync.OnceValues(func() (*dataset.Dataset, error) {
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		return nil, err
	}
	// A few test images will do.
	data.Test.Labels = data.Test.Labels[:500]
	data.Test.Pixels = data.Test.Pixels[:500*data.Test.Shape.Channels*data.Test.Shape.Height*data.Test.Shape.Width]
	return data, nil
})

var names = []string{"north", "south", "east"}

// newWorld prepares a small training of three members.
func newWorld(t *testing.T, rounds int) *world {
	t.Helper()
	data, err := fashion()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{record: &memory{}}
	w.job = train.Job{Data: data, Model: "softmax", Settings: federated.Settings{Rounds: rounds}, Local: federated.Local{Epochs: 1}, Seed: 7}
	var holdings []dataset.Holding
	for i, name := range names {
		holding := dataset.Holding{Data: 100, Contribution: 60 + 10*i}
		holdings = append(holdings, holding)
		w.job.Members = append(w.job.Members, train.Member{Name: name, Holding: holding})
	}
	shards, err := w.job.Split.Shards(data, holdings, w.job.Seed)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := model.New(w.job.Model, model.Shape(data.Shape()), len(data.Classes))
	if err != nil {
		t.Fatal(err)
	}
	if w.trainer, err = cpu.New(cpu.Config{Spec: spec, Data: data, Shards: shards}); err != nil {
		t.Fatal(err)
	}
	store, err := objects.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w.config = network.Config{
		RunInfo:  network.RunInfo{Name: "three", Members: names, Rounds: rounds},
		Settings: w.job.Settings, Local: w.job.Local, Seed: w.job.Seed, Spec: spec,
		Initial:   model.Init(spec, stream.New(w.job.Seed, "initial weights")),
		Evaluator: w.trainer, Kernel: w.trainer.Kernel(), Record: w.record, Objects: store,
	}
	return w
}

func (w *world) open(t *testing.T) *network.Federation {
	t.Helper()
	f, err := network.Open(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (w *world) declare(t *testing.T, f *network.Federation, members ...int) {
	t.Helper()
	for _, member := range members {
		holding := w.job.Members[member].Holding
		err := f.Declare(t.Context(), network.Declaration{Member: member, Contribution: holding.Contribution, Data: holding.Data, Transport: "grange"})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// update trains a task and puts the result where the federation finds it.
func (w *world) update(ctx context.Context, task federated.Task) (network.Delivery, error) {
	update, err := w.trainer.Train(ctx, task)
	if err != nil {
		return network.Delivery{}, err
	}
	return w.delivery(task, update.Weights, update.Loss)
}

func (w *world) delivery(task federated.Task, weights *model.Weights, loss float64) (network.Delivery, error) {
	digest, err := w.config.Objects.Put(func(out io.Writer) error { return model.WriteSafetensors(out, weights, nil) })
	return network.Delivery{Round: task.Round, Member: task.Member, Update: digest, Examples: task.Contribution, Loss: loss}, err
}

// member takes part until the run is over.
func (w *world) member(ctx context.Context, f *network.Federation, member int) error {
	defer f.Connect(member)()
	for {
		assignment, err := f.Next(ctx, member)
		if err != nil || assignment.Done {
			return err
		}
		delivery, err := w.update(ctx, assignment.Task)
		if err != nil {
			return err
		}
		err = f.Deliver(ctx, delivery)
		if err != nil && !errors.Is(err, network.ErrStale) && !errors.Is(err, network.ErrRecord) {
			return err
		}
	}
}

// join has members take part, and returns what waits for them.
func (w *world) join(ctx context.Context, t *testing.T, f *network.Federation, members ...int) (wait func()) {
	var group sync.WaitGroup
	for _, member := range members {
		group.Go(func() {
			if err := w.member(ctx, f, member); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", names[member], err)
			}
		})
	}
	return group.Wait
}

// sameAsInOneProcess compares a result with that of train.Run, to the bit.
func (w *world) sameAsInOneProcess(t *testing.T, got *federated.Result) {
	t.Helper()
	want, err := train.Run(t.Context(), w.job)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want.Weights.Flat, got.Weights.Flat) {
		t.Error("the models differ")
	}
	text := func(r federated.Result) string {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if diff := cmp.Diff(text(want.Result), text(*got)); diff != "" {
		t.Error(diff)
	}
}

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
	for stop := range 12 {
		t.Run(fmt.Sprint(stop), func(t *testing.T) {
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
			w.config.Observe = nil
			f = w.open(t)
			wait = w.join(t.Context(), t, f, 0, 1, 2)
			if result, err = f.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			wait()
			w.sameAsInOneProcess(t, result)
		})
	}
}

// TestLostModel goes on from the round before when the last model did not survive.
func TestLostModel(t *testing.T) {
	for name, spoil := range map[string]func(string) error{
		"gone":    os.Remove,
		"changed": func(file string) error { return os.Truncate(file, 100) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			ctx, cancel := context.WithCancel(t.Context())
			w.config.Observe = func(note network.Note) {
				if note.Kind == network.RoundBegun && note.Round == 3 {
					cancel()
				}
			}
			f := w.open(t)
			w.declare(t, f, 0, 1, 2)
			wait := w.join(ctx, t, f, 0, 1, 2)
			if _, err := f.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			wait()
			file, err := w.config.Objects.Open(w.record.saved.Finished[1].Model)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(file.Close(), spoil(file.Name())); err != nil {
				t.Fatal(err)
			}
			w.config.Observe = nil
			f = w.open(t)
			if notes := w.record.about(network.Lost); len(notes) != 1 || notes[0].Round != 2 {
				t.Errorf("the record says %v", notes)
			}
			wait = w.join(t.Context(), t, f, 0, 1, 2)
			result, err := f.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wait()
			w.sameAsInOneProcess(t, result)
		})
	}
}

// TestRefused hands in updates that are none; the round goes on without them.
func TestRefused(t *testing.T) {
	spoil := func(change func([]float32)) func(*world, federated.Task) (network.Delivery, error) {
		return func(w *world, task federated.Task) (network.Delivery, error) {
			weights := task.Global.Clone()
			change(weights.Flat)
			return w.delivery(task, weights, 1)
		}
	}
	after := func(change func(*network.Delivery)) func(*world, federated.Task) (network.Delivery, error) {
		return func(w *world, task federated.Task) (network.Delivery, error) {
			d, err := w.update(context.Background(), task)
			change(&d)
			return d, err
		}
	}
	tests := []struct {
		name string
		make func(*world, federated.Task) (network.Delivery, error)
		want error
	}{
		{"not a number", spoil(func(v []float32) { v[len(v)-1] = float32(math.NaN()) }), federated.ErrNotFinite},
		{"infinite", spoil(func(v []float32) { v[0] = float32(math.Inf(-1)) }), federated.ErrNotFinite},
		{"the model that was sent", spoil(func([]float32) {}), network.ErrFreeRider},
		{"more examples than declared", after(func(d *network.Delivery) { d.Examples++ }), federated.ErrExamples},
		{"no examples", after(func(d *network.Delivery) { d.Examples = 0 }), federated.ErrExamples},
		{"a loss that is not a number", after(func(d *network.Delivery) { d.Loss = math.NaN() }), federated.ErrNotFinite},
		{"another model", func(w *world, task federated.Task) (network.Delivery, error) {
			spec, err := model.New("mlp", w.config.Spec.Input, w.config.Spec.Classes)
			if err != nil {
				return network.Delivery{}, err
			}
			return w.delivery(task, model.NewWeights(spec), 1)
		}, federated.ErrWeights},
		{"a file that is too long", func(w *world, task federated.Task) (network.Delivery, error) {
			digest, err := w.config.Objects.Put(func(out io.Writer) error {
				if err := model.WriteSafetensors(out, task.Global, nil); err != nil {
					return err
				}
				_, err := out.Write(make([]byte, 4))
				return err
			})
			return network.Delivery{Round: task.Round, Member: task.Member, Update: digest, Examples: 1}, err
		}, federated.ErrWeights},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, 1)
			f := w.open(t)
			w.declare(t, f, 0, 1, 2)
			wait := w.join(t.Context(), t, f, 0, 2)
			var second sync.WaitGroup
			second.Go(func() {
				assignment, err := f.Next(t.Context(), 1)
				if err != nil {
					t.Error(err)
					return
				}
				d, err := test.make(w, assignment.Task)
				if err != nil {
					t.Error(err)
				}
				if err := f.Deliver(t.Context(), d); !errors.Is(err, test.want) || !errors.Is(err, network.ErrRefused) {
					t.Errorf("got %v, want %v", err, test.want)
				}
			})
			result, err := f.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wait()
			second.Wait()
			absent := result.Rounds[0].Absent
			if len(absent) != 1 || absent[0].Name != "south" || len(result.Warnings) != 1 {
				t.Errorf("absent %v, warnings %v", absent, result.Warnings)
			}
			if notes := w.record.about(network.Refused); len(notes) != 1 || notes[0].Member != 1 || notes[0].Text == "" {
				t.Errorf("the record says %v", notes)
			}
		})
	}
}

// TestStale hands in what is of no use: nothing changes.
func TestStale(t *testing.T) {
	w := newWorld(t, 2)
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	deliver := func(d network.Delivery, want error) {
		t.Helper()
		if err := f.Deliver(t.Context(), d); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	deliver(network.Delivery{Round: 1, Member: 0, Examples: 1}, network.ErrStale)
	deliver(network.Delivery{Round: 1, Member: 9, Examples: 1}, network.ErrUnknown)
	done := make(chan *federated.Result)
	go func() {
		result, err := f.Run(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	next := func(member int) federated.Task {
		t.Helper()
		assignment, err := f.Next(t.Context(), member)
		if err != nil {
			t.Fatal(err)
		}
		return assignment.Task
	}
	first, err := w.update(t.Context(), next(0))
	if err != nil {
		t.Fatal(err)
	}
	later := first
	later.Round = 2
	deliver(later, network.ErrStale)
	deliver(first, nil)
	deliver(first, nil) // the answer was lost
	other, err := w.update(t.Context(), next(1))
	if err != nil {
		t.Fatal(err)
	}
	mine := other
	mine.Member = 0
	deliver(mine, network.ErrStale)
	deliver(other, nil)
	last, err := w.update(t.Context(), next(2))
	if err != nil {
		t.Fatal(err)
	}
	deliver(last, nil)
	next(2)            // of the second round
	deliver(last, nil) // the answer was lost, and a round is over since
	replay := last
	replay.Examples--
	deliver(replay, network.ErrStale)
	if err := f.Fail(t.Context(), 1, 1, "cannot"); !errors.Is(err, network.ErrStale) {
		t.Errorf("failing in a round that is over: %v", err)
	}
	wait := w.join(t.Context(), t, f, 0, 1, 2)
	w.sameAsInOneProcess(t, <-done)
	wait()
	if n := len(w.record.about(network.Stale)); n != 5 {
		t.Errorf("the record has %d stale updates, want 5", n)
	}
}

// TestDeadline goes on without a member that is not heard of, and takes it back later.
func TestDeadline(t *testing.T) {
	w := newWorld(t, 3)
	w.config.Policy = network.Policy{Deadline: time.Millisecond, Minimum: 2}
	back := make(chan struct{})
	w.config.Observe = func(note network.Note) {
		if note.Kind == network.RoundEnded && note.Round == 2 {
			close(back)
		}
	}
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
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
	for _, round := range result.Rounds[:2] {
		if len(round.Absent) != 1 || round.Absent[0].Name != "east" {
			t.Errorf("round %d: absent %v, want east", round.Round, round.Absent)
		}
	}
}

// TestMinimum waits past the deadline for enough members.
func TestMinimum(t *testing.T) {
	w := newWorld(t, 1)
	w.config.Policy = network.Policy{Deadline: time.Millisecond, Minimum: 3}
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	wait := w.join(t.Context(), t, f, 0, 1)
	var third sync.WaitGroup
	third.Go(func() {
		time.Sleep(20 * time.Millisecond)
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
	w.sameAsInOneProcess(t, result)
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

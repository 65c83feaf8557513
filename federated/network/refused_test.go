package network_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/model"
)

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
			w.holds(t, 2) // the initial model and the trained one
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
	// Each delivery comes with its file, as from a transport.
	content := map[objects.Digest][]byte{}
	deliver := func(d network.Delivery, want error) {
		t.Helper()
		if file, ok := content[d.Update]; ok {
			if _, err := w.config.Objects.Put(func(out io.Writer) error { _, err := out.Write(file); return err }); err != nil {
				t.Fatal(err)
			}
		}
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
	train := func(member int) network.Delivery {
		t.Helper()
		d, err := w.update(t.Context(), next(member))
		if err != nil {
			t.Fatal(err)
		}
		file, err := w.config.Objects.Open(d.Update)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if content[d.Update], err = io.ReadAll(file); err != nil {
			t.Fatal(err)
		}
		return d
	}
	first := train(0)
	later := first
	later.Round = 2
	deliver(later, network.ErrStale)
	deliver(first, nil)
	deliver(first, nil) // the answer was lost
	other := train(1)
	mine := other
	mine.Member = 0
	deliver(mine, network.ErrStale)
	deliver(other, nil)
	last := train(2)
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
	w.holds(t, 3) // the models
}

// TestFlood has a member send one update after another in a round, before and after it is out, and after the run: none of
// them stays.
func TestFlood(t *testing.T) {
	w := newWorld(t, 1)
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	done := make(chan error)
	go func() {
		_, err := f.Run(t.Context())
		done <- err
	}()
	flood := func(member int, want error) {
		t.Helper()
		for i := range 20 {
			weights := w.config.Initial.Clone()
			weights.Flat[i] = float32(math.NaN())
			d, err := w.delivery(federated.Task{Round: 1, Member: member, Contribution: 10}, weights, 1)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Deliver(t.Context(), d); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
	}
	assignment, err := f.Next(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	good, err := w.update(t.Context(), assignment.Task)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Wanted(1, 0), f.Deliver(t.Context(), good), f.Wanted(1, 0)); err != nil {
		t.Fatal(err)
	}
	flood(0, network.ErrStale)
	flood(1, network.ErrRefused)
	w.holds(t, 2) // the initial model and the update
	for round, want := range map[int]error{1: network.ErrRefused, 2: network.ErrStale} {
		if err := f.Wanted(round, 1); !errors.Is(err, want) {
			t.Errorf("round %d: got %v, want %v", round, err, want)
		}
	}
	wait := w.join(t.Context(), t, f, 2)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wait()
	flood(0, network.ErrStale)
	flood(1, network.ErrStale)
	// The answer was lost, and all of it comes again.
	if _, err := w.update(t.Context(), assignment.Task); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Wanted(1, 0), f.Deliver(t.Context(), good)); err != nil {
		t.Error(err)
	}
	if err := f.Wanted(1, 1); !errors.Is(err, network.ErrStale) {
		t.Errorf("got %v, want %v", err, network.ErrStale)
	}
	w.holds(t, 2) // the initial model and the trained one
}

// TestSameFile has two members send the same bytes, of which one's are refused: the other's stay.
func TestSameFile(t *testing.T) {
	w := newWorld(t, 1)
	f := w.open(t)
	w.declare(t, f, 0, 1, 2)
	var ended error
	var run sync.WaitGroup
	run.Go(func() { _, ended = f.Run(t.Context()) })
	assignment, err := f.Next(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	good, err := w.update(t.Context(), assignment.Task)
	if err != nil {
		t.Fatal(err)
	}
	copied := good
	copied.Member, copied.Examples = 1, 1000
	if err := f.Deliver(t.Context(), good); err != nil {
		t.Fatal(err)
	}
	if err := f.Deliver(t.Context(), copied); !errors.Is(err, federated.ErrExamples) {
		t.Errorf("got %v, want %v", err, federated.ErrExamples)
	}
	wait := w.join(t.Context(), t, f, 2)
	run.Wait()
	wait()
	if ended != nil {
		t.Error(ended)
	}
}

// TestOwnTrouble has the coordinator fail to read an update, which is not the member's fault.
func TestOwnTrouble(t *testing.T) {
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
		d, err := w.update(t.Context(), assignment.Task)
		if err != nil {
			t.Error(err)
		}
		file, err := w.config.Objects.Open(d.Update)
		if err != nil {
			t.Error(err)
			return
		}
		// A folder can be opened, and not read.
		if err := errors.Join(file.Close(), os.Remove(file.Name()), os.Mkdir(file.Name(), 0o700)); err != nil {
			t.Error(err)
		}
		if err := f.Deliver(t.Context(), d); !errors.Is(err, network.ErrRecord) || errors.Is(err, network.ErrRefused) {
			t.Errorf("got %v, want %v", err, network.ErrRecord)
		}
		if err := w.member(t.Context(), f, 1); err != nil {
			t.Error(err)
		}
	})
	result, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wait()
	second.Wait()
	w.sameAsInOneProcess(t, result)
}

// TestOperatorsTrouble stops the coordinator for what is not the run's fault: members are not told that it has ended, and
// the next coordinator goes on.
func TestOperatorsTrouble(t *testing.T) {
	for name, trouble := range map[string]func(t *testing.T, w *world) (mend func()){
		"updates cannot be kept": func(_ *testing.T, w *world) func() {
			w.config.Keep = func(*federated.Aggregate) error { return errors.New("the folder is of another training") }
			return func() { w.config.Keep = nil }
		},
		"updates cannot be removed": func(t *testing.T, w *world) func() {
			// A folder with something in it is removed by nobody. It takes the place of what was half uploaded.
			stuck := filepath.Join(w.folder, "partial", "stuck")
			if err := os.MkdirAll(filepath.Join(stuck, "within"), 0o700); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := os.RemoveAll(stuck); err != nil {
					t.Fatal(err)
				}
			}
		},
		"the model cannot be scored": func(_ *testing.T, w *world) func() {
			evaluator := w.config.Evaluator
			w.config.Evaluator = broken{}
			return func() { w.config.Evaluator = evaluator }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 2)
			mend := trouble(t, w)
			f := w.open(t)
			w.declare(t, f, 0, 1, 2)
			ctx, cancel := context.WithCancel(t.Context())
			wait := w.join(ctx, t, f, 0, 1, 2)
			if _, err := f.Run(t.Context()); err == nil || network.FaultOf(err) != network.Ours {
				t.Errorf("got %v", err)
			}
			if status := f.Status(); status.Phase == "failed" || w.record.ended {
				t.Errorf("the run has ended: %+v", status)
			}
			cancel()
			wait()
			mend()
			f = w.open(t)
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

// broken scores no model.
type broken struct{}

func (broken) Evaluate(context.Context, *model.Weights) (federated.Score, error) {
	return federated.Score{}, errors.New("the card has fallen off the bus")
}

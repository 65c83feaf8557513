package network_test

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"testing"

	"grange/federated"
	"grange/federated/network"
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

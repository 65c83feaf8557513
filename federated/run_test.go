package federated_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/federated"
	"grange/model"
)

// toy is a trainer that adds a number depending on member and round to every weight, and fails where told to.
type toy struct {
	fail map[[2]int]error // by round and member
	// wait makes members of higher numbers finish first.
	wait bool
	loss float64 // of every model, in addition to 1

	mutex sync.Mutex
	done  int
}

func (f *toy) Train(ctx context.Context, task federated.Task) (federated.Update, error) {
	for f.wait {
		f.mutex.Lock()
		mine := f.done == 3-task.Member || f.done == 2 && task.Member == 0
		if mine {
			f.done = (f.done + 1) % 3
		}
		f.mutex.Unlock()
		if mine {
			break
		}
		runtime.Gosched()
	}
	if err := f.fail[[2]int{task.Round, task.Member}]; err != nil {
		return federated.Update{}, err
	}
	weights := task.Global.Clone()
	for i := range weights.Flat {
		weights.Flat[i] += 0.1*float32(task.Member+1) + 0.01*float32(task.Round)
	}
	return federated.Update{Round: task.Round, Member: task.Member, Weights: weights, Loss: float64(task.Member)}, ctx.Err()
}

func (f *toy) Evaluate(_ context.Context, weights *model.Weights) (federated.Score, error) {
	return federated.Score{Accuracy: float64(weights.Flat[0]), Loss: 1 + f.loss}, nil
}

func toyRun(trainer *toy, rounds int) federated.Run {
	return federated.Run{
		Settings: federated.Settings{Rounds: rounds}, Members: members(3, 0, 1, 2),
		Trainer: trainer, Evaluator: trainer, Seed: 7, Kernel: "toy",
	}
}

func TestRunDoesNotDependOnWhoIsFirst(t *testing.T) {
	fresh := federated.State{Weights: constant(tiny(t), 0)}
	want, err := toyRun(&toy{}, 5).From(context.Background(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	if len(want.Rounds) != 5 || want.Rounds[4].Round != 5 || want.Accuracy != want.Rounds[4].Accuracy || want.Seed != 7 || want.Kernel != "toy" {
		t.Errorf("result %+v", want)
	}
	// Losses 0, 2 and 3 weighted by 3, 1 and 2.
	if got := want.Rounds[0].Training; got != 8.0/6 {
		t.Errorf("training loss %v, expected %v", got, 8.0/6)
	}
	got, err := toyRun(&toy{wait: true}, 5).From(context.Background(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Weights.Flat, want.Weights.Flat) || !cmp.Equal(got.Rounds, want.Rounds) {
		t.Error("members finish in another order, another result")
	}
}

func TestRunGoesOn(t *testing.T) {
	want, err := toyRun(&toy{}, 5).From(context.Background(), federated.State{Weights: constant(tiny(t), 0)})
	if err != nil {
		t.Fatal(err)
	}
	var states []federated.State
	first := toyRun(&toy{}, 2)
	first.Save = func(state federated.State) error { states = append(states, state); return nil }
	if _, err := first.From(context.Background(), federated.State{Weights: constant(tiny(t), 0)}); err != nil {
		t.Fatal(err)
	}
	for _, state := range states {
		got, err := toyRun(&toy{}, 5).From(context.Background(), state)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Weights.Flat, want.Weights.Flat) || !cmp.Equal(got.Rounds, want.Rounds) || len(got.Warnings) != 0 {
			t.Errorf("continued after round %d, another result", len(state.Rounds))
		}
	}
	other := toyRun(&toy{}, 5)
	other.Kernel = "abacus"
	got, err := other.From(context.Background(), states[1])
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "rounds up to 2 were computed with the kernel toy") {
		t.Errorf("warnings %q, error %v", got.Warnings, err)
	}
}

func TestFailingMemberStopsTheRun(t *testing.T) {
	broken := errors.New("disk on fire")
	for range 20 {
		trainer := &toy{fail: map[[2]int]error{{2, 2}: broken, {2, 3}: errors.New("other")}}
		_, err := toyRun(trainer, 3).From(context.Background(), federated.State{Weights: constant(tiny(t), 0)})
		if !errors.Is(err, federated.ErrTraining) || !errors.Is(err, broken) || !strings.Contains(err.Error(), "c in round 2: disk on fire") {
			t.Errorf("error %v, expected c in round 2", err)
		}
	}
}

func TestFailingMemberIsLeftOut(t *testing.T) {
	trainer := &toy{fail: map[[2]int]error{{2, 2}: errors.New("no power")}}
	run := toyRun(trainer, 3)
	run.Settings.OnFailure = federated.Proceed
	var seen []int
	run.Observe = func(o federated.Observation) { seen = append(seen, len(o.Updates)) }
	result, err := run.From(context.Background(), federated.State{Weights: constant(tiny(t), 0)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(result.Rounds[1].Absent, []federated.Absence{{Member: 2, Name: "c", Reason: "no power"}}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(result.Warnings, []string{"round 2 went on without c, whose training failed: no power"}); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(seen, []int{3, 2, 3}) {
		t.Errorf("updates per round %v, expected [3 2 3]", seen)
	}
	for _, member := range []int{0, 2, 3} {
		trainer.fail[[2]int{3, member}] = errors.New("no power")
	}
	if _, err := run.From(context.Background(), federated.State{Weights: constant(tiny(t), 0)}); !errors.Is(err, federated.ErrNobody) {
		t.Errorf("all fail: error %v", err)
	}
}

// wrongMember answers every task as another member.
type wrongMember struct{ toy }

func (f *wrongMember) Train(ctx context.Context, task federated.Task) (federated.Update, error) {
	update, err := f.toy.Train(ctx, task)
	update.Member = 3
	return update, err
}

func TestTrainerThatAnswersForAnother(t *testing.T) {
	run := toyRun(&toy{}, 1)
	run.Trainer = &wrongMember{}
	if _, err := run.From(context.Background(), federated.State{Weights: constant(tiny(t), 0)}); !errors.Is(err, federated.ErrMember) {
		t.Errorf("error %v", err)
	}
}

func TestRunStopsWhenTheLossIsNotFinite(t *testing.T) {
	_, err := toyRun(&toy{loss: math.Inf(1)}, 3).From(context.Background(), federated.State{Weights: constant(tiny(t), 0)})
	if !errors.Is(err, federated.ErrNotFinite) || !strings.Contains(err.Error(), "after round 1") {
		t.Errorf("error %v", err)
	}
}

func TestRunStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	run := toyRun(&toy{}, 100)
	run.Settings.OnFailure = federated.Proceed
	run.Observe = func(o federated.Observation) {
		if o.Round == 3 {
			cancel()
		}
	}
	if _, err := run.From(ctx, federated.State{Weights: constant(tiny(t), 0)}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, expected %v", err, context.Canceled)
	}
}

func TestRunStopsWhenItCannotSave(t *testing.T) {
	full := errors.New("disk full")
	run := toyRun(&toy{}, 3)
	run.Save = func(state federated.State) error {
		if len(state.Rounds) == 2 {
			return full
		}
		return nil
	}
	if _, err := run.From(context.Background(), federated.State{Weights: constant(tiny(t), 0)}); !errors.Is(err, full) || !strings.Contains(err.Error(), "after round 2") {
		t.Errorf("error %v", err)
	}
}

func ExampleRun() {
	trainer := &toy{}
	spec, _ := model.New("softmax", model.Shape{Channels: 1, Height: 1, Width: 1}, 2)
	run := federated.Run{
		Settings:  federated.Settings{Rounds: 2},
		Members:   []federated.Member{{Name: "north", Contribution: 100}, {Name: "south", Contribution: 100}},
		Trainer:   trainer,
		Evaluator: trainer,
	}
	result, err := run.From(context.Background(), federated.State{Weights: model.NewWeights(spec)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, round := range result.Rounds {
		fmt.Printf("round %d: %.2f\n", round.Round, round.Accuracy)
	}
	// Output:
	// round 1: 0.16
	// round 2: 0.33
}

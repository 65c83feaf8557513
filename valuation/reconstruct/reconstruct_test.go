package reconstruct_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/federated"
	"grange/model"
	"grange/valuation"
	"grange/valuation/reconstruct"
)

// recording plays a training in which every member pulls the model towards a
// point of its own.
func recording(rounds int, pulls [][]float32) *reconstruct.Recording {
	r := &reconstruct.Recording{}
	global := make([]float32, len(pulls[0]))
	for n := range pulls {
		r.Names = append(r.Names, fmt.Sprintf("m%d", n))
	}
	for range rounds {
		round := reconstruct.Round{Global: global}
		for n, pull := range pulls {
			update := slices.Clone(global)
			for i := range update {
				update[i] += 0.3 * (pull[i] - update[i])
			}
			round.Updates = append(round.Updates, update)
			round.Weights = append(round.Weights, float64(100*(n+1)))
		}
		r.Finished = append(r.Finished, round)
		global = round.Model(valuation.Everyone(len(pulls)))
	}
	return r
}

// closeness is how near a model is to (1, 1, …).
func closeness(_ context.Context, weights []float32) (float64, error) {
	sum := 0.0
	for _, w := range weights {
		sum += float64((w - 1) * (w - 1))
	}
	return 1 / (1 + sum), nil
}

// pulls are n members, of whom later ones pull further away from (1, 1, 1).
func pulls(n int) [][]float32 {
	random := rand.New(rand.NewPCG(1, 1))
	list := make([][]float32, n)
	for i := range list {
		for range 3 {
			list[i] = append(list[i], 1+float32(i)*0.25*float32(random.NormFloat64()))
		}
	}
	return list
}

// The model of all members must be the one that federated averaging makes.
func TestModelIsTheFederatedAverage(t *testing.T) {
	spec, err := model.New("softmax", model.Shape{Channels: 1, Height: 4, Width: 4}, 3)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 5))
	members := []federated.Member{{Name: "a", Contribution: 3}, {Name: "b", Contribution: 0}, {Name: "c", Contribution: 7}}
	global := model.Init(spec, random)
	coordinator, err := federated.NewCoordinator(federated.Settings{Rounds: 1, GlobalRate: 0.7}, members, global, 0)
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := coordinator.Begin()
	if err != nil {
		t.Fatal(err)
	}
	round := reconstruct.Round{Global: global.Flat, Updates: make([][]float32, 3), Weights: []float64{3, 0, 7}, Rate: 0.7}
	for _, task := range tasks {
		update := model.Init(spec, random)
		round.Updates[task.Member] = update.Flat
		if err := coordinator.Receive(federated.Update{Round: 1, Member: task.Member, Weights: update}); err != nil {
			t.Fatal(err)
		}
	}
	aggregate, err := coordinator.Aggregate()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(aggregate.After.Flat, round.Model(valuation.Everyone(3))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(global.Flat, round.Model(valuation.CoalitionOf(1))); diff != "" {
		t.Errorf("a coalition that took no part moves the model: %s", diff)
	}
}

func TestMultiRoundIsEfficientInEveryRound(t *testing.T) {
	h := recording(4, pulls(5))
	o, err := reconstruct.MultiRound{}.Value(t.Context(), h, closeness)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, v := range o.Values {
		sum += v
	}
	if math.Abs(sum-(o.Whole-o.Empty)) > 1e-12 {
		t.Errorf("the values add up to %v, the training brought %v", sum, o.Whole-o.Empty)
	}
	if o.Evaluations != 4*32 || len(o.Rounds) != 4 {
		t.Errorf("%d evaluations in %d rounds", o.Evaluations, len(o.Rounds))
	}
}

// GTG must agree with what it samples, within its own error, and cost less.
func TestGTGAgreesWithMultiRound(t *testing.T) {
	h := recording(6, pulls(8))
	exact, err := reconstruct.MultiRound{}.Value(t.Context(), h, closeness)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(5) {
		o, err := reconstruct.GTG{Settings: valuation.Settings{Seed: seed, Workers: 2, Stop: valuation.Evaluations(160)}}.Value(t.Context(), h, closeness)
		if err != nil {
			t.Fatal(err)
		}
		if o.Evaluations >= exact.Evaluations {
			t.Errorf("%d evaluations, exactly %d", o.Evaluations, exact.Evaluations)
		}
		skipped := 0.0
		for _, r := range o.Rounds {
			if r.Skipped {
				skipped += math.Abs(r.After - r.Before)
			}
		}
		for n, v := range o.Values {
			if off := math.Abs(v - exact.Values[n]); off > 4*o.Errors[n]+skipped {
				t.Errorf("seed %d: member %d gets %v ± %v, exactly %v", seed, n, v, o.Errors[n], exact.Values[n])
			}
		}
	}
}

func TestGTGSkipsIdleRounds(t *testing.T) {
	h := recording(3, pulls(4))
	idle := h.Finished[2]
	idle.Global = idle.Model(valuation.Everyone(4))
	for n := range idle.Updates {
		idle.Updates[n] = idle.Global
	}
	h.Finished = append(h.Finished, idle)
	o, err := reconstruct.GTG{}.Value(t.Context(), h, closeness)
	if err != nil {
		t.Fatal(err)
	}
	last := o.Rounds[3]
	if !last.Skipped || last.Evaluations != 2 || o.Rounds[0].Skipped {
		t.Errorf("the idle round: %+v; the first: %+v", last, o.Rounds[0])
	}
	if o.Skipped != 1 || o.Status == valuation.Exact || len(o.Warnings) == 0 || !strings.Contains(o.Warnings[len(o.Warnings)-1], "1 of 4 rounds") {
		t.Errorf("%v, %d skipped, %q: want it said that one of four rounds was", o.Status, o.Skipped, o.Warnings)
	}
	for n, e := range o.Errors { // all rounds valued were so exactly
		if !math.IsInf(e, 1) || !math.IsInf(o.Spread[n], 1) {
			t.Errorf("the error of member %d is %v with a round skipped", n, e)
		}
	}
	every, err := reconstruct.GTG{Between: -1}.Value(t.Context(), h, closeness)
	if err != nil || every.Skipped != 0 || every.Errors[0] != 0 {
		t.Errorf("%+v, %v: want every round valued", every, err)
	}
}

func TestMissingUpdates(t *testing.T) {
	h := recording(4, pulls(3))
	h.Finished[2].Updates[1] = nil
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, reconstruct.ErrMissing) || !strings.Contains(err.Error(), "m1 in round 3") {
			t.Errorf("%s: error %v, want that m1 is missing in round 3", what, err)
		}
	}
	o, err := reconstruct.MultiRound{}.Value(t.Context(), h, closeness)
	check("multi-round", err)
	if o == nil || len(o.Rounds) != 2 || o.Status != valuation.Failed {
		t.Errorf("the rounds before are lost: %+v", o)
	}
	o, err = reconstruct.GTG{}.Value(t.Context(), h, closeness)
	check("gtg", err)
	if o == nil || len(o.Rounds) != 2 {
		t.Errorf("the rounds before are lost: %+v", o)
	}
	_, err = reconstruct.Replay{}.Game(t.Context(), h, closeness)
	check("replay", err)
	h.Finished[2].Updates[1] = []float32{1}
	if _, err := reconstruct.OneRound(t.Context(), h, closeness); !errors.Is(err, reconstruct.ErrShape) {
		t.Errorf("error %v for an update of another size, want ErrShape", err)
	}
	if _, err := (reconstruct.GTG{}).Value(t.Context(), &reconstruct.Recording{Names: []string{"a"}}, closeness); !errors.Is(err, reconstruct.ErrShape) {
		t.Errorf("error %v without rounds, want ErrShape", err)
	}
}

// A member whose training diverged is named, with the round.
func TestDivergedUpdates(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		h := recording(3, pulls(3))
		h.Finished[1].Updates[2] = slices.Clone(h.Finished[1].Updates[2])
		h.Finished[1].Updates[2][1] = float32(bad)
		for name, value := range map[string]func() error{
			"multi-round": func() error { _, err := reconstruct.MultiRound{}.Value(t.Context(), h, closeness); return err },
			"gtg":         func() error { _, err := reconstruct.GTG{}.Value(t.Context(), h, closeness); return err },
			"replay":      func() error { _, err := reconstruct.Replay{}.Game(t.Context(), h, closeness); return err },
		} {
			if err := value(); !errors.Is(err, reconstruct.ErrNotFinite) || !strings.Contains(err.Error(), "m2 in round 2") {
				t.Errorf("%s: error %v, want that the update of m2 in round 2 is not finite", name, err)
			}
		}
		h.Finished[1].Updates[2][1] = 0
		h.Finished[2].Global = []float32{0, float32(bad), 0}
		if _, err := reconstruct.OneRound(t.Context(), h, closeness); !errors.Is(err, reconstruct.ErrNotFinite) {
			t.Errorf("error %v for a global model with %v", err, bad)
		}
	}
}

func TestTooManyMembers(t *testing.T) {
	h := recording(1, pulls(3))
	h.Names = make([]string, valuation.MaxMembers+1)
	if _, err := (reconstruct.Replay{}).Game(t.Context(), h, closeness); !errors.Is(err, valuation.ErrMembers) {
		t.Errorf("error %v, want ErrMembers", err)
	}
	if _, err := (reconstruct.GTG{}).Value(t.Context(), h, closeness); !errors.Is(err, valuation.ErrMembers) {
		t.Errorf("error %v, want ErrMembers", err)
	}
}

func ExampleGTG() {
	h := recording(6, pulls(4))
	o, err := reconstruct.GTG{Settings: valuation.Settings{Seed: 1}}.Value(context.Background(), h, closeness)
	fmt.Println(o.Ranks(), len(o.Rounds), err)
	// Output: [2 3 4 1] 6 <nil>
}

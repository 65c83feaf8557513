package reconstruct_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"grange/valuation"
	"grange/valuation/reconstruct"
)

// carries are the ways to replay: all, the default, none and between.
var carries = []float64{1, 0, -1, 0.6}

// With one round, the final models are those of the round.
func TestReplayOfOneRound(t *testing.T) {
	h := recording(1, pulls(4))
	for _, carry := range carries {
		g, err := reconstruct.Replay{Carry: carry}.Game(t.Context(), h, closeness)
		if err != nil {
			t.Fatal(err)
		}
		for c := range valuation.Everyone(4) + 1 {
			got, err := g.Utility.Value(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			want, err := h.Finished[0].Utility(closeness).Value(t.Context(), c)
			if err != nil || math.Abs(got-want) > 1e-6 {
				t.Errorf("carry %v: %v is worth %v, as one round %v (%v)", carry, c, got, want, err)
			}
		}
	}
}

// The final model of everybody is that of the training, also where a member
// stayed away for a round; who never took part stays at the start.
func TestReplayEndsWhereTrainingDid(t *testing.T) {
	h := recording(5, pulls(4))
	h.Finished = h.Finished[:3]
	h.Finished[2].Weights = []float64{100, 0, 300, 400}
	h.Finished[2].Updates[1] = nil
	for r := range h.Finished {
		h.Finished[r].Weights[3] = 0
		if r > 0 {
			h.Finished[r].Global = h.Finished[r-1].Model(valuation.Everyone(4))
		}
	}
	final := h.Finished[2].Model(valuation.Everyone(4))
	for _, carry := range carries {
		g, err := reconstruct.Replay{Carry: carry}.Game(t.Context(), h, closeness)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			who   valuation.Coalition
			model []float32
		}{
			{valuation.Everyone(4), final},
			{valuation.CoalitionOf(0, 1, 2), final},
			{0, h.Finished[0].Global},
			{valuation.CoalitionOf(3), h.Finished[0].Global},
		} {
			got, err := g.Utility.Value(t.Context(), test.who)
			if err != nil {
				t.Fatal(err)
			}
			if want, _ := closeness(t.Context(), test.model); math.Abs(got-want) > 1e-6 {
				t.Errorf("carry %v: the final model of %v is worth %v, want %v", carry, test.who, got, want)
			}
		}
	}
	if _, err := (reconstruct.Replay{Carry: 1.5}).Game(t.Context(), h, closeness); !errors.Is(err, valuation.ErrSettings) {
		t.Errorf("error %v for a carry of 1.5, want ErrSettings", err)
	}
}

// Where members pull the model a fixed part of the way to points of their own,
// what they start from fades by the rest: replaying with it is retraining.
func TestReplayIsRetrainingOfLinearTraining(t *testing.T) {
	const rounds, pulled = 6, 0.3 // as recording does
	list := pulls(4)
	h := recording(rounds, list)
	g, err := reconstruct.Replay{Carry: 1 - pulled}.Game(t.Context(), h, closeness)
	if err != nil {
		t.Fatal(err)
	}
	for c := range valuation.Everyone(4) + 1 {
		var chosen [][]float32
		var weights []float64
		for n := range c.Members() {
			chosen, weights = append(chosen, list[n]), append(weights, h.Finished[0].Weights[n])
		}
		model := make([]float64, 3)
		for range rounds {
			total, mean := 0.0, make([]float64, 3)
			for n, pull := range chosen {
				total += weights[n]
				for i := range mean {
					mean[i] += weights[n] * (model[i] + pulled*(float64(pull[i])-model[i]))
				}
			}
			for i := range model {
				if total > 0 {
					model[i] = mean[i] / total
				}
			}
		}
		retrained := make([]float32, 3)
		for i, x := range model {
			retrained[i] = float32(x)
		}
		want, _ := closeness(t.Context(), retrained)
		if got, err := g.Utility.Value(t.Context(), c); err != nil || math.Abs(got-want) > 1e-5 {
			t.Errorf("%v is worth %v, retrained %v (%v)", c, got, want, err)
		}
	}
}

func ExampleReplay() {
	h := recording(6, pulls(4))
	g, err := reconstruct.Replay{}.Game(context.Background(), h, closeness)
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := valuation.Tabulation{}.Table(context.Background(), g)
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := valuation.Shapley(table)
	fmt.Printf("%.2f %v\n", values, err)
	// Output: [0.18 0.17 0.14 0.21] <nil>
}

// Package recordtest checks that a network.Record keeps what it promises. Every Record has a test that calls Test, so that
// a federation can be tested with one and run with another.
package recordtest

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
)

// Info is the run that Test writes.
var Info = network.RunInfo{
	Name: "clinics", Scenario: []byte("members: []\n"), Identity: map[string]string{"seed": "1"},
	Members: []string{"north", "south", "east"}, Rounds: 5, Started: time.Unix(1_700_000_000, 123).UTC(),
}

// Delivery is an update like no other.
func Delivery(round, member int) network.Delivery {
	return network.Delivery{Round: round, Member: member, Update: objects.Digest{byte(round), byte(member)}, Examples: 90, Loss: 0.1 * float64(member+1)}
}

// Finished is a finished round.
func Finished(round int) network.Finished {
	return network.Finished{
		Round: federated.Round{Round: round, Accuracy: 1.0 / 3, Loss: math.Pi, Training: math.Inf(1),
			Absent: []federated.Absence{{Member: 2, Name: "east", Reason: "late"}}},
		Model: objects.Digest{9, byte(round)}, Warnings: []string{"round went on without east"},
	}
}

// Test has records of empty runs made, each of which is opened again whenever the run is taken up again.
func Test(t *testing.T, fresh func(*testing.T) (open func() network.Record)) {
	for name, test := range map[string]func(*testing.T, *tester){
		"declarations": declarations, "deliveries": deliveries, "rounds": rounds, "rewind": rewind, "everything lost": everythingLost, "end": end,
		"ended well": endedWell, "another run": another,
	} {
		t.Run(name, func(t *testing.T) {
			r := &tester{t: t, open: fresh(t)}
			r.holds(network.Saved{})
			test(t, r)
		})
	}
}

// tester writes into a record.
type tester struct {
	t    *testing.T
	open func() network.Record
	network.Record
}

// holds takes the run up again and compares what is there.
func (r *tester) holds(want network.Saved) {
	r.t.Helper()
	r.Record = r.open()
	got, err := r.Resume(r.t.Context(), Info)
	if err != nil {
		r.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
		r.t.Error(diff)
	}
}

func (r *tester) do(errs ...error) {
	r.t.Helper()
	for _, err := range errs {
		if err != nil {
			r.t.Fatal(err)
		}
	}
}

// refuses expects that something is not written.
func (r *tester) refuses(what string, err error) {
	r.t.Helper()
	if !errors.Is(err, network.ErrRecord) {
		r.t.Errorf("%s: got %v, want %v", what, err, network.ErrRecord)
	}
}

// deliver delivers an update of each of some members.
func (r *tester) deliver(round int, members ...int) {
	r.t.Helper()
	for _, member := range members {
		r.do(r.Deliver(r.t.Context(), Delivery(round, member)))
	}
}

// finish finishes a round with everybody's updates.
func (r *tester) finish(round int) {
	r.t.Helper()
	r.deliver(round, 0, 1, 2)
	r.do(r.Finish(r.t.Context(), Finished(round)))
}

func declarations(t *testing.T, r *tester) {
	first := network.Declaration{Member: 1, Contribution: 100, Data: 200, Transport: "grange", Software: "x", Kernel: "portable"}
	other := network.Declaration{Member: 0, Contribution: 5, Data: 5, Transport: "flower"}
	changed := first
	changed.Contribution = 120
	r.do(r.Declare(t.Context(), first), r.Declare(t.Context(), other), r.Declare(t.Context(), changed))
	r.holds(network.Saved{Declarations: []network.Declaration{other, changed}})
	r.finish(1)
	r.do(r.Rewind(t.Context(), 0))
	r.holds(network.Saved{Declarations: []network.Declaration{other, changed}})
}

func deliveries(t *testing.T, r *tester) {
	undefined := Delivery(1, 2)
	undefined.Loss = math.NaN()
	r.deliver(1, 1, 0)
	r.do(r.Deliver(t.Context(), undefined))
	again := Delivery(1, 1)
	again.Update[5] = 7 // its file was lost, and it trained again
	r.do(r.Deliver(t.Context(), again))
	r.holds(network.Saved{Deliveries: []network.Delivery{Delivery(1, 0), again, undefined}})
	r.refuses("an update of a round to come", r.Deliver(t.Context(), Delivery(2, 0)))
	r.do(r.Finish(t.Context(), Finished(1)))
	r.refuses("an update of a finished round", r.Deliver(t.Context(), Delivery(1, 0)))
	r.holds(network.Saved{Finished: []network.Finished{Finished(1)}})
	r.deliver(2, 2)
	r.holds(network.Saved{Finished: []network.Finished{Finished(1)}, Deliveries: []network.Delivery{Delivery(2, 2)}})
}

func rounds(t *testing.T, r *tester) {
	r.refuses("the second round first", r.Finish(t.Context(), Finished(2)))
	r.finish(1)
	r.refuses("a round a second time", r.Finish(t.Context(), Finished(1)))
	r.refuses("a round too far", r.Finish(t.Context(), Finished(3)))
	r.finish(2)
	r.holds(network.Saved{Finished: []network.Finished{Finished(1), Finished(2)}})
}

// rewind loses the last two of three rounds, and what was delivered of the fourth.
func rewind(t *testing.T, r *tester) {
	for round := 1; round <= 3; round++ {
		r.finish(round)
	}
	r.deliver(4, 0, 1)
	r.do(r.Rewind(t.Context(), 1))
	r.holds(network.Saved{Finished: []network.Finished{Finished(1)}})
	r.refuses("the round that was under way", r.Deliver(t.Context(), Delivery(4, 2)))
	r.deliver(2, 1)
	r.holds(network.Saved{Finished: []network.Finished{Finished(1)}, Deliveries: []network.Delivery{Delivery(2, 1)}})
	again := Finished(2)
	again.Model[1], again.Absent = 77, nil
	r.do(r.Finish(t.Context(), again))
	r.holds(network.Saved{Finished: []network.Finished{Finished(1), again}})
	r.do(r.Rewind(t.Context(), 2)) // nothing comes after it
	r.holds(network.Saved{Finished: []network.Finished{Finished(1), again}})
	r.finish(3)
}

func everythingLost(t *testing.T, r *tester) {
	r.finish(1)
	r.do(r.Rewind(t.Context(), 0))
	r.holds(network.Saved{})
	r.finish(1)
	r.holds(network.Saved{Finished: []network.Finished{Finished(1)}})
}

// end ends the run, badly and well; it can be taken up again each time.
func end(t *testing.T, r *tester) {
	r.finish(1)
	r.do(r.Note(t.Context(), network.Note{Time: Info.Started, Kind: network.Late, Round: 1, Member: 2, Text: "late"}))
	for _, failure := range []error{errors.New("no power"), nil} {
		r.do(r.End(t.Context(), failure))
		r.holds(network.Saved{Finished: []network.Finished{Finished(1)}})
	}
	r.finish(2)
}

// endedWell ends a run that has all its rounds: that is remembered, until one of them is lost.
func endedWell(t *testing.T, r *tester) {
	var all []network.Finished
	for round := 1; round <= Info.Rounds; round++ {
		r.finish(round)
		all = append(all, Finished(round))
	}
	r.do(r.End(t.Context(), errors.New("no power")))
	r.holds(network.Saved{Finished: all})
	r.do(r.End(t.Context(), nil))
	for range 2 {
		r.holds(network.Saved{Finished: all, Ended: true})
	}
	r.do(r.Rewind(t.Context(), Info.Rounds-1))
	r.holds(network.Saved{Finished: all[:Info.Rounds-1]})
	r.finish(Info.Rounds)
	r.holds(network.Saved{Finished: all})
}

// another run takes the place of one that nobody has taken part in, and of no other.
func another(t *testing.T, r *tester) {
	other := Info
	other.Identity = map[string]string{"seed": "2"}
	r.Record = r.open()
	if saved, err := r.Resume(t.Context(), other); err != nil || len(saved.Declarations) > 0 {
		t.Errorf("in place of a run without members: %+v, %v", saved, err)
	}
	r.holds(network.Saved{}) // and back
	declaration := network.Declaration{Member: 1, Contribution: 1, Data: 2}
	r.do(r.Declare(t.Context(), declaration))
	if _, err := r.Resume(t.Context(), other); err == nil {
		t.Error("it takes the place of a run with a member")
	}
	r.holds(network.Saved{Declarations: []network.Declaration{declaration}})
}

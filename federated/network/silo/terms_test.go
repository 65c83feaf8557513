package silo

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network/wire"
	"grange/model"
)

// someTerms are terms that use every field.
func someTerms(t testing.TB) Terms {
	t.Helper()
	spec, err := model.New("softmax", model.Shape{Channels: 1, Height: 2, Width: 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	return Terms{
		Run: "run", Scenario: "clinics", Member: 1, Name: "north", Rounds: 7, Seed: 1 << 63, Spec: spec,
		Local: federated.Local{Epochs: 1, Batch: 2, Rate: 0.3, Momentum: 0.4, Decay: 0.5, Proximal: 0.6},
		Data: Description{
			Name: "fashion", Fingerprint: "print", Shape: dataset.Shape{Channels: 1, Height: 2, Width: 3},
			Classes: []string{"cat", "dog"}, Moments: dataset.Moments{Mean: []float64{0.1}, Deviation: []float64{0.2}},
		},
		Deal: Deal{
			Data: []int{5, 6, 7}, Split: dataset.Split{Method: dataset.Dirichlet, Concentration: 0.7},
			Noise: dataset.Noise{Transition: [][]float64{{0.9, 0.1}, {0.2, 0.8}}},
		},
	}
}

func TestTermsSurviveTheWire(t *testing.T) {
	want := someTerms(t)
	message, err := want.message()
	if err != nil {
		t.Fatal(err)
	}
	got, err := readTerms(message)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("terms changed on the way:\n%s", diff)
	}
}

func TestTermsThatAreNone(t *testing.T) {
	for name, change := range map[string]func(*wire.Terms){
		"empty":            func(m *wire.Terms) { proto.Reset(m) },
		"no run":           func(m *wire.Terms) { m.Run = "" },
		"long name":        func(m *wire.Terms) { m.Name = string(make([]byte, 1000)) },
		"member":           func(m *wire.Terms) { m.Member = 3 },
		"member overflow":  func(m *wire.Terms) { m.Member = 1<<32 - 1 },
		"rounds":           func(m *wire.Terms) { m.Rounds = 0 },
		"epochs":           func(m *wire.Terms) { m.Local.Epochs = 1 << 31 },
		"rate":             func(m *wire.Terms) { m.Local.Rate = -1 },
		"one class":        func(m *wire.Terms) { m.Data.Classes = m.Data.Classes[:1] },
		"huge images":      func(m *wire.Terms) { m.Data.Height = 1 << 30 },
		"no images":        func(m *wire.Terms) { m.Data.Width = 0 },
		"no moments":       func(m *wire.Terms) { m.Data.Mean = nil },
		"zero deviation":   func(m *wire.Terms) { m.Data.Deviation[0] = 0 },
		"matrix":           func(m *wire.Terms) { m.Deal.Transition = m.Deal.Transition[:3] },
		"noise":            func(m *wire.Terms) { m.Deal.Transition, m.Deal.Noise = nil, 2 },
		"split":            func(m *wire.Terms) { m.Deal.Split = "fair" },
		"unknown model":    func(m *wire.Terms) { m.Model.Name = "oracle" },
		"another header":   func(m *wire.Terms) { m.Model.Header[0]++ },
		"another size":     func(m *wire.Terms) { m.Model.Size++ },
		"nothing in them":  func(m *wire.Terms) { m.Local, m.Data, m.Deal, m.Model = nil, nil, nil, nil },
		"too many members": func(m *wire.Terms) { m.Deal.Data = make([]uint32, maxMembers+1) },
	} {
		message, err := someTerms(t).message()
		if err != nil {
			t.Fatal(err)
		}
		change(message)
		if _, err := readTerms(message); !errors.Is(err, ErrTerms) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a coordinator sends, a silo makes terms of it that it would send itself, or refuses.
func FuzzTerms(f *testing.F) {
	message, err := someTerms(f).message()
	if err != nil {
		f.Fatal(err)
	}
	text, err := proto.Marshal(message)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var m wire.Terms
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		// A large architecture takes a while to lay out, and that is not what is tested.
		if uint64(m.GetData().GetHeight())*uint64(m.GetData().GetWidth()) > 1<<12 {
			return
		}
		terms, err := readTerms(&m)
		if err != nil {
			if !errors.Is(err, ErrTerms) {
				t.Fatalf("unexpected error %v", err)
			}
			return
		}
		again, err := terms.message()
		if err != nil {
			t.Fatal(err)
		}
		back, err := readTerms(again)
		if err != nil || back.Run != terms.Run || !slices.Equal(back.Deal.Data, terms.Deal.Data) {
			t.Fatalf("%v became %v, %v", terms, back, err)
		}
	})
}

func TestWatchEndsWhatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		hang := make(chan struct{})
		err := watch(t.Context(), time.Minute, func(alive func()) error {
			for range 3 {
				time.Sleep(50 * time.Second)
				alive()
			}
			<-hang
			return nil
		})
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != 210*time.Second {
			t.Errorf("it took %v, want a minute after the last sign of life", took)
		}
		close(hang)
	})
}

func TestSlotBelongsToTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slot
		first, leaveFirst, err := s.enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// The second waits for the first to leave, and is driven out by the third before it has.
		second := make(chan error, 1)
		go func() {
			_, _, err := s.enter(t.Context())
			second <- err
		}()
		synctest.Wait()
		if !errors.Is(context.Cause(first), errTaken) {
			t.Errorf("the first ended with %v", context.Cause(first))
		}
		entered := make(chan func(), 1)
		go func() {
			_, leave, err := s.enter(t.Context())
			if err != nil {
				t.Error(err)
			}
			entered <- leave
		}()
		synctest.Wait()
		if err := <-second; !errors.Is(err, errTaken) {
			t.Errorf("the second: %v", err)
		}
		select {
		case <-entered:
			t.Error("the third entered before the first had left")
		default:
		}
		leaveFirst()
		(<-entered)()
	})
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	long := ""
	for range 200 {
		long += "ä"
	}
	if got := cut(long + "x"); len(got) != maxText || got != long[:maxText] {
		t.Errorf("cut to %d bytes", len(got))
	}
	if got := cut("x" + long); len(got) != maxText-1 {
		t.Errorf("cut to %d bytes, want %d", len(got), maxText-1)
	}
}

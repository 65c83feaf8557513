package updates_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/federated"
	"grange/lab/updates"
	"grange/model"
	"grange/valuation/reconstruct"
)

var manifest = updates.Manifest{
	Scenario: "two clinics", Members: []string{"ash", "birch"}, Contributions: []int{30, 10}, Dataset: "fashion",
	Fingerprint: "f", Model: "softmax", Rounds: 1, GlobalRate: 0.5, Seed: 1, Identity: map[string]string{"seed": "1"},
}

func spec(t testing.TB) model.Spec {
	s, err := model.New("softmax", model.Shape{Channels: 1, Height: 3, Width: 3}, 2)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// saved is a folder with one round, in which only some members took part.
func saved(t testing.TB, present ...int) (folder string, round *federated.Aggregate) {
	folder = filepath.Join(t.TempDir(), "updates")
	w, err := updates.Create(folder, manifest)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	round = &federated.Aggregate{Round: 1, Before: model.Init(spec(t), random)}
	for _, n := range present {
		round.Updates = append(round.Updates, federated.Update{Round: 1, Member: n, Weights: model.Init(spec(t), random)})
	}
	if err := w.Save(round); err != nil {
		t.Fatal(err)
	}
	return folder, round
}

func TestRoundTrip(t *testing.T) {
	folder, round := saved(t, 0, 1)
	f, err := updates.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	f.Use(spec(t))
	got, err := f.Round(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := &reconstruct.Round{
		Global: round.Before.Flat, Updates: [][]float32{round.Updates[0].Weights.Flat, round.Updates[1].Weights.Flat},
		Weights: []float64{30, 10}, Rate: 0.5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAbsentMemberHasNoWeight(t *testing.T) {
	folder, _ := saved(t, 1)
	f, err := updates.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	f.Use(spec(t))
	got, err := f.Round(t.Context(), 1)
	if err != nil || got.Weights[0] != 0 || got.Updates[0] != nil || got.Weights[1] != 10 {
		t.Errorf("%+v, %v; want birch alone", got, err)
	}
	if _, err := f.Round(t.Context(), 2); !errors.Is(err, reconstruct.ErrMissing) {
		t.Errorf("error %v for a round that was not saved, want ErrMissing", err)
	}
}

func TestCreateRefuses(t *testing.T) {
	folder, _ := saved(t, 0)
	if _, err := updates.Create(folder, manifest); err != nil {
		t.Errorf("the same training: %v", err)
	}
	other := manifest
	other.Identity = map[string]string{"seed": "2"}
	if _, err := updates.Create(folder, other); !errors.Is(err, updates.ErrOther) {
		t.Errorf("another training: error %v, want ErrOther", err)
	}
	if _, err := updates.Open(t.TempDir()); !errors.Is(err, updates.ErrNone) {
		t.Errorf("an empty folder: error %v, want ErrNone", err)
	}
}

// Members may declare what they contribute as they come, and a folder keeps what it knows of that.
func TestDeclared(t *testing.T) {
	describe := func(noise, contribution string, contributions ...int) updates.Manifest {
		m := manifest
		m.Declared, m.Contributions = true, contributions
		m.Identity = map[string]string{"seed": "1", "members": `[{"Name":"ash","Data":9,"Contribution":` + contribution + `,"Noise":` + noise + `}]`}
		return m
	}
	folder := filepath.Join(t.TempDir(), "updates")
	if err := updates.Check(folder, describe("0", "0", 0, 0)); err != nil {
		t.Fatal(err)
	}
	for _, m := range []updates.Manifest{describe("0", "30", 30, 0), describe("0", "30", 30, 10)} {
		if _, err := updates.Create(folder, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := updates.Check(folder, describe("0", "0", 0, 0)); err != nil {
		t.Fatal(err)
	}
	f, err := updates.Open(folder)
	if err != nil || f.Contributions[0] != 30 || f.Contributions[1] != 10 {
		t.Errorf("%+v, %v; want the last contributions", f, err)
	}
	if err := updates.Check(folder, describe("0.5", "30", 30, 10)); !errors.Is(err, updates.ErrOther) {
		t.Errorf("other members: error %v, want ErrOther", err)
	}
	fixed := describe("0", "30", 30, 20)
	fixed.Declared = false
	if _, err := updates.Create(folder, fixed); !errors.Is(err, updates.ErrOther) {
		t.Errorf("other contributions: error %v, want ErrOther", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":1,"members":["a"],"contributions":[1],"rounds":1,"global_rate":1}`), []byte(`{"round":1,"present":[0]}`))
	f.Add([]byte(`{"version":9}`), []byte(`{"present":[-1]}`))
	f.Fuzz(func(t *testing.T, text, round []byte) {
		folder := t.TempDir()
		for name, data := range map[string][]byte{"updates.json": text, "round-000001.json": round} {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		opened, err := updates.Open(folder)
		if err != nil {
			return
		}
		opened.Use(spec(t))
		if _, err := opened.Round(t.Context(), 1); err == nil {
			t.Error("a round without a global model was read")
		}
	})
}

func ExampleOpen() {
	_, err := updates.Open("no such folder")
	fmt.Println(err)
	// Output: updates: no saved updates in no such folder
}

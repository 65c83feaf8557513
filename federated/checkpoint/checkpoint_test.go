package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/federated"
	"grange/model"
)

func spec(t testing.TB, name string) model.Spec {
	t.Helper()
	s, err := model.New(name, model.Shape{Channels: 1, Height: 2, Width: 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// after is a state after so many rounds.
func after(t testing.TB, rounds int) federated.State {
	t.Helper()
	state := federated.State{Weights: model.NewWeights(spec(t, "softmax")), Kernel: "toy", Warnings: []string{"careful"}}
	for i := range state.Weights.Flat {
		state.Weights.Flat[i] = float32(i) + float32(rounds)/7
	}
	for i := range rounds {
		state.Rounds = append(state.Rounds, federated.Round{Round: i + 1, Accuracy: 1 / float64(i+3), Loss: 0.1 * float64(i)})
	}
	return state
}

func store(t testing.TB, folder string) *Store {
	t.Helper()
	s, err := Open(folder, Identity{"model": "softmax", "seed": "1"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func save(t testing.TB, s *Store, rounds ...int) {
	t.Helper()
	for _, n := range rounds {
		if err := s.Save(after(t, n)); err != nil {
			t.Fatal(err)
		}
	}
}

// files lists a folder.
func files(t testing.TB, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestSaveAndLoad(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made", "here")
	s := store(t, folder)
	if state, err := s.Load(spec(t, "softmax")); state != nil || err != nil {
		t.Fatalf("an empty folder gives %v, %v", state, err)
	}
	save(t, s, 1, 2, 3)
	if diff := cmp.Diff(files(t, folder), []string{"round-000002.checkpoint", "round-000003.checkpoint"}); diff != "" {
		t.Error(diff)
	}
	state, err := store(t, folder).Load(spec(t, "softmax"))
	if err != nil {
		t.Fatal(err)
	}
	want := after(t, 3)
	if diff := cmp.Diff(state.Weights.Flat, want.Weights.Flat); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(state.Rounds, want.Rounds); diff != "" {
		t.Error(diff)
	}
	if state.Kernel != "toy" || len(state.Warnings) != 1 {
		t.Errorf("kernel %q, warnings %q", state.Kernel, state.Warnings)
	}
}

func TestSameStateSameBytes(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	save(t, store(t, a), 4)
	save(t, store(t, b), 4)
	first, _ := os.ReadFile(filepath.Join(a, fileName(4)))
	second, _ := os.ReadFile(filepath.Join(b, fileName(4)))
	if len(first) == 0 || !bytes.Equal(first, second) {
		t.Error("the same state was written differently")
	}
}

func TestOtherRun(t *testing.T) {
	folder := t.TempDir()
	save(t, store(t, folder), 1)
	for _, test := range []struct {
		identity Identity
		model    string
		word     string
	}{
		{Identity{"model": "softmax", "seed": "2"}, "softmax", "its seed is 1, here it is 2"},
		{Identity{"model": "mlp", "seed": "1"}, "mlp", "its model is softmax, here it is mlp"},
		{Identity{"model": "softmax"}, "softmax", "its seed is 1, here it is not set"},
		{Identity{"model": "softmax", "seed": "1", "rate": strings.Repeat("9", 100)}, "softmax", "its rate is not set"},
	} {
		s, err := Open(folder, test.identity)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Load(spec(t, test.model)); !errors.Is(err, ErrOther) || !strings.Contains(err.Error(), test.word) {
			t.Errorf("error %v, expected %q", err, test.word)
		}
	}
	if _, err := store(t, folder).Load(spec(t, "softmax")); err != nil {
		t.Errorf("the checkpoint was harmed: %v", err)
	}
}

// Every byte counts: whichever is changed or missing, the checkpoint is refused and left as it is.
func TestDamage(t *testing.T) {
	folder := t.TempDir()
	s := store(t, folder)
	save(t, s, 1, 2)
	path := filepath.Join(folder, fileName(2))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	try := func(name string, contents []byte, sentinels ...error) {
		t.Helper()
		if err := os.WriteFile(path, contents, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := s.Load(spec(t, "softmax"))
		for _, sentinel := range sentinels {
			if errors.Is(err, sentinel) {
				err = nil
			}
		}
		if err != nil {
			t.Errorf("%s: error %v", name, err)
		}
		if there, _ := os.ReadFile(path); !bytes.Equal(there, contents) {
			t.Errorf("%s: the file was changed", name)
		}
	}
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x10
		try(fmt.Sprint("byte ", i), changed, ErrDamaged, ErrVersion)
		try(fmt.Sprint("cut at ", i), whole[:i], ErrDamaged)
	}
	try("longer", append(bytes.Clone(whole), 0), ErrDamaged)
	if _, err := s.Load(spec(t, "softmax")); err == nil || !strings.Contains(err.Error(), "remove that file to go on from round-000001.checkpoint") {
		t.Errorf("error %v does not say what to do", err)
	}
	newer := bytes.Clone(whole)
	newer[len(magic)] = version + 1
	try("newer", newer, ErrVersion)
	if err := os.WriteFile(path, whole, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(folder, fileName(9))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(spec(t, "softmax")); !errors.Is(err, ErrDamaged) {
		t.Errorf("another round's name: error %v", err)
	}
}

// full is a disk that takes so many bytes.
type full struct {
	w    io.Writer
	left int
}

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		n, _ := f.w.Write(p[:f.left])
		f.left = 0
		return n, errFull
	}
	f.left -= len(p)
	return f.w.Write(p)
}

func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	s := store(t, folder)
	save(t, s, 1, 2)
	for _, room := range []int{0, 10, 300} {
		s.wrap = func(w io.Writer) io.Writer { return &full{w, room} }
		if err := s.Save(after(t, 3)); !errors.Is(err, ErrWrite) || !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: error %v", room, err)
		}
	}
	if diff := cmp.Diff(files(t, folder), []string{"round-000001.checkpoint", "round-000002.checkpoint"}); diff != "" {
		t.Error(diff)
	}
	state, err := s.Load(spec(t, "softmax"))
	if err != nil || len(state.Rounds) != 2 {
		t.Errorf("the earlier checkpoint is gone: %v", err)
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	folder := t.TempDir()
	save(t, store(t, folder), 1)
	if err := os.WriteFile(filepath.Join(folder, unfinished+"123"), []byte("half"), 0o666); err != nil {
		t.Fatal(err)
	}
	store(t, folder)
	if diff := cmp.Diff(files(t, folder), []string{"round-000001.checkpoint"}); diff != "" {
		t.Error(diff)
	}
}

func TestFolderThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, nil); !errors.Is(err, ErrWrite) {
		t.Errorf("error %v", err)
	}
}

func TestManyRounds(t *testing.T) {
	folder := t.TempDir()
	s := store(t, folder)
	for _, name := range []string{"round-999999.checkpoint", "round-1000000.checkpoint", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	names, err := s.names()
	if diff := cmp.Diff(names, []string{"round-999999.checkpoint", "round-1000000.checkpoint"}); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func FuzzDecode(f *testing.F) {
	s := store(f, f.TempDir())
	var whole bytes.Buffer
	if err := s.encode(&whole, after(f, 2)); err != nil {
		f.Fatal(err)
	}
	f.Add(whole.Bytes())
	softmax := spec(f, "softmax")
	f.Fuzz(func(t *testing.T, contents []byte) {
		state, err := s.decode(bytes.NewReader(contents), softmax)
		if err == nil && len(state.Weights.Flat) != softmax.Size() {
			t.Errorf("%d weights", len(state.Weights.Flat))
		}
	})
}

func Example() {
	folder, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	spec, _ := model.New("softmax", model.Shape{Channels: 1, Height: 2, Width: 2}, 3)
	checkpoints, _ := Open(folder, Identity{"model": "softmax", "seed": "1"})
	state := federated.State{Weights: model.NewWeights(spec), Rounds: []federated.Round{{Round: 1, Accuracy: 0.5}}}
	if err := checkpoints.Save(state); err != nil {
		fmt.Println(err)
		return
	}
	there, _ := checkpoints.Load(spec)
	fmt.Println("goes on after round", len(there.Rounds))
	// Output: goes on after round 1
}

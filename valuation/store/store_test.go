package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"grange/valuation"
	"grange/valuation/store"
)

var identity = store.Identity{Members: 5, Game: "squares, seed 1"}

func squares(_ context.Context, c valuation.Coalition) (float64, error) {
	return math.Sqrt(float64(c.Size())) / 3, nil
}

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	s, err := store.Open(path, identity)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestWorthsSurvive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worths")
	first := open(t, path)
	g := &valuation.Game{Members: 5, Utility: first.Wrap(valuation.UtilityFunc(squares))}
	want, err := valuation.Tabulation{Workers: 3}.Table(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	counter := valuation.Counted(valuation.UtilityFunc(squares))
	second := open(t, path)
	if second.Len() != 32 || second.Damaged() != 0 {
		t.Errorf("%d worths and %d damaged lines, want 32 and none", second.Len(), second.Damaged())
	}
	got, err := valuation.Tabulation{}.Table(t.Context(), &valuation.Game{Members: 5, Utility: second.Wrap(counter)})
	if err != nil {
		t.Fatal(err)
	}
	for c := range want {
		if got[c] != want[c] {
			t.Errorf("coalition %v is worth %v after reading, %v before", valuation.Coalition(c), got[c], want[c])
		}
	}
	if counter.Calls() != 0 {
		t.Errorf("%d worths were computed again", counter.Calls())
	}
}

// Whatever byte the file ends at, what is whole is kept, and writing goes on.
func TestCutShortAnywhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worths")
	s := open(t, path)
	for c := range valuation.Coalition(6) {
		if err := s.Put(c, 0.1*float64(c)); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	header := strings.IndexByte(string(whole), '\n') + 1
	for cut := header; cut <= len(whole); cut++ {
		short := filepath.Join(t.TempDir(), "short")
		if err := os.WriteFile(short, whole[:cut], 0o666); err != nil {
			t.Fatal(err)
		}
		s := open(t, short)
		lines := strings.Count(string(whole[header:cut]), "\n")
		if n := s.Len(); n != lines && !(cut < len(whole) && whole[cut] == '\n' && n == lines+1) {
			t.Fatalf("cut at %d of %d: %d worths, want %d", cut, len(whole), n, lines)
		}
		if err := s.Put(9, 2.5); err != nil {
			t.Fatal(err)
		}
		if v, known := open(t, short).Lookup(9); !known || v != 2.5 {
			t.Fatalf("cut at %d: what was written after it is lost", cut)
		}
	}
}

func TestRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worths")
	open(t, path)
	for _, other := range []store.Identity{{Members: 6, Game: identity.Game}, {Members: 5, Game: "squares, seed 2"}} {
		if _, err := store.Open(path, other); !errors.Is(err, store.ErrOther) {
			t.Errorf("%v: error %v, want ErrOther", other, err)
		}
	}
	if err := os.WriteFile(path, []byte("name: five hospitals\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(path, identity); !errors.Is(err, store.ErrFormat) {
		t.Errorf("error %v, want ErrFormat", err)
	}
	if err := open(t, filepath.Join(t.TempDir(), "new")).Put(1, math.NaN()); !errors.Is(err, valuation.ErrNotFinite) {
		t.Errorf("error %v for NaN, want ErrNotFinite", err)
	}
}

// A process that kills itself in the middle leaves everything it had computed.
func TestKilled(t *testing.T) {
	if path := os.Getenv("STORE_TEST_KILLED"); path != "" {
		s, err := store.Open(path, identity)
		if err != nil {
			t.Fatal(err)
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		u := s.Wrap(valuation.UtilityFunc(func(ctx context.Context, c valuation.Coalition) (float64, error) {
			if c == 20 {
				if err := self.Kill(); err != nil {
					return 0, err
				}
				select {}
			}
			return squares(ctx, c)
		}))
		_, err = valuation.Tabulation{}.Table(context.Background(), &valuation.Game{Members: 5, Utility: u})
		t.Fatal("still alive", err)
	}
	path := filepath.Join(t.TempDir(), "worths")
	child := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	child.Env = append(os.Environ(), "STORE_TEST_KILLED="+path)
	if out, err := child.CombinedOutput(); err == nil {
		t.Fatalf("the child lives: %s", out)
	}
	s := open(t, path)
	counter := valuation.Counted(valuation.UtilityFunc(squares))
	table, err := valuation.Tabulation{}.Table(t.Context(), &valuation.Game{Members: 5, Utility: s.Wrap(counter)})
	if err != nil {
		t.Fatal(err)
	}
	if counter.Calls() != 12 {
		t.Errorf("%d worths computed after the kill, want the 12 that were missing", counter.Calls())
	}
	for c, v := range table {
		if want, _ := squares(t.Context(), valuation.Coalition(c)); v != want {
			t.Errorf("coalition %d is worth %v, want %v", c, v, want)
		}
	}
}

// Whoever begins a file, nobody's worths may be lost: here processes, each with
// several goroutines, begin the same files at once.
func TestManyBeginAtOnce(t *testing.T) {
	const files, processes, goroutines = 40, 4, 2
	write := func(folder string, process int) error {
		for k := range files {
			path := filepath.Join(folder, fmt.Sprint(k))
			errs := make(chan error, goroutines)
			for j := range goroutines {
				go func() {
					s, err := store.Open(path, identity)
					if err == nil {
						err = errors.Join(s.Put(valuation.Coalition(process*goroutines+j+1), float64(process)), s.Close())
					}
					errs <- err
				}()
			}
			for range goroutines {
				if err := <-errs; err != nil {
					return err
				}
			}
		}
		return nil
	}
	if folder := os.Getenv("STORE_TEST_BEGIN"); folder != "" {
		var process int
		fmt.Sscan(os.Getenv("STORE_TEST_PROCESS"), &process)
		for { // until everybody is there
			if _, err := os.Stat(filepath.Join(folder, "go")); err == nil {
				break
			}
		}
		if err := write(folder, process); err != nil {
			t.Fatal(err)
		}
		return
	}
	folder := t.TempDir()
	children := make([]*exec.Cmd, processes)
	for p := range children {
		children[p] = exec.Command(os.Args[0], "-test.run=^TestManyBeginAtOnce$")
		children[p].Env = append(os.Environ(), "STORE_TEST_BEGIN="+folder, fmt.Sprint("STORE_TEST_PROCESS=", p))
		if err := children[p].Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "go"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}
	for k := range files {
		if s := open(t, filepath.Join(folder, fmt.Sprint(k))); s.Len() != processes*goroutines || s.Damaged() != 0 {
			t.Errorf("file %d has %d worths of %d, and %d damaged lines", k, s.Len(), processes*goroutines, s.Damaged())
		}
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*.*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: drafts are left behind", left, err)
	}
}

// A line that a full disk cut short while the file is open costs nothing but
// itself.
func TestTornWhileOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worths")
	s := open(t, path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := s.Put(1, 0.5); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("2 0x1p-"); err != nil {
		t.Fatal(err)
	}
	for c := range valuation.Coalition(2) {
		if err := s.Put(3+c, 2.5); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, path)
	if again.Len() != 3 || again.Damaged() != 1 {
		t.Errorf("%d worths and %d damaged lines, want 3 and 1", again.Len(), again.Damaged())
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("grange worths 1 5 squares, seed 1\n3 0x1p-01 8d1dd64d\n"))
	f.Add([]byte("grange worths 1 5 squares, seed 1\n3 0x1p"))
	f.Add([]byte("\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "worths")
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(path, identity)
		if err != nil {
			return
		}
		defer s.Close()
		for c := range valuation.Coalition(32) {
			if v, known := s.Lookup(c); known && v-v != 0 {
				t.Errorf("%v is worth %v", c, v)
			}
		}
		if err := s.Put(31, 1); err != nil {
			t.Fatal(err)
		}
		again, err := store.Open(path, identity)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if v, known := again.Lookup(31); !known || v != 1 {
			t.Error("a worth was lost")
		}
	})
}

func ExampleStore() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "worths")
	for range 2 { // the second time, nothing is computed
		s, err := store.Open(path, store.Identity{Members: 5, Game: "squares, seed 1"})
		if err != nil {
			fmt.Println(err)
			return
		}
		counter := valuation.Counted(valuation.UtilityFunc(squares))
		g := &valuation.Game{Members: 5, Utility: s.Wrap(counter)}
		if _, err := (valuation.Tabulation{}).Table(context.Background(), g); err != nil {
			fmt.Println(err)
		}
		fmt.Println(counter.Calls(), "computed,", s.Len(), "known")
		s.Close()
	}
	// Output:
	// 32 computed, 32 known
	// 0 computed, 32 known
}

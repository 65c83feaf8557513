package lab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grange/curve"
)

// fake is a trainer for the scheduler's tests: a formula instead of a model.
func fake(_ context.Context, c Cell) (Outcome, error) {
	accuracy := 0.9 - 0.8*math.Exp(-float64(c.Total())/800) - 0.6*c.WrongShare() + 0.001*float64(c.Seed%7)
	o := Outcome{Accuracy: accuracy, Backend: "formula"}
	for r := range c.Rounds {
		o.Rounds = append(o.Rounds, Round{Round: r + 1, Accuracy: accuracy * float64(r+1) / float64(c.Rounds), Loss: 1 / float64(r+1)})
	}
	return o, nil
}

func testCell(s int64, seed uint64) Cell {
	return Cell{
		Training:      Training{Dataset: "fashion", Model: "mlp", Rounds: 3, Epochs: 1, Batch: 64, Rate: 0.1, GlobalRate: 1},
		Capacities:    []int64{1000, 1000},
		Contributions: []int64{s, 0},
		Noise:         []float64{0.1, 0.3},
		Seed:          seed,
	}
}

func testCells(n int) []Cell {
	var cells []Cell
	for k := range n {
		cells = append(cells, testCell(int64(100*(k%10)+50), uint64(k)))
	}
	return cells
}

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, "v1.2.3", func() time.Time { return day })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKeyIgnoresWhatCannotMatter(t *testing.T) {
	a, b := testCell(100, 1), testCell(100, 1)
	b.Noise[1] = 0.9 // contributes nothing
	if a.Key() != b.Key() {
		t.Error("the noise rate of an idle member changes the key")
	}
	for name, change := range map[string]func(*Cell){
		"seed":     func(c *Cell) { c.Seed++ },
		"noise":    func(c *Cell) { c.Noise[0] = 0.2 },
		"rounds":   func(c *Cell) { c.Rounds++ },
		"capacity": func(c *Cell) { c.Capacities[1]++ },
		"data":     func(c *Cell) { c.Contributions[0]++ },
		"dataset":  func(c *Cell) { c.Fingerprint = "x" },
	} {
		c := testCell(100, 1)
		change(&c)
		if c.Key() == a.Key() {
			t.Errorf("another %s, the same key", name)
		}
	}
}

func TestRecordRoundTrip(t *testing.T) {
	s := open(t, t.TempDir())
	cell := testCell(100, 1)
	outcome, _ := fake(context.Background(), cell)
	saved, err := s.Save(cell, outcome)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := s.Load(cell.Key())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(saved, loaded); diff != "" {
		t.Error(diff)
	}
	data, _ := os.ReadFile(s.Path(cell.Key()))
	for _, line := range []string{`"contributions": [100, 0]`, `{"round": 1, "accuracy": `} {
		if !strings.Contains(string(data), line) {
			t.Errorf("the file is not easy to read, want %q in\n%s", line, data)
		}
	}
}

func TestRunTrainsOnceAndResumes(t *testing.T) {
	dir := t.TempDir()
	var trained atomic.Int32
	train := func(ctx context.Context, c Cell) (Outcome, error) {
		trained.Add(1)
		return fake(ctx, c)
	}
	cells := testCells(12)
	cells = append(cells, cells[0]) // asked for twice
	first, err := (&Runner{Store: open(t, dir), Train: train, Workers: 4}).Run(t.Context(), "test", cells)
	if err != nil {
		t.Fatal(err)
	}
	second, err := (&Runner{Store: open(t, dir), Train: train}).Run(t.Context(), "test", cells)
	if err != nil {
		t.Fatal(err)
	}
	if trained.Load() != 12 || len(first) != 12 {
		t.Errorf("trained %d cells, have %d, want 12", trained.Load(), len(first))
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestRunStopsCleanly(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	var count atomic.Int32
	train := func(ctx context.Context, c Cell) (Outcome, error) {
		if count.Add(1) > 5 {
			cancel()
			<-ctx.Done()
			return Outcome{}, ctx.Err()
		}
		return fake(ctx, c)
	}
	_, err := (&Runner{Store: open(t, dir), Train: train, Workers: 2}).Run(ctx, "test", testCells(20))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	records, faults := open(t, dir).List()
	if len(records) != 5 || len(faults) != 0 {
		t.Errorf("%d cells kept, faults %v", len(records), faults)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "claims", "*"))
	if len(left) != 0 {
		t.Errorf("claims left: %v", left)
	}
}

func TestRunReportsTheFirstFailure(t *testing.T) {
	boom := errors.New("boom")
	train := func(ctx context.Context, c Cell) (Outcome, error) {
		if c.Seed == 3 {
			return Outcome{}, boom
		}
		return fake(ctx, c)
	}
	_, err := (&Runner{Store: open(t, t.TempDir()), Train: train}).Run(t.Context(), "test", testCells(8))
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
}

func TestRunKeepsToMemory(t *testing.T) {
	var mu sync.Mutex
	inUse, peak := 0, 0
	train := func(ctx context.Context, c Cell) (Outcome, error) {
		mu.Lock()
		inUse++
		peak = max(peak, inUse)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		inUse--
		mu.Unlock()
		return fake(ctx, c)
	}
	r := &Runner{Store: open(t, t.TempDir()), Train: train, Workers: 8, Memory: 250, Footprint: func(Cell) int64 { return 100 }}
	if _, err := r.Run(t.Context(), "test", testCells(20)); err != nil {
		t.Fatal(err)
	}
	if peak > 2 {
		t.Errorf("%d cells of 100 bytes at once under a limit of 250", peak)
	}
}

func TestTwoRunsShareAFolder(t *testing.T) {
	dir := t.TempDir()
	var trained atomic.Int32
	train := func(ctx context.Context, c Cell) (Outcome, error) {
		trained.Add(1)
		time.Sleep(time.Millisecond)
		return fake(ctx, c)
	}
	cells := testCells(30)
	var group sync.WaitGroup
	results := make([]map[string]*Record, 3)
	for k := range results {
		r := &Runner{Store: open(t, dir), Train: train, Workers: 2, Poll: time.Millisecond}
		group.Go(func() {
			records, err := r.Run(t.Context(), "test", cells)
			if err != nil {
				t.Error(err)
			}
			results[k] = records
		})
	}
	group.Wait()
	if trained.Load() != 30 {
		t.Errorf("trained %d cells, want 30", trained.Load())
	}
	for _, r := range results[1:] {
		if diff := cmp.Diff(results[0], r); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDamagedCells(t *testing.T) {
	cells := testCells(4)
	for name, damage := range map[string]func([]byte) []byte{
		"cut off": func(b []byte) []byte { return b[:len(b)/2] },
		"empty":   func([]byte) []byte { return nil },
		"edited": func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"accuracy": 0.`, `"accuracy": 0.9`, 1))
		},
		"swapped":   nil,
		"not a run": func([]byte) []byte { return []byte("{}") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := &Runner{Store: open(t, dir), Train: fake}
			if _, err := r.Run(t.Context(), "test", cells); err != nil {
				t.Fatal(err)
			}
			path := r.Store.Path(cells[1].Key())
			data, _ := os.ReadFile(path)
			if damage == nil {
				data, _ = os.ReadFile(r.Store.Path(cells[2].Key()))
			} else {
				data = damage(data)
			}
			os.WriteFile(path, data, 0o644)

			for range 2 { // named again until retrained
				_, err := r.Run(t.Context(), "test", cells)
				if !errors.Is(err, ErrSetAside) || !strings.Contains(err.Error(), cells[1].Key()) {
					t.Fatalf("error %v", err)
				}
			}
			if _, err := os.Stat(strings.TrimSuffix(path, ".json") + ".damaged"); err != nil {
				t.Error(err)
			}
			r.Retrain = true
			records, err := r.Run(t.Context(), "test", cells)
			if err != nil || len(records) != 4 {
				t.Errorf("%d records, error %v", len(records), err)
			}
			r.Retrain = false
			if _, err := r.Run(t.Context(), "test", cells); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNewerFolder(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	os.WriteFile(filepath.Join(dir, "format.json"), []byte(`{"format": 99, "written_by": "v9"}`), 0o644)
	if _, err := Open(dir, "v1", time.Now); !errors.Is(err, ErrNewer) {
		t.Errorf("error %v", err)
	}
}

func TestNewerCellIsNotTouched(t *testing.T) {
	s := open(t, t.TempDir())
	cell := testCell(100, 1)
	os.WriteFile(s.Path(cell.Key()), []byte(`{"format": 2}`), 0o644)
	_, err := (&Runner{Store: s, Train: fake, Retrain: true}).Run(t.Context(), "test", []Cell{cell})
	if !errors.Is(err, ErrNewer) {
		t.Errorf("error %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	plain, left := s.write, 3
	s.write = func(path string, data []byte) error {
		if left--; left < 0 {
			return fmt.Errorf("write %s: %w", path, syscall.ENOSPC)
		}
		return plain(path, data)
	}
	_, err := (&Runner{Store: s, Train: fake}).Run(t.Context(), "test", testCells(8))
	if !errors.Is(err, ErrDiskFull) {
		t.Errorf("error %v", err)
	}
	if records, faults := open(t, dir).List(); len(records) != 3 || len(faults) != 0 {
		t.Errorf("%d cells kept, faults %v", len(records), faults)
	}
}

type watcher struct{ seen []Progress }

func (w *watcher) Observe(p Progress) { w.seen = append(w.seen, p) }

func TestProgress(t *testing.T) {
	w := &watcher{}
	s := open(t, t.TempDir())
	clock := day
	s.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	if _, err := (&Runner{Store: s, Train: fake, Observer: w}).Run(t.Context(), "grid", testCells(5)); err != nil {
		t.Fatal(err)
	}
	last := w.seen[len(w.seen)-1]
	if len(w.seen) != 6 || last.Done != 5 || last.Total != 5 || last.Remaining != 0 || last.Stage != "grid" {
		t.Errorf("%d reports, the last %+v", len(w.seen), last)
	}
	if w.seen[2].Remaining <= 0 {
		t.Errorf("no estimate after two cells: %+v", w.seen[2])
	}
}

func TestCheckCell(t *testing.T) {
	for name, spoil := range map[string]func(*Cell){
		"nothing given": func(c *Cell) { c.Contributions = []int64{0, 0} },
		"too much":      func(c *Cell) { c.Contributions[0] = 1001 },
		"noise":         func(c *Cell) { c.Noise[0] = 1 },
		"NaN":           func(c *Cell) { c.Rate = math.NaN() },
		"lengths":       func(c *Cell) { c.Noise = c.Noise[:1] },
		"no model":      func(c *Cell) { c.Model = "" },
		"momentum":      func(c *Cell) { c.Momentum = 1 },
		"weight decay":  func(c *Cell) { c.WeightDecay = math.Inf(1) },
		"proximal":      func(c *Cell) { c.Proximal = math.NaN() },
		"split":         func(c *Cell) { c.Split = Split{Kind: "shares"} },
		"alpha":         func(c *Cell) { c.Split = Split{Kind: "dirichlet", Alpha: math.Inf(1)} },
		"alpha alone":   func(c *Cell) { c.Split = Split{Alpha: math.NaN()} },
		"matrices":      func(c *Cell) { c.Transitions = [][][]float64{nil} },
		"matrix":        func(c *Cell) { c.Transitions = [][][]float64{nil, {{1, 0}, {math.NaN(), 1}}} },
	} {
		c := testCell(100, 1)
		spoil(&c)
		if err := c.Check(); !errors.Is(err, ErrCell) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := testCell(100, 1)
	c.Momentum, c.WeightDecay, c.Proximal, c.Split = 0.9, 1e-4, 0.1, Split{Kind: "dirichlet", Alpha: 0.5}
	c.Transitions = [][][]float64{nil, {{0.9, 0.1}, {0, 1}}}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}

// TestDoubt: the intervals come from curves that are fitted as the curve beside
// them, increasing up to all the members own, not only up to what was measured.
func TestDoubt(t *testing.T) {
	s := &Study{
		Plan: Plan{
			Training: testCell(1, 1).Training, Capacities: []int64{4000, 4000}, Untrained: 0.1, Seed: 3, Repeats: 1,
			Fractions: []float64{0.01, 0.02, 0.03, 0.05, 0.08, 0.12}, Noise: []float64{}, Mixed: []Mixed{},
		},
		Form: curve.FormLogLinear,
	}
	// Accuracy that bends down towards the end of what was measured.
	bent := func(_ context.Context, c Cell) (Outcome, error) {
		x := float64(c.Total()) / 1000
		return Outcome{Accuracy: 0.1 + 0.2*math.Log(1+20*x) - 0.15*x - 0.5*c.WrongShare() + 0.01*math.Sin(float64(c.Total())), Rounds: []Round{{Round: 1}}, Backend: "formula"}, nil
	}
	if err := s.Measure(t.Context(), &Runner{Store: open(t, t.TempDir()), Train: bent}); err != nil {
		t.Fatal(err)
	}
	if err := s.FitCurve(); err != nil {
		t.Fatal(err)
	}
	if err := s.Doubt(40, rand.New(rand.NewPCG(1, 2))); err != nil {
		t.Fatal(err)
	}
	run := func(fitter curve.Fitter) *curve.Spread {
		spread, err := curve.Bootstrap{Fitter: fitter, Form: s.Fit.Form, Replicates: 40}.Run(s.Plan.CurvePoints(s.Points), rand.New(rand.NewPCG(1, 2)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return spread
	}
	if diff := cmp.Diff(run(curve.Fitter{Range: 8000}), s.Spread); diff != "" {
		t.Error(diff)
	}
	if cmp.Equal(run(curve.Fitter{}), s.Spread) {
		t.Error("the range makes no difference here, so this test shows nothing")
	}
}

func FuzzDecode(f *testing.F) {
	cell := testCell(100, 1)
	outcome, _ := fake(context.Background(), cell)
	sum, _ := checksum(cell.Canonical(), outcome)
	data, _ := encode(&Record{Format: 1, Key: cell.Key(), Cell: cell.Canonical(), Outcome: outcome, Sum: sum})
	f.Add(data, cell.Key())
	f.Add([]byte("{}"), "x")
	f.Fuzz(func(t *testing.T, data []byte, key string) {
		record, err := decode(data, key)
		if err == nil && record.Cell.Check() != nil {
			t.Error("accepted an impossible cell")
		}
		if err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
			t.Errorf("error %v", err)
		}
	})
}

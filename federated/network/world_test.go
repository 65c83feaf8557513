package network_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/federated/network/recordtest"
	"grange/federated/network/store"
	"grange/internal/stream"
	"grange/model"
	"grange/train"
	"grange/train/cpu"
)

// memory is a Record that survives its Federation, but not the process.
type memory struct {
	mutex sync.Mutex
	saved network.Saved
	notes []network.Note
	// identity is that of the run.
	identity map[string]string
	// ended says that an end was written, well or not.
	ended bool
	// full, if not nil, is what writing returns.
	full error
}

func (m *memory) Resume(_ context.Context, info network.RunInfo) (network.Saved, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if len(m.saved.Declarations)+len(m.saved.Finished)+len(m.saved.Deliveries) == 0 {
		m.identity = info.Identity
	}
	if !maps.Equal(m.identity, info.Identity) {
		return network.Saved{}, errors.New("another run")
	}
	m.saved.Ended = m.saved.Ended && len(m.saved.Finished) == info.Rounds
	return network.Saved{
		Declarations: slices.Clone(m.saved.Declarations), Finished: slices.Clone(m.saved.Finished),
		Deliveries: slices.Clone(m.saved.Deliveries), Ended: m.saved.Ended,
	}, nil
}

func (m *memory) Declare(_ context.Context, d network.Declaration) error {
	return m.write(func() error {
		m.saved.Declarations = put(m.saved.Declarations, d, func(d network.Declaration) int { return d.Member })
		return nil
	})
}

func (m *memory) Deliver(_ context.Context, d network.Delivery) error {
	return m.write(func() error {
		m.saved.Deliveries = put(m.saved.Deliveries, d, func(d network.Delivery) int { return d.Member })
		return m.follows(d.Round)
	})
}

func (m *memory) Finish(_ context.Context, f network.Finished) error {
	return m.write(func() error {
		if err := m.follows(f.Round.Round); err != nil {
			return err
		}
		m.saved.Finished, m.saved.Deliveries = append(m.saved.Finished, f), nil
		return nil
	})
}

func (m *memory) Rewind(_ context.Context, finished int) error {
	return m.write(func() error {
		if finished < len(m.saved.Finished) {
			m.saved.Finished, m.saved.Deliveries = m.saved.Finished[:finished], nil
		}
		m.saved.Ended = false
		return nil
	})
}

func (m *memory) End(_ context.Context, failure error) error {
	return m.write(func() error { m.ended, m.saved.Ended = true, failure == nil; return nil })
}

func (m *memory) Note(_ context.Context, note network.Note) error {
	return m.write(func() error { m.notes = append(m.notes, note); return nil })
}

// write changes what is there, or leaves it as it was.
func (m *memory) write(change func() error) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.full != nil {
		return m.full
	}
	before := m.saved
	err := change()
	if err != nil {
		m.saved = before
	}
	return err
}

func (m *memory) follows(round int) error {
	if last := len(m.saved.Finished); round != last+1 {
		return fmt.Errorf("%w: round %d does not follow round %d", network.ErrRecord, round, last)
	}
	return nil
}

// put puts a member's item into a list, in place of the one that is there.
func put[T any](list []T, item T, member func(T) int) []T {
	list = slices.DeleteFunc(slices.Clone(list), func(there T) bool { return member(there) == member(item) })
	list = append(list, item)
	slices.SortFunc(list, func(a, b T) int { return member(a) - member(b) })
	return list
}

// records are the ways to keep a record, each with what opens a fresh one, again and again.
var records = map[string]func(t *testing.T) (open func() network.Record){
	"memory": func(*testing.T) func() network.Record {
		record := &memory{}
		return func() network.Record { return record }
	},
	"SQLite": func(t *testing.T) func() network.Record {
		folder := t.TempDir()
		s, err := store.Create(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return func() network.Record {
			s.Close()
			if s, err = store.Lead(t.Context(), folder); err != nil {
				t.Fatal(err)
			}
			return s
		}
	},
}

func TestRecords(t *testing.T) {
	for kind, fresh := range records {
		t.Run(kind, func(t *testing.T) { recordtest.Test(t, fresh) })
	}
}

// about lists the notes of a kind.
func (m *memory) about(kind network.Kind) []network.Note {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	var found []network.Note
	for _, note := range m.notes {
		if note.Kind == kind {
			found = append(found, note)
		}
	}
	return found
}

// world is a training that can be done in one process or by a federation.
type world struct {
	job     train.Job
	config  network.Config
	trainer *cpu.Trainer
	record  *memory
	folder  string // of the objects
}

var fashion = sync.OnceValues(func() (*dataset.Dataset, error) {
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		return nil, err
	}
	// A few test images will do.
	data.Test.Labels = data.Test.Labels[:500]
	data.Test.Pixels = data.Test.Pixels[:500*data.Test.Shape.Channels*data.Test.Shape.Height*data.Test.Shape.Width]
	return data, nil
})

var names = []string{"north", "south", "east"}

// newWorld prepares a small training of three members.
func newWorld(t *testing.T, rounds int) *world {
	t.Helper()
	data, err := fashion()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{record: &memory{}}
	w.job = train.Job{Data: data, Model: "softmax", Settings: federated.Settings{Rounds: rounds}, Local: federated.Local{Epochs: 1}, Seed: 7}
	var holdings []dataset.Holding
	for i, name := range names {
		holding := dataset.Holding{Data: 100, Contribution: 60 + 10*i}
		holdings = append(holdings, holding)
		w.job.Members = append(w.job.Members, train.Member{Name: name, Holding: holding})
	}
	shards, err := w.job.Split.Shards(data, holdings, w.job.Seed)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := model.New(w.job.Model, model.Shape(data.Shape()), len(data.Classes))
	if err != nil {
		t.Fatal(err)
	}
	if w.trainer, err = cpu.New(cpu.Config{Spec: spec, Data: data, Shards: shards}); err != nil {
		t.Fatal(err)
	}
	w.folder = t.TempDir()
	store, err := objects.Open(w.folder)
	if err != nil {
		t.Fatal(err)
	}
	w.config = network.Config{
		RunInfo:  network.RunInfo{Name: "three", Members: names, Rounds: rounds},
		Settings: w.job.Settings, Local: w.job.Local, Seed: w.job.Seed, Spec: spec,
		Initial:   model.Init(spec, stream.New(w.job.Seed, "initial weights")),
		Evaluator: w.trainer, Kernel: w.trainer.Kernel(), Record: w.record, Objects: store,
	}
	return w
}

func (w *world) open(t *testing.T) *network.Federation {
	t.Helper()
	f, err := network.Open(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// holds checks how many files are kept.
func (w *world) holds(t *testing.T, want int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(w.folder, "objects", "*", "*"))
	if err != nil || len(files) != want {
		t.Errorf("%d files are kept, want %d; %v", len(files), want, err)
	}
}

func (w *world) declare(t *testing.T, f *network.Federation, members ...int) {
	t.Helper()
	for _, member := range members {
		holding := w.job.Members[member].Holding
		err := f.Declare(t.Context(), network.Declaration{Member: member, Contribution: holding.Contribution, Data: holding.Data, Transport: "grange"})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// update trains a task and puts the result where the federation finds it.
func (w *world) update(ctx context.Context, task federated.Task) (network.Delivery, error) {
	update, err := w.trainer.Train(ctx, task)
	if err != nil {
		return network.Delivery{}, err
	}
	return w.delivery(task, update.Weights, update.Loss)
}

func (w *world) delivery(task federated.Task, weights *model.Weights, loss float64) (network.Delivery, error) {
	digest, err := w.config.Objects.Put(func(out io.Writer) error { return model.WriteSafetensors(out, weights, nil) })
	return network.Delivery{Round: task.Round, Member: task.Member, Update: digest, Examples: task.Contribution, Loss: loss}, err
}

// member takes part until the run is over.
func (w *world) member(ctx context.Context, f *network.Federation, member int) error {
	defer f.Connect(member)()
	for {
		assignment, err := f.Next(ctx, member)
		if err != nil || assignment.Done {
			return err
		}
		delivery, err := w.update(ctx, assignment.Task)
		if err != nil {
			return err
		}
		err = f.Deliver(ctx, delivery)
		if err != nil && !errors.Is(err, network.ErrStale) && !errors.Is(err, network.ErrRecord) {
			return err
		}
	}
}

// join has members take part, and returns what waits for them.
func (w *world) join(ctx context.Context, t *testing.T, f *network.Federation, members ...int) (wait func()) {
	var group sync.WaitGroup
	for _, member := range members {
		group.Go(func() {
			if err := w.member(ctx, f, member); err != nil && ctx.Err() == nil {
				t.Errorf("%s: %v", names[member], err)
			}
		})
	}
	return group.Wait
}

// sameAsInOneProcess compares a result with that of train.Run, to the bit.
func (w *world) sameAsInOneProcess(t *testing.T, got *federated.Result) {
	t.Helper()
	want, err := train.Run(t.Context(), w.job)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want.Weights.Flat, got.Weights.Flat) {
		t.Error("the models differ")
	}
	text := func(r federated.Result) string {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if diff := cmp.Diff(text(want.Result), text(*got)); diff != "" {
		t.Error(diff)
	}
}

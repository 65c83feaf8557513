package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"grange/federated/network"
	"grange/federated/network/identity"
	"grange/federated/network/recordtest"
	"grange/federated/network/store"
)

var (
	_ network.Record  = (*store.Store)(nil)
	_ identity.Ledger = (*store.Store)(nil)
)

var info = network.RunInfo{
	Name: "clinics", Scenario: []byte("members: []\n"), Identity: map[string]string{"seed": "1", "model": "mlp"},
	Members: []string{"north", "south", "east"}, Rounds: 3, Started: time.Unix(1_700_000_000, 123).UTC(),
}

func fresh(t *testing.T, folder string) {
	t.Helper()
	s, err := store.Create(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func lead(t *testing.T, folder string) *store.Store {
	t.Helper()
	s, err := store.Lead(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func resume(t *testing.T, s *store.Store) network.Saved {
	t.Helper()
	saved, err := s.Resume(t.Context(), info)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsWrittenIsFoundAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a folder? 100% #1")
	do(t, os.Mkdir(folder, 0o700))
	fresh(t, folder)
	s := lead(t, folder)
	if diff := cmp.Diff(resume(t, s), network.Saved{}); diff != "" {
		t.Error(diff)
	}
	declaration := network.Declaration{Member: 1, Contribution: 100, Data: 200, Transport: "grange", Software: "x", Kernel: "portable"}
	ctx := t.Context()
	changed := declaration
	changed.Contribution = 120
	do(t, s.Declare(ctx, declaration), s.Declare(ctx, changed), s.Deliver(ctx, recordtest.Delivery(1, 0)), s.Deliver(ctx, recordtest.Delivery(1, 1)),
		s.Finish(ctx, recordtest.Finished(1)), s.Deliver(ctx, recordtest.Delivery(2, 1)), s.Deliver(ctx, recordtest.Delivery(2, 1)),
		s.Note(ctx, network.Note{Time: info.Started, Kind: network.Late, Round: 1, Member: 2, Text: "late"}))
	undefined := recordtest.Delivery(2, 0)
	undefined.Loss = math.NaN()
	do(t, s.Deliver(ctx, undefined), s.Close())

	s = lead(t, folder)
	want := network.Saved{
		Declarations: []network.Declaration{changed}, Finished: []network.Finished{recordtest.Finished(1)},
		Deliveries: []network.Delivery{undefined, recordtest.Delivery(2, 1)},
	}
	if diff := cmp.Diff(resume(t, s), want, cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if err := s.Deliver(ctx, recordtest.Delivery(1, 2)); !errors.Is(err, network.ErrRecord) || !strings.Contains(err.Error(), "round 1 does not follow round 1") {
		t.Errorf("an update of a finished round: %v", err)
	}
	if err := s.Finish(ctx, recordtest.Finished(1)); !errors.Is(err, network.ErrRecord) {
		t.Errorf("a round a second time: %v", err)
	}
	do(t, s.End(ctx, errors.New("no power")))

	beside, err := store.Read(ctx, folder)
	do(t, err)
	defer beside.Close()
	run, err := beside.Latest(ctx)
	do(t, err)
	if diff := cmp.Diff(run.RunInfo, info); diff != "" || run.Ended == nil || run.Failure != "no power" {
		t.Errorf("run %+v %s", run, diff)
	}
	used, err := beside.Deliveries(ctx, run, 0)
	if err != nil || len(used) != 4 || used[1].Declared != 120 || used[1].Examples != 90 || used[0].At.IsZero() {
		t.Errorf("deliveries %+v, %v", used, err)
	}
	rounds, err := beside.Rounds(ctx, run)
	if err != nil || len(rounds) != 1 || rounds[0].Ended.IsZero() || rounds[0].Absent[0].Name != "east" {
		t.Errorf("rounds %+v, %v", rounds, err)
	}
	declared, err := beside.Declarations(ctx, run)
	if err != nil || len(declared) != 1 || declared[0].Kernel != "portable" {
		t.Errorf("declarations %+v, %v", declared, err)
	}
	notes, err := beside.Notes(ctx, run, 0, 0)
	if err != nil || len(notes) != 1 || notes[0].Kind != network.Late || !notes[0].Time.Equal(info.Started) {
		t.Errorf("notes %+v, %v", notes, err)
	}
}

func TestNotesInPieces(t *testing.T) {
	folder := t.TempDir()
	fresh(t, folder)
	s := lead(t, folder)
	resume(t, s)
	for i := range 30 {
		do(t, s.Note(t.Context(), network.Note{Kind: network.Connected, Member: i}))
	}
	run, err := s.Latest(t.Context())
	do(t, err)
	last, err := s.Notes(t.Context(), run, 0, 5)
	if err != nil || len(last) != 5 || last[0].Member != 25 || last[4].Member != 29 || last[0].Time.IsZero() {
		t.Errorf("last five: %+v, %v", last, err)
	}
	rest, err := s.Notes(t.Context(), run, last[2].ID, 0)
	if err != nil || len(rest) != 2 || rest[0].Member != 28 {
		t.Errorf("the rest: %+v, %v", rest, err)
	}
}

func TestAnotherRunInTheFolder(t *testing.T) {
	folder := t.TempDir()
	fresh(t, folder)
	s := lead(t, folder)
	resume(t, s)
	do(t, s.Deliver(t.Context(), recordtest.Delivery(1, 0)), s.Finish(t.Context(), recordtest.Finished(1)), s.Finish(t.Context(), recordtest.Finished(2)))
	for what, change := range map[string]func(*network.RunInfo){
		`not of "banks"`:                     func(i *network.RunInfo) { i.Name = "banks" },
		"members are north":                  func(i *network.RunInfo) { i.Members = []string{"a"} },
		"training.seed is 1, now 2":          func(i *network.RunInfo) { i.Identity = map[string]string{"seed": "2", "model": "mlp"} },
		"training.model is mlp, now not set": func(i *network.RunInfo) { i.Identity = map[string]string{"seed": "1"} },
		"only 1 are asked":                   func(i *network.RunInfo) { i.Rounds = 1 },
	} {
		other := info
		change(&other)
		if _, err := s.Resume(t.Context(), other); !errors.Is(err, store.ErrOther) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	longer := info
	longer.Rounds = 10
	saved, err := s.Resume(t.Context(), longer)
	if err != nil || len(saved.Finished) != 2 || saved.Deliveries != nil {
		t.Errorf("for longer: %+v, %v", saved, err)
	}
}

// What differs is named by its key in the scenario, and nothing else of it is shown.
func TestWhatDiffers(t *testing.T) {
	const members = `[{"Name":"north","Data":3,"Noise":{"Rate":0,"Transition":null}},{"Name":"south","Data":4,"Noise":{"Rate":0,"Transition":null}}]`
	for _, test := range []struct{ key, was, now, want string }{
		{"local training", `{"Epochs":5,"Rate":0.1,"Decay":0}`, `{"Epochs":5,"Rate":0.05,"Decay":0}`, "training.rate is 0.1, now 0.05"},
		{"local training", `{"Rate":0.1,"Decay":0}`, `{"Rate":0.1,"Decay":0.001}`, "training.weight_decay is 0, now 0.001"},
		{"members", members, strings.Replace(members, `"Data":4`, `"Data":5`, 1), "members.south.data is 4, now 5"},
		{"members", members, strings.Replace(members, `"Rate":0`, `"Rate":0.2`, 1), "members.north.noise is 0, now 0.2"},
		{"members", members, strings.Replace(members, `null`, `[[1,0],[0,1]]`, 1), "members.north.transition is not set, now a list"},
		{"split", "uniform 0", "dirichlet 0.5", "training.split is uniform 0, now dirichlet 0.5"},
		{"data set", strings.Repeat("a", 64), strings.Repeat("b", 64), "training.dataset has other images or labels than it had: fingerprint aaaaaaaaaaaa…, now bbbbbbbbbbbb…"},
		{"start", "", "pytorch", "training.start is not set, now pytorch"},
	} {
		folder := t.TempDir()
		fresh(t, folder)
		s := lead(t, folder)
		one := info
		one.Identity = map[string]string{test.key: test.was}
		if test.was == "" {
			one.Identity = nil
		}
		_, err := s.Resume(t.Context(), one)
		do(t, err, s.Declare(t.Context(), network.Declaration{Contribution: 1, Data: 1}))
		one.Identity = map[string]string{test.key: test.now}
		if _, err := s.Resume(t.Context(), one); !errors.Is(err, store.ErrOther) || !strings.HasSuffix(err.Error(), ": "+test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

func TestOneCoordinatorPerFolder(t *testing.T) {
	folder := t.TempDir()
	if _, err := store.Lead(t.Context(), folder); !errors.Is(err, store.ErrMissing) {
		t.Errorf("an empty folder: %v", err)
	}
	fresh(t, folder)
	if _, err := store.Create(t.Context(), folder); !errors.Is(err, store.ErrExists) {
		t.Errorf("made twice: %v", err)
	}
	running := func(want bool) {
		t.Helper()
		if got, err := store.Running(t.Context(), folder); got != want || err != nil {
			t.Errorf("running: %v, %v", got, err)
		}
	}
	running(false)
	first := lead(t, folder)
	running(true)
	if _, err := store.Lead(t.Context(), folder); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second coordinator: %v", err)
	}
	beside, err := store.Open(t.Context(), folder)
	do(t, err, beside.Set(t.Context(), "port", "1"), beside.Close(), first.Close())
	running(false)
	second := lead(t, folder)
	if port, err := second.Get(t.Context(), "port"); err != nil || port != "1" {
		t.Errorf("port %q, %v", port, err)
	}
	if none, err := second.Get(t.Context(), "none"); err != nil || none != "" {
		t.Errorf("none %q, %v", none, err)
	}
}

func TestManyAtOnce(t *testing.T) {
	folder := t.TempDir()
	fresh(t, folder)
	s := lead(t, folder)
	resume(t, s)
	var group sync.WaitGroup
	for worker := range 4 {
		beside, err := store.Open(t.Context(), folder)
		do(t, err)
		defer beside.Close()
		group.Go(func() {
			for i := range 25 {
				if err := beside.Invite(t.Context(), identity.Invitation{ID: fmt.Sprint(worker, i), Member: "north"}); err != nil {
					t.Error(err)
				}
				if err := s.Note(t.Context(), network.Note{Kind: network.Connected, Member: worker}); err != nil {
					t.Error(err)
				}
				if _, err := beside.Latest(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	run, err := s.Latest(t.Context())
	do(t, err)
	if notes, err := s.Notes(t.Context(), run, 0, 0); err != nil || len(notes) != 100 {
		t.Errorf("%d notes, %v", len(notes), err)
	}
}

// raw changes the database behind the record's back.
func raw(t *testing.T, folder string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(folder, store.File))
	do(t, err)
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVersions(t *testing.T) {
	for statement, want := range map[string]error{
		"PRAGMA user_version = 99":                            store.ErrVersion,
		"PRAGMA application_id = 7":                           store.ErrDamaged,
		"PRAGMA application_id = 0; PRAGMA user_version = 0;": store.ErrDamaged,
	} {
		folder := t.TempDir()
		fresh(t, folder)
		raw(t, folder, statement)
		if _, err := store.Lead(t.Context(), folder); !errors.Is(err, want) {
			t.Errorf("%s: %v", statement, err)
		}
		if _, err := store.Open(t.Context(), folder); !errors.Is(err, want) {
			t.Errorf("%s, opened beside: %v", statement, err)
		}
		if _, err := store.Read(t.Context(), folder); err == nil {
			t.Errorf("%s: read", statement)
		}
	}
}

func TestDamage(t *testing.T) {
	for what, damage := range map[string]func(data []byte) []byte{
		"no database": func([]byte) []byte { return []byte(strings.Repeat("not a database at all. ", 400)) },
		"cut":         func(data []byte) []byte { return data[:len(data)/2] },
		"overwritten": func(data []byte) []byte {
			for i := 4096; i < len(data); i++ {
				data[i] = byte(i * 7)
			}
			return data
		},
	} {
		t.Run(what, func(t *testing.T) {
			folder := t.TempDir()
			fresh(t, folder)
			s := lead(t, folder)
			resume(t, s)
			do(t, s.Close())
			path := filepath.Join(folder, store.File)
			data, err := os.ReadFile(path)
			do(t, err, os.WriteFile(path, damage(data), 0o600))
			if _, err := store.Lead(t.Context(), folder); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), store.File) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A full disk, as SQLite itself meets it: there is no room for another page.
func TestFullDisk(t *testing.T) {
	folder := t.TempDir()
	fresh(t, folder)
	s := lead(t, folder)
	resume(t, s)
	do(t, s.Deliver(t.Context(), recordtest.Delivery(1, 0)))
	do(t, s.Limit(t.Context(), 1)) // of pages; what is there stays
	huge := recordtest.Finished(1)
	huge.Warnings = []string{strings.Repeat("x", 1<<20)}
	if err := s.Finish(t.Context(), huge); !errors.Is(err, network.ErrRecord) || !strings.Contains(err.Error(), "full") {
		t.Errorf("error %v", err)
	}
	saved := resume(t, s)
	if len(saved.Finished) != 0 || len(saved.Deliveries) != 1 {
		t.Errorf("half-written: %+v", saved)
	}
	do(t, s.Limit(t.Context(), 1<<30), s.Finish(t.Context(), huge))
	if saved := resume(t, s); len(saved.Finished) != 1 || len(saved.Finished[0].Warnings[0]) != 1<<20 {
		t.Errorf("after room was made: %d rounds", len(saved.Finished))
	}
}

func TestStoppedWhileWriting(t *testing.T) {
	folder := t.TempDir()
	fresh(t, folder)
	s := lead(t, folder)
	resume(t, s)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := s.Finish(stopped, recordtest.Finished(1)); !errors.Is(err, network.ErrRecord) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	do(t, s.Finish(t.Context(), recordtest.Finished(1)))
}

func TestOlderVersionIsRenewed(t *testing.T) {
	folder := t.TempDir()
	fresh(t, folder)
	running := lead(t, folder)
	resume(t, running)
	t.Cleanup(store.AddMigration("CREATE TABLE more (x INTEGER) STRICT"))
	if _, err := store.Open(t.Context(), folder); !errors.Is(err, store.ErrBusy) {
		t.Errorf("renewed under a running coordinator: %v", err)
	}
	if _, err := store.Read(t.Context(), folder); !errors.Is(err, store.ErrVersion) {
		t.Errorf("read: %v", err)
	}
	do(t, running.Close())
	s := lead(t, folder)
	resume(t, s)
	do(t, s.Close())
	raw(t, folder, "INSERT INTO more VALUES (1)")
}

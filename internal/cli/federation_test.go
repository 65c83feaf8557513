package cli_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grange/federated/network/store"
	"grange/internal/raced"
)

const threeSilos = `name: three
members:
  - {name: ash, data: 300, noise: 0, privacy: 0.1}
  - {name: birch, data: 300, noise: 0.2, privacy: 0.1}
  - {name: cedar, data: 300, noise: 0, privacy: 0.1}
training: {dataset: fashion, model: softmax, rounds: 8, epochs: 1, seed: 4}
`

// contributed is what the silos of threeSilos contribute.
const contributed = "200,250,300"

// village is a coordinator and three silos, each a process of its own.
type village struct {
	t       *testing.T
	folder  string
	address string
	silos   []*exec.Cmd
}

func newVillage(t *testing.T) *village {
	t.Helper()
	v := &village{t: t, folder: t.TempDir(), address: freeAddress(t)}
	if err := os.WriteFile(filepath.Join(v.folder, "three.yaml"), []byte(threeSilos), 0o600); err != nil {
		t.Fatal(err)
	}
	v.must("coordinator", "init", "coop")
	return v
}

func (v *village) grange(args ...string) *exec.Cmd {
	command := exec.CommandContext(v.t.Context(), "grange", args...)
	command.Dir = v.folder
	return command
}

// must runs a command to its end and returns what it prints.
func (v *village) must(args ...string) string {
	v.t.Helper()
	command := v.grange(args...)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		v.t.Fatalf("grange %s: %v\n%s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// process is a command that runs for long.
type process struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	ended          chan struct{}
	err            error
}

// start starts the coordinator and waits until it listens.
func (v *village) start(options ...string) *process {
	v.t.Helper()
	command := v.grange(append([]string{"coordinator", "start", "coop", "three.yaml", "--listen", v.address}, options...)...)
	p := &process{Cmd: command, ended: make(chan struct{})}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		v.t.Fatal(err)
	}
	go func() {
		p.err = p.Cmd.Wait()
		close(p.ended)
	}()
	listening(v.t, filepath.Join(v.folder, "coop"), p.ended)
	return p
}

// Wait waits until it has ended.
func (p *process) Wait() error {
	if p.ended == nil { // nobody waits for it yet
		return p.Cmd.Wait()
	}
	<-p.ended
	return p.err
}

// join lets the silos in and starts them.
func (v *village) join() {
	v.t.Helper()
	for i, name := range []string{"ash", "birch", "cedar"} {
		token := strings.TrimSpace(v.must("coordinator", "invite", "coop", name, "--quiet"))
		v.must("silo", "join", "https://"+v.address, "--dir", name, "--token", token)
		silo := v.grange("silo", "run", "--dir", name, "--data", "fashion", "--contribute", fmt.Sprint(200+50*i))
		if err := silo.Start(); err != nil {
			v.t.Fatal(err)
		}
		v.silos = append(v.silos, silo)
	}
}

// end waits until all have ended, well.
func (v *village) end(coordinator *process) {
	v.t.Helper()
	if err := coordinator.Wait(); err != nil {
		v.t.Fatalf("%v\n%s", err, &coordinator.stderr)
	}
	for _, silo := range v.silos {
		if err := silo.Wait(); err != nil {
			v.t.Error(err)
		}
	}
}

// same compares two files or folders.
func (v *village) same(a, b string) {
	v.t.Helper()
	err := filepath.WalkDir(filepath.Join(v.folder, a), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		relative, err := filepath.Rel(filepath.Join(v.folder, a), path)
		if err != nil {
			return err
		}
		one, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		two, err := os.ReadFile(filepath.Join(v.folder, b, relative))
		if err != nil {
			return err
		}
		if !bytes.Equal(one, two) {
			v.t.Errorf("%s differs from %s", path, b)
		}
		return nil
	})
	if err != nil {
		v.t.Error(err)
	}
}

// What start prints and writes is what grange train prints and writes.
func TestFederationPrintsWhatTrainPrints(t *testing.T) {
	v := newVillage(t)
	coordinator := v.start("--json", "--save", "federated.safetensors", "--keep-updates", "federated", "--plot", "federated.svg")
	v.join()
	v.end(coordinator)
	want := v.must("train", "three.yaml", "--contributions", contributed, "--json", "--save", "one.safetensors", "--save-updates", "one", "--plot", "one.svg")
	if got := coordinator.stdout.String(); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for _, suffix := range []string{"", ".safetensors", ".svg"} {
		v.same("one"+suffix, "federated"+suffix)
	}
	// A run that has ended prints its result again, and is left as it is.
	status := v.must("coordinator", "status", "coop", "--json")
	if again := v.must("coordinator", "start", "coop", "three.yaml", "--listen", v.address, "--json"); again != want {
		t.Errorf("again %s\nwant %s", again, want)
	}
	if v.must("coordinator", "status", "coop", "--json") != status {
		t.Error("starting it again has changed the record")
	}
	// Nothing that determines the result can be changed any more.
	if err := os.WriteFile(filepath.Join(v.folder, "three.yaml"), []byte(strings.Replace(threeSilos, "epochs: 1", "epochs: 1, rate: 0.5", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := v.grange("coordinator", "start", "coop", "three.yaml", "--listen", v.address)
	if text, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(text), ": training.rate is 0.05, now 0.5\n") {
		t.Errorf("another rate: %s", text)
	}
}

// TestKilledCoordinator kills the process of a coordinator again and again, wherever it is, while three silos take part.
// The same command goes on each time, the silos come back by themselves, no round is lost or counted twice, and the model
// is to the byte that of the same training in one process.
func TestKilledCoordinator(t *testing.T) {
	t.Parallel()
	v := newVillage(t)
	coordinator := v.start("--save", "federated.safetensors", "--keep-updates", "federated")
	v.join()
	random := rand.New(rand.NewPCG(1, 2))
	kills, enough := 0, 20
	if raced.Enabled { // starting a process takes seconds then
		enough = 5
	}
	for kills < enough && progress(t, filepath.Join(v.folder, "coop"), 1+random.IntN(8)) {
		if err := coordinator.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = coordinator.Wait() // killed
		kills++
		coordinator = v.start("--save", "federated.safetensors", "--keep-updates", "federated")
	}
	v.end(coordinator)
	if kills < 3 {
		t.Errorf("killed %d times, expected more", kills)
	}
	t.Logf("killed %d times", kills)
	v.must("train", "three.yaml", "--contributions", contributed, "--save", "one.safetensors", "--save-updates", "one")
	v.same("one.safetensors", "federated.safetensors")
	v.same("one", "federated")
	if status := v.must("coordinator", "status", "coop"); !strings.Contains(status, "three: done after 8 of 8 rounds") {
		t.Error(status)
	}
}

// progress waits until so many more things are noted in a coordinator's record; false once the run has ended.
func progress(t *testing.T, folder string, more int) bool {
	t.Helper()
	record, err := store.Read(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	from := int64(-1)
	for {
		run, err := record.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if run.Ended != nil {
			return false
		}
		last, err := record.Notes(t.Context(), run, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
		id := int64(0)
		if len(last) > 0 {
			id = last[0].ID
		}
		if from < 0 {
			from = id
		}
		if id >= from+int64(more) {
			return true
		}
		time.Sleep(time.Millisecond)
	}
}

// ended says whether the run in a coordinator's record is over.
func ended(t *testing.T, folder string) bool {
	t.Helper()
	record, err := store.Read(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	run, err := record.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return run.Ended != nil
}

// freeAddress is an address that nobody listens on at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

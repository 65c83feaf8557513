package cli_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grange/federated/network/store"
)

const threeSilos = `name: three
members:
  - {name: ash, data: 300, noise: 0, privacy: 0.1}
  - {name: birch, data: 300, noise: 0.2, privacy: 0.1}
  - {name: cedar, data: 300, noise: 0, privacy: 0.1}
training: {dataset: fashion, model: softmax, rounds: 8, epochs: 1, seed: 4}
`

// TestKilledCoordinator kills the process of a coordinator again and again, wherever it is, while three silos take part.
// The same command goes on each time, the silos come back by themselves, no round is lost or counted twice, and the model
// is to the byte that of the same training in one process.
func TestKilledCoordinator(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "three.yaml"), []byte(threeSilos), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	grange := func(args ...string) *exec.Cmd {
		command := exec.CommandContext(t.Context(), "grange", args...)
		command.Dir = folder
		return command
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := grange(args...).Output()
		if err != nil {
			t.Fatalf("grange %s: %v", strings.Join(args, " "), err)
		}
		return strings.TrimSpace(string(out))
	}
	must("coordinator", "init", "coop")
	start := func() (*exec.Cmd, *bytes.Buffer) {
		t.Helper()
		var out bytes.Buffer
		command := grange("coordinator", "start", "coop", "three.yaml", "--listen", address, "--save", "federated.safetensors")
		command.Stdout, command.Stderr = &out, &out
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		listening(t, filepath.Join(folder, "coop"))
		return command, &out
	}
	coordinator, out := start()
	var silos []*exec.Cmd
	for i, name := range []string{"ash", "birch", "cedar"} {
		must("silo", "join", "https://"+address, "--dir", name, "--token", must("coordinator", "invite", "coop", name, "--quiet"))
		silo := grange("silo", "run", "--dir", name, "--data", "fashion", "--contribute", fmt.Sprint(200+50*i))
		if err := silo.Start(); err != nil {
			t.Fatal(err)
		}
		silos = append(silos, silo)
	}
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for progress(t, filepath.Join(folder, "coop"), 1+random.IntN(8)) {
		if err := coordinator.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = coordinator.Wait() // killed
		kills++
		coordinator, out = start()
	}
	if err := coordinator.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, silo := range silos {
		if err := silo.Wait(); err != nil {
			t.Error(err)
		}
	}
	if kills < 3 {
		t.Errorf("killed %d times, expected more", kills)
	}
	t.Logf("killed %d times", kills)
	must("train", "three.yaml", "--contributions", "200,250,300", "--save", "one.safetensors")
	federated, err := os.ReadFile(filepath.Join(folder, "federated.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	one, err := os.ReadFile(filepath.Join(folder, "one.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(federated, one) {
		t.Error("another model than in one process")
	}
	if status := must("coordinator", "status", "coop"); !strings.Contains(status, "three: done after 8 of 8 rounds") {
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

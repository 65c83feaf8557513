package cli_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grange/internal/raced"
)

const fiveSilos = `name: five
members:
  - {name: ash, data: 900, noise: 0, privacy: 0.1}
  - {name: birch, data: 900, noise: 0.2, privacy: 0.1}
  - {name: cedar, data: 900, noise: 0, privacy: 0.1}
  - {name: elm, data: 400, noise: 0.1, privacy: 0.1}
  - {name: fir, data: 2000, noise: 0, privacy: 0.1}
training: {dataset: fashion, model: mlp, rounds: 6, epochs: 2, seed: 11, split: {kind: dirichlet, alpha: 0.5}}
`

// Every member of fiveSilos but one contributes less than all.
var fiveContributions = []string{"300", "200", "250", "all", "1500"}

// grove is five silos, each a process that can be killed and started again.
type grove struct {
	*village
	names []string
	runs  []*process
}

func newGrove(t *testing.T) *grove {
	t.Helper()
	g := &grove{village: newVillage(t), names: []string{"ash", "birch", "cedar", "elm", "fir"}}
	if err := os.WriteFile(filepath.Join(g.folder, "three.yaml"), []byte(fiveSilos), 0o600); err != nil {
		t.Fatal(err)
	}
	g.runs = make([]*process, len(g.names))
	return g
}

func (g *grove) join() {
	g.t.Helper()
	for i, name := range g.names {
		token := strings.TrimSpace(g.must("coordinator", "invite", "coop", name, "--quiet"))
		g.must("silo", "join", "https://"+g.address, "--dir", name, "--token", token)
		g.run(i)
	}
}

// run starts a silo.
func (g *grove) run(i int) {
	g.t.Helper()
	p := &process{Cmd: g.grange("silo", "run", "--dir", g.names[i], "--data", "fashion", "--contribute", fiveContributions[i], "--workers", "1")}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	if err := p.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.runs[i] = p
}

// end waits until all have ended well, and compares the model with that of one process.
func (g *grove) end(coordinator *process) {
	g.t.Helper()
	if err := coordinator.Wait(); err != nil {
		g.t.Fatalf("%v\n%s", err, &coordinator.stderr)
	}
	for i, silo := range g.runs {
		if silo == nil {
			continue
		}
		if err := silo.Cmd.Wait(); err != nil {
			g.t.Errorf("%s: %v\n%s", g.names[i], err, &silo.stderr)
		}
	}
	g.must("train", "three.yaml", "--contributions", "300,200,250,400,1500", "--save", "one.safetensors")
	g.same("one.safetensors", "federated.safetensors")
}

// Five silos train fashion over TLS, each a process, and the file that the coordinator saves is that of grange train.
func TestFiveSilos(t *testing.T) {
	g := newGrove(t)
	coordinator := g.start("--save", "federated.safetensors")
	g.join()
	g.end(coordinator)
	for i, silo := range g.runs {
		if !strings.Contains(silo.stdout.String(), "five: 6 rounds, 6 updates of "+g.names[i]+" counted") {
			t.Errorf("%s printed %s", g.names[i], &silo.stdout)
		}
		if !bytes.Contains(silo.stderr.Bytes(), []byte("round 6 of 6: accepted")) {
			t.Errorf("%s told %s", g.names[i], &silo.stderr)
		}
	}
	for _, name := range g.names {
		left, err := filepath.Glob(filepath.Join(g.folder, name, "update*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %v are left", name, left)
		}
	}
}

// TestKilledSilos kills the processes of silos again and again, whatever they are doing, and starts them again.
func TestKilledSilos(t *testing.T) {
	g := newGrove(t)
	coordinator := g.start("--save", "federated.safetensors")
	g.join()
	random := rand.New(rand.NewPCG(3, 4))
	kills, enough := 0, 20
	if raced.Enabled { // starting a process takes seconds then
		enough = 4
	}
	for kills < enough && progress(t, filepath.Join(g.folder, "coop"), 1+random.IntN(5)) {
		victim := random.IntN(len(g.names))
		if err := g.runs[victim].Process.Kill(); err != nil {
			continue // it has ended
		}
		if g.runs[victim].Cmd.Wait() == nil {
			continue // it had ended well
		}
		kills++
		if ended(t, filepath.Join(g.folder, "coop")) {
			g.runs[victim] = nil // started again it might find nobody who tells it so
			break
		}
		g.run(victim)
	}
	g.end(coordinator)
	if kills < 3 {
		t.Errorf("killed %d times, expected more", kills)
	}
	t.Logf("killed %d times", kills)
}

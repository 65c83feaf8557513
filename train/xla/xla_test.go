package xla

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"grange/dataset"
	"grange/federated"
	"grange/model"
	"grange/nn"
	"grange/train"
	"grange/train/cpu"
	"grange/train/xla/pjrt"
)

// asWorker makes this test program a worker that computes with package nn. Its value says how the worker misbehaves.
const asWorker = "GRANGE_TEST_WORKER"

// asParent makes it a program that starts the multi-process service and waits.
const asParent = "GRANGE_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) != "" {
		startService(context.Background(), slog.New(slog.DiscardHandler))
		fmt.Println("started")
		select {}
	}
	if manner := os.Getenv(asWorker); manner != "" {
		var m machine = &processor{manner: manner}
		if manner == "card" {
			m = &card{}
		}
		if err := serve(os.Stdin, os.Stdout, m); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// processor is a machine that computes on the CPU, with the same plan of steps as the card's.
type processor struct {
	manner  string
	with    setup
	images  [2][]byte
	scale   []float32
	network *nn.Network
}

func (p *processor) setup(s setup, train, test []byte, scale []float32) (string, error) {
	if p.manner == "no plugin" {
		return "", fmt.Errorf("%w: a test", pjrt.ErrPlugin)
	}
	p.with, p.images, p.scale = s, [2][]byte{train, test}, scale
	var err error
	p.network, err = nn.New(s.Spec, max(s.Batch, scoreBatch), nn.Options{})
	return "test", err
}

func (p *processor) prepare(bool, bool) error {
	if p.manner == "no memory" {
		return fmt.Errorf("%w: a test", pjrt.ErrMemory)
	}
	return nil
}

// batch is the images of some points, as package nn takes them.
func (p *processor) batch(set int, points, labels []int32) ([]float32, []uint8) {
	in := p.with.Spec.Input
	area := in.Height * in.Width
	var x []float32
	var y []uint8
	for i, point := range points {
		image := p.images[set][int(point)*in.Size() : (int(point)+1)*in.Size()]
		for c := range in.Channels {
			for k := range area {
				x = append(x, float32(image[k*in.Channels+c])*p.scale[c]+p.scale[in.Channels+c])
			}
		}
		y = append(y, uint8(labels[i]))
	}
	return x, y
}

func (p *processor) train(t task) (weights, losses []float32, err error) {
	switch p.manner {
	case "dies":
		os.Exit(3)
	case "dies once":
		flag := filepath.Join(p.with.Cache, "died")
		if _, err := os.Stat(flag); err != nil {
			os.WriteFile(flag, nil, 0o644)
			os.Exit(3)
		}
	case "babbles":
		fmt.Println("a library's greeting")
	}
	w, err := model.WeightsFrom(p.with.Spec, t.weights)
	if err != nil {
		return nil, nil, err
	}
	sgd := nn.SGD{
		Rate: t.Rates[0], Momentum: t.Rates[1], Decay: t.Rates[2], Proximal: t.Rates[3],
		Velocity: make([]float32, len(w.Flat)), Reference: slices.Clone(w.Flat),
	}
	for step, count := range t.counts {
		if count == 0 {
			losses = append(losses, 0)
			continue
		}
		from := step * p.with.Batch
		x, y := p.batch(0, t.points[from:from+int(count)], t.labels[from:from+int(count)])
		losses = append(losses, float32(p.network.Step(w, x, y, sgd)*float64(count)))
	}
	return w.Flat, losses, nil
}

func (p *processor) score(t task) (hits []int32, losses []float32, err error) {
	w, err := model.WeightsFrom(p.with.Spec, t.weights)
	if err != nil {
		return nil, nil, err
	}
	for step, count := range t.counts {
		from := step * scoreBatch
		x, y := p.batch(1, t.points[from:from+int(count)], t.labels[from:from+int(count)])
		correct, loss := p.network.Evaluate(w, x, y)
		hits, losses = append(hits, int32(correct)), append(losses, float32(loss*float64(count)))
	}
	return hits, losses, nil
}

func testData() *dataset.Dataset {
	r := rand.New(rand.NewPCG(1, 2))
	images := func(n int) dataset.Images {
		m := dataset.Images{Shape: dataset.Shape{Channels: 2, Height: 4, Width: 4}}
		for i := range n {
			for range m.Shape.Size() {
				m.Pixels = append(m.Pixels, byte(r.Uint32()))
			}
			m.Labels = append(m.Labels, uint8(i%3))
		}
		return m
	}
	return &dataset.Dataset{Name: "test", Classes: []string{"a", "b", "c"}, Train: images(120), Test: images(2100)}
}

// testConfig is a configuration whose workers are this test program.
func testConfig(t *testing.T, manner string, workers int) Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Command: []string{self}, Environment: []string{asWorker + "=" + manner}, Workers: workers, Cache: t.TempDir(),
	}
}

func testJob(data *dataset.Dataset, local federated.Local) train.Job {
	job := train.Job{
		Data: data, Model: "mlp", Seed: 5, Settings: federated.Settings{Rounds: 2}, Local: local,
	}
	for i := range 3 {
		job.Members = append(job.Members, train.Member{
			Name: fmt.Sprint("member ", i+1), Holding: dataset.Holding{Data: 40, Contribution: 40 - 7*i, Noise: dataset.Noise{Rate: 0.1}},
		})
	}
	return job
}

// TestLikeCPU trains through worker processes and in this one: plans, shards, averages and scores must agree.
func TestLikeCPU(t *testing.T) {
	data := testData()
	for name, local := range map[string]federated.Local{
		"plain": {Epochs: 3, Batch: 16, Rate: 0.1},
		"all":   {Epochs: 2, Batch: 7, Rate: 0.05, Momentum: 0.5, Decay: 0.01, Proximal: 0.1},
		"long":  {Epochs: 17, Batch: 40, Rate: 0.01},
	} {
		job := testJob(data, local)
		want, err := train.Run(context.Background(), job)
		if err != nil {
			t.Fatal(err)
		}
		for _, manner := range []string{"well", "dies once"} {
			engine := &Engine{Config: testConfig(t, manner, 2)}
			job.Engine = engine
			got, err := train.Run(context.Background(), job)
			engine.Close()
			if err != nil {
				t.Fatalf("%s, %s: %v", name, manner, err)
			}
			// Normalised bytes differ in the last digit.
			if d := far(got.Weights.Flat, want.Weights.Flat); d > 1e-5 {
				t.Errorf("%s, %s: the weights differ by %g", name, manner, d)
			}
			if d := got.Rounds[1].Training/want.Rounds[1].Training - 1; d > 1e-5 || d < -1e-5 {
				t.Errorf("%s, %s: training loss %g, want %g", name, manner, got.Rounds[1].Training, want.Rounds[1].Training)
			}
			if d := got.Loss/want.Loss - 1; d > 1e-5 || d < -1e-5 {
				t.Errorf("%s, %s: loss %g, want %g", name, manner, got.Loss, want.Loss)
			}
			if got.Kernel != "xla:cuda bf16" {
				t.Errorf("kernel %q", got.Kernel)
			}
		}
	}
}

func far(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, float64(a[i]-b[i]), float64(b[i]-a[i]))
	}
	return worst
}

func TestFaults(t *testing.T) {
	data := testData()
	for manner, want := range map[string]error{
		"dies": ErrWorker, "babbles": ErrWorker, "no memory": ErrMemory, "no plugin": ErrNoPlugin,
	} {
		job := testJob(data, federated.Local{Epochs: 1, Batch: 16, Rate: 0.1})
		engine := &Engine{Config: testConfig(t, manner, 2)}
		job.Engine = engine
		_, err := train.Run(context.Background(), job)
		engine.Close()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", manner, err)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	job := testJob(testData(), federated.Local{Epochs: 1, Batch: 16, Rate: 0.1})
	job.Settings.Rounds = 1 << 20
	job.Observe = func(federated.Observation) { cancel() }
	engine := &Engine{Config: testConfig(t, "well", 2)}
	defer engine.Close()
	job.Engine = engine
	if _, err := train.Run(ctx, job); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// The engine is as good as before.
	job.Observe, job.Settings.Rounds = nil, 1
	if _, err := train.Run(context.Background(), job); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileTraining closes an engine that trains: the training fails, and no worker is left or started again. Under
// the race detector it also shows that closing and training do not touch the same memory unguarded.
func TestCloseWhileTraining(t *testing.T) {
	for range 5 {
		engine := &Engine{Config: testConfig(t, "well", 2)}
		job := testJob(testData(), federated.Local{Epochs: 1, Batch: 16, Rate: 0.1})
		job.Settings.Rounds, job.Engine = 1<<20, engine
		begun := make(chan struct{})
		var once sync.Once
		job.Observe = func(federated.Observation) { once.Do(func() { close(begun) }) }
		failed := make(chan error)
		go func() {
			_, err := train.Run(context.Background(), job)
			failed <- err
		}()
		<-begun
		engine.mutex.Lock()
		var pools []*Pool
		for _, pool := range engine.pools {
			pools = append(pools, pool)
		}
		engine.mutex.Unlock()
		engine.Close()
		if err := <-failed; !errors.Is(err, ErrWorker) {
			t.Errorf("closed: %v", err)
		}
		for _, pool := range pools {
			if left := pool.Processes(); len(left) > 0 {
				t.Errorf("processes %v are left", left)
				pool.Close()
			}
		}
	}
}

func TestRejects(t *testing.T) {
	data := testData()
	spec, err := model.New("mlp", model.Shape(data.Shape()), 3)
	if err != nil {
		t.Fatal(err)
	}
	good := testConfig(t, "well", 1)
	good.Spec, good.Data = spec, data
	for name, change := range map[string]func(*Config){
		"batch":     func(c *Config) { c.Batch = -1 },
		"workers":   func(c *Config) { c.Workers = -1 },
		"precision": func(c *Config) { c.Precision = "f8" },
		"data":      func(c *Config) { c.Data = nil },
		"classes":   func(c *Config) { c.Spec.Classes = 4 },
	} {
		config := good
		change(&config)
		if _, err := Open(context.Background(), config, federated.Local{}); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pool, err := Open(context.Background(), good, federated.Local{})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	shard := dataset.Shard{Points: []int32{1, 2}, Labels: []uint8{0, 1}}
	if _, err := pool.Trainer([]dataset.Shard{{Points: []int32{500}, Labels: []uint8{0}}}); err == nil {
		t.Error("took a shard of another data set")
	}
	trainer, err := pool.Trainer([]dataset.Shard{shard})
	if err != nil {
		t.Fatal(err)
	}
	fine := federated.Task{Round: 1, Contribution: 2, Local: federated.Local{Epochs: 1, Batch: 2, Rate: 0.1}, Global: model.NewWeights(spec)}
	for name, change := range map[string]func(*federated.Task){
		"member":       func(t *federated.Task) { t.Member = 1 },
		"contribution": func(t *federated.Task) { t.Contribution = 3 },
		"batch":        func(t *federated.Task) { t.Local.Batch = 65 },
		"epochs":       func(t *federated.Task) { t.Local.Epochs = 0 },
	} {
		task := fine
		change(&task)
		if _, err := trainer.Train(context.Background(), task); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := trainer.Train(context.Background(), fine); err != nil {
		t.Error(err)
	}
}

// TestPlan compares the order of a task with that of package cpu, through the loss of an untrained model.
func TestPlan(t *testing.T) {
	shard := dataset.Shard{}
	for i := range 23 {
		shard.Points = append(shard.Points, int32(100+i))
		shard.Labels = append(shard.Labels, uint8(i%3))
	}
	task := federated.Task{Round: 2, Member: 1, Contribution: 20, Seed: 9, Local: federated.Local{Epochs: 3, Batch: 8}}
	p := newPlan(10, 4, shard, task)
	if p.steps != 9 || p.lastEpoch != 6 || len(p.counts) != 12 || len(p.points) != 120 {
		t.Fatalf("%d steps from %d, %d counts, %d points", p.steps, p.lastEpoch, len(p.counts), len(p.points))
	}
	for epoch := range 3 {
		var seen []int32
		for step := 3 * epoch; step < 3*epoch+3; step++ {
			for i := range p.counts[step] {
				point := p.points[step*10+int(i)]
				if p.labels[step*10+int(i)] != (point-100)%3 {
					t.Errorf("point %d has label %d", point, p.labels[step*10+int(i)])
				}
				seen = append(seen, point)
			}
		}
		slices.Sort(seen)
		if len(seen) != 20 || seen[0] != 100 || seen[19] != 119 || len(slices.Compact(seen)) != 20 {
			t.Errorf("epoch %d sees %v", epoch, seen)
		}
	}
	if !slices.Equal(p.counts, []int32{8, 8, 4, 8, 8, 4, 8, 8, 4, 0, 0, 0}) {
		t.Errorf("counts %v", p.counts)
	}
}

func TestFindPlugin(t *testing.T) {
	root := t.TempDir()
	put := func(parts ...string) string {
		name := filepath.Join(append([]string{root}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return name
	}
	packages := []string{"env", "lib", "python3.12", "site-packages"}
	old := put(append(packages, "jax_plugins", "xla_cuda12", "xla_cuda_plugin.so")...)
	plugin := put(append(packages, "jax_plugins", "xla_cuda13", "xla_cuda_plugin.so")...)
	library := filepath.Dir(put(append(packages, "nvidia", "cu13", "lib", "libcudnn.so")...))
	put(append(packages, "nvidia", "cu13", "nvvm", "x")...)
	put("env", "bin", "python3")
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..", "env", "bin", "python3"), filepath.Join(root, "bin", "python3")); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		given       string
		environment map[string]string
		want        string
	}{
		"given":       {old, nil, old},
		"variable":    {"", map[string]string{PluginVariable: old}, old},
		"folder":      {"", map[string]string{PluginVariable: filepath.Join(append([]string{root}, packages...)...)}, plugin},
		"environment": {"", map[string]string{"VIRTUAL_ENV": filepath.Join(root, "env")}, plugin},
		"path":        {"", map[string]string{"PATH": filepath.Join(root, "env", "bin")}, plugin},
		"link":        {"", map[string]string{"PATH": filepath.Join(root, "bin")}, plugin},
	} {
		got, err := FindPlugin(test.given, func(key string) string { return test.environment[key] })
		if err != nil || got != test.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	// A link to itself, and two to each other, are passed over.
	for from, to := range map[string]string{"self": "self", "here": "there", "there": "here"} {
		if err := os.MkdirAll(filepath.Join(root, from), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join("..", to, "python3"), filepath.Join(root, from, "python3")); err != nil {
			t.Fatal(err)
		}
	}
	circles := strings.Join([]string{filepath.Join(root, "self"), filepath.Join(root, "here"), filepath.Join(root, "bin")}, string(filepath.ListSeparator))
	got, err := FindPlugin("", func(key string) string { return map[string]string{"PATH": circles}[key] })
	if err != nil || got != plugin {
		t.Errorf("circles: %s, %v", got, err)
	}
	for _, given := range []string{filepath.Join(root, "nowhere"), filepath.Join(root, "bin")} {
		if _, err := FindPlugin(given, os.Getenv); !errors.Is(err, ErrNoPlugin) {
			t.Errorf("%s: %v", given, err)
		}
	}
	environment := strings.Join(libraryEnvironment(plugin, func(key string) string {
		return map[string]string{"LD_LIBRARY_PATH": "/mine", "XLA_FLAGS": "--own"}[key]
	}), "\n")
	for _, want := range []string{"LD_LIBRARY_PATH=" + library + ":/mine", "--xla_gpu_cuda_data_dir=" + filepath.Dir(library) + " --own\n"} {
		if !strings.Contains(environment, want) {
			t.Errorf("no %s in %s", want, environment)
		}
	}
}

// TestNotAPlugin gives the real loader a file that is no plugin.
func TestNotAPlugin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plugin.so")
	if err := os.WriteFile(file, []byte("not a library"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := pjrt.ErrPlugin
	if !pjrt.Available {
		want = pjrt.ErrUnavailable
	}
	if _, err := pjrt.Open(file); !errors.Is(err, want) {
		t.Error(err)
	}
}

var _ train.Engine = (*Engine)(nil)
var _ train.Trainer = (*cpu.Trainer)(nil)

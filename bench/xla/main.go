// Command xla checks the accelerator backend against the CPU engine and measures how fast it trains.
//
//	go run ./bench/xla -check
//	go run ./bench/xla -speed -workers 5 -rounds 2
//	go run ./bench/xla -program train.mlir && python3 bench/peers/kernels_jax.py train.mlir
//
// The check does one step of every architecture, with random images and weights, in both engines and both precisions,
// and fails where they differ by more than 1e-4 (float32) or 2e-2 (bfloat16) of the weights. The speed is that of
// ResNet-18 on images of CIFAR-10's shape, batch 64: whole rounds as a run does them, with everything that belongs to
// them but scoring. bench/peers/resnet18_torch.py measures PyTorch in the same way.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"grange/dataset"
	"grange/federated"
	"grange/model"
	"grange/train/cpu"
	"grange/train/xla"
	"grange/train/xla/program"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == xla.WorkerCommand {
		if err := xla.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	var b bench
	check := flag.Bool("check", false, "compare one step of every architecture with the CPU engine")
	speed := flag.Bool("speed", false, "measure images per second")
	kill := flag.Bool("kill", false, "kill a worker in the middle of a round and compare the result")
	text := flag.String("program", "", "write the program that trains ResNet-18 to this file, to measure its kernels")
	flag.IntVar(&b.workers, "workers", 5, "members side by side")
	flag.IntVar(&b.rounds, "rounds", 2, "rounds to measure")
	flag.IntVar(&b.points, "points", 10000, "points of each member")
	flag.IntVar(&b.config.Steps, "steps", 5, "steps in a call of the device")
	flag.StringVar(&b.config.Plugin, "plugin", "", "path of the plugin (default: found)")
	flag.StringVar(&b.config.Cache, "cache", "", "folder for compiled programs (default: the user's)")
	precision := flag.String("precision", "bf16", "bf16 or f32")
	flag.Parse()
	b.config.Precision = program.Precision(*precision)
	b.config.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	var err error
	if *text != "" {
		err = b.program(*text)
	}
	if err == nil && *check {
		err = b.check()
	}
	if err == nil && *speed {
		err = b.speed()
	}
	if err == nil && *kill {
		err = b.kill()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type bench struct {
	config                  xla.Config
	workers, rounds, points int
}

// program writes the training program.
func (b *bench) program(file string) error {
	spec, err := model.New("resnet18", model.Shape{Channels: 3, Height: 32, Width: 32}, 10)
	if err != nil {
		return err
	}
	text := program.Train(spec, program.Options{Images: 50000, Batch: 64, Steps: b.config.Steps, Precision: b.config.Precision})
	return os.WriteFile(file, []byte(text), 0o644)
}

// random is a data set of random images.
func random(shape dataset.Shape, train, test int) *dataset.Dataset {
	r := rand.New(rand.NewPCG(1, 2))
	images := func(n int) dataset.Images {
		m := dataset.Images{Shape: shape, Pixels: make([]byte, n*shape.Size()), Labels: make([]uint8, n)}
		for i := range m.Pixels {
			m.Pixels[i] = byte(r.Uint32())
		}
		for i := range m.Labels {
			m.Labels[i] = uint8(i % 10)
		}
		return m
	}
	return &dataset.Dataset{Name: "random", Classes: make([]string, 10), Train: images(train), Test: images(test)}
}

// shards deals a data set evenly.
func shards(data *dataset.Dataset, members, points int) []dataset.Shard {
	out := make([]dataset.Shard, members)
	for m := range out {
		for i := range points {
			point := (m*points + i) % data.Train.Len()
			out[m].Points = append(out[m].Points, int32(point))
			out[m].Labels = append(out[m].Labels, data.Train.Labels[point])
		}
	}
	return out
}

func (b *bench) check() error {
	type row struct {
		model     string
		shape     model.Shape
		precision program.Precision
		limit     float64
		text      string
		err       error
	}
	var rows []*row
	for _, name := range model.Names() {
		shape := model.Shape{Channels: 1, Height: 28, Width: 28}
		if name == "resnet18" {
			shape = model.Shape{Channels: 3, Height: 32, Width: 32}
		}
		rows = append(rows, &row{model: name, shape: shape, precision: program.Float32, limit: 1e-4},
			&row{model: name, shape: shape, precision: program.BFloat16, limit: 2e-2})
	}
	var group sync.WaitGroup
	for _, r := range rows {
		group.Go(func() { r.text, r.err = b.compare(r.model, r.shape, r.precision, r.limit) })
	}
	group.Wait()
	fmt.Printf("%-10s %-6s %12s %12s %12s %12s %12s\n", "model", "type", "weights", "worst tensor", "update", "loss", "score loss")
	var failed error
	for _, r := range rows {
		fmt.Printf("%-10s %-6s %s\n", r.model, r.precision, r.text)
		if r.err != nil {
			failed = fmt.Errorf("%s in %s: %w", r.model, r.precision, r.err)
		}
	}
	return failed
}

// compare does one step in both engines.
func (b *bench) compare(name string, shape model.Shape, precision program.Precision, limit float64) (string, error) {
	spec, err := model.New(name, shape, 10)
	if err != nil {
		return "", err
	}
	data := random(dataset.Shape(shape), 640, 500)
	parts := shards(data, 1, 64)
	config := b.config
	config.Spec, config.Data, config.Precision, config.Workers = spec, data, precision, 1
	task := federated.Task{
		Round: 1, Name: "member", Contribution: 64, Seed: 1, Local: federated.Local{Epochs: 1, Batch: 64, Rate: 0.1},
		Global: model.Init(spec, rand.New(rand.NewPCG(3, 4))),
	}
	ctx := context.Background()
	reference, err := cpu.New(cpu.Config{Spec: spec, Data: data, Shards: parts, Batch: 64})
	if err != nil {
		return "", err
	}
	want, err := reference.Train(ctx, task)
	if err != nil {
		return "", err
	}
	wantScore, err := reference.Evaluate(ctx, want.Weights)
	if err != nil {
		return "", err
	}
	pool, err := xla.Open(ctx, config, task.Local)
	if err != nil {
		return "", err
	}
	defer pool.Close()
	trainer, err := pool.Trainer(parts)
	if err != nil {
		return "", err
	}
	got, err := trainer.Train(ctx, task)
	if err != nil {
		return "", err
	}
	score, err := trainer.Evaluate(ctx, want.Weights)
	if err != nil {
		return "", err
	}
	whole := distance(got.Weights.Flat, want.Weights.Flat, nil)
	worst := 0.0
	for _, t := range spec.Tensors {
		part := func(w *model.Weights) []float32 { return w.Flat[t.Offset : t.Offset+t.Size] }
		worst = max(worst, distance(part(got.Weights), part(want.Weights), nil))
	}
	text := fmt.Sprintf("%12.2e %12.2e %12.2e %12.2e %12.2e", whole, worst,
		distance(got.Weights.Flat, want.Weights.Flat, task.Global.Flat),
		math.Abs(got.Loss/want.Loss-1), math.Abs(score.Loss/wantScore.Loss-1))
	if !(whole <= limit) {
		return text, fmt.Errorf("the weights differ by %.2e, at most %.0e is allowed", whole, limit)
	}
	return text, nil
}

// distance is |a − b| / |b − from|.
func distance(a, b, from []float32) float64 {
	var up, down float64
	for i := range a {
		origin := float32(0)
		if from != nil {
			origin = from[i]
		}
		up += math.Pow(float64(a[i]-b[i]), 2)
		down += math.Pow(float64(b[i]-origin), 2)
	}
	if up == 0 {
		return 0
	}
	return math.Sqrt(up / down)
}

// open opens a pool for ResNet-18 and its tasks for one round.
func (b *bench) open(ctx context.Context) (*xla.Pool, *xla.Trainer, []federated.Task, error) {
	shape := model.Shape{Channels: 3, Height: 32, Width: 32}
	spec, err := model.New("resnet18", shape, 10)
	if err != nil {
		return nil, nil, nil, err
	}
	data := random(dataset.Shape(shape), 50000, 10000)
	config := b.config
	config.Spec, config.Data, config.Workers = spec, data, b.workers
	local := federated.Local{Epochs: 5, Batch: 64, Rate: 0.01}
	pool, err := xla.Open(ctx, config, local)
	if err != nil {
		return nil, nil, nil, err
	}
	trainer, err := pool.Trainer(shards(data, b.workers, b.points))
	if err != nil {
		pool.Close()
		return nil, nil, nil, err
	}
	global := model.Init(spec, rand.New(rand.NewPCG(3, 4)))
	tasks := make([]federated.Task, b.workers)
	for m := range tasks {
		tasks[m] = federated.Task{Round: 1, Member: m, Contribution: b.points, Seed: 1, Local: local, Global: global}
	}
	return pool, trainer, tasks, nil
}

// round trains all tasks at once.
func round(ctx context.Context, trainer *xla.Trainer, tasks []federated.Task) ([]federated.Update, error) {
	updates, problems := make([]federated.Update, len(tasks)), make([]error, len(tasks))
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() { updates[i], problems[i] = trainer.Train(ctx, task) })
	}
	group.Wait()
	for _, err := range problems {
		if err != nil {
			return nil, err
		}
	}
	return updates, nil
}

func (b *bench) speed() error {
	ctx := context.Background()
	began := time.Now()
	pool, trainer, tasks, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	ready := time.Since(began)
	warm := slices.Clone(tasks)
	for i := range warm {
		warm[i].Contribution = min(640, b.points)
	}
	if _, err := round(ctx, trainer, warm); err != nil {
		return err
	}
	first := time.Since(began)
	fmt.Printf("%d workers, side by side %v, %s\n", b.workers, pool.Side(), pool.Kernel())
	fmt.Printf("start to ready %.1f s, to the end of 50 steps %.1f s\n", ready.Seconds(), first.Seconds())
	steps := 5 * ((b.points + 63) / 64)
	for r := range b.rounds {
		began := time.Now()
		if _, err := round(ctx, trainer, tasks); err != nil {
			return err
		}
		taken := time.Since(began).Seconds()
		fmt.Printf("round %d: %d steps of each member in %.2f s: %.0f images/s in all\n", r+1, steps, taken,
			float64(5*b.points*b.workers)/taken)
	}
	scored := time.Now()
	if _, err := trainer.Evaluate(ctx, tasks[0].Global); err != nil {
		return err
	}
	fmt.Printf("scoring 10,000 images: %.2f s\n", time.Since(scored).Seconds())
	return nil
}

// kill compares a round with one in whose middle a worker is killed, and with a third.
func (b *bench) kill() error {
	ctx := context.Background()
	pool, trainer, tasks, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	began := time.Now()
	want, err := round(ctx, trainer, tasks)
	if err != nil {
		return err
	}
	half := time.AfterFunc(time.Since(began)/2, func() {
		if processes := pool.Processes(); len(processes) > 0 {
			_ = syscall.Kill(processes[0], syscall.SIGKILL)
		}
	})
	defer half.Stop()
	got, err := round(ctx, trainer, tasks)
	if err != nil {
		return err
	}
	for i := range want {
		same := slices.Equal(want[i].Weights.Flat, got[i].Weights.Flat)
		fmt.Printf("member %d: the same weights after a worker was killed: %v (distance %.1e)\n", i+1, same,
			distance(got[i].Weights.Flat, want[i].Weights.Flat, nil))
	}
	return nil
}

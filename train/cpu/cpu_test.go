package cpu_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"grange/dataset"
	"grange/federated"
	"grange/internal/stream"
	"grange/model"
	"grange/train/cpu"
)

// colours is a data set of made-up colour images whose class shows in their brightness.
func colours(n int) *dataset.Dataset {
	random := stream.New(1, "test images")
	shape := dataset.Shape{Channels: 3, Height: 8, Width: 8}
	data := &dataset.Dataset{Classes: []string{"dark", "grey", "bright"}}
	for _, set := range []*dataset.Images{&data.Train, &data.Test} {
		*set = dataset.Images{Shape: shape, Pixels: make([]byte, n*shape.Size()), Labels: make([]uint8, n)}
		for i := range n {
			set.Labels[i] = uint8(i % 3)
			image := set.Image(i)
			for k := range image {
				image[k] = byte(60*(i%3) + random.IntN(100))
			}
		}
	}
	return data
}

func setUp(t testing.TB, name string, workers int) (cpu.Config, federated.Task) {
	t.Helper()
	data := colours(251)
	spec, err := model.New(name, model.Shape(data.Shape()), 3)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := dataset.Split{}.Shards(data, []dataset.Holding{{Data: 100, Contribution: 70}, {Data: 100, Contribution: 100}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	task := federated.Task{
		Round: 1, Member: 1, Name: "b", Contribution: 100, Seed: 9,
		Local:  federated.Local{Epochs: 2, Batch: 16, Rate: 0.05, Momentum: 0.5},
		Global: model.Init(spec, stream.New(1, "weights")),
	}
	return cpu.Config{Spec: spec, Data: data, Shards: shards, Batch: 16, Workers: workers}, task
}

// Tasks done side by side give what they give one after another, for every architecture, batch norm included.
func TestSideBySide(t *testing.T) {
	for _, name := range model.Names() {
		config, task := setUp(t, name, 1)
		alone, err := cpu.New(config)
		if err != nil {
			t.Fatal(err)
		}
		if name == "resnet18" {
			task.Contribution, task.Local.Epochs = 20, 1
		}
		before := slices.Clone(task.Global.Flat)
		want, err := alone.Train(context.Background(), task)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(before, task.Global.Flat) {
			t.Errorf("%s: training changed the global model", name)
		}
		score, err := alone.Evaluate(context.Background(), want.Weights)
		if err != nil {
			t.Fatal(err)
		}
		config.Workers = 3
		together, err := cpu.New(config)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 3 {
			group.Go(func() {
				got, err := together.Train(context.Background(), task)
				if err != nil || !slices.Equal(got.Weights.Flat, want.Weights.Flat) || got.Loss != want.Loss {
					t.Errorf("%s: copy %d differs (%v)", name, i, err)
				}
			})
		}
		group.Wait()
		if got, err := together.Evaluate(context.Background(), want.Weights); err != nil || got != score {
			t.Errorf("%s: score %v by three workers, %v by one (%v)", name, got, score, err)
		}
	}
}

func TestLearnsColours(t *testing.T) {
	config, task := setUp(t, "mlp", 1)
	trainer, err := cpu.New(config)
	if err != nil {
		t.Fatal(err)
	}
	task.Local.Epochs = 10
	update, err := trainer.Train(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	score, err := trainer.Evaluate(context.Background(), update.Weights)
	if err != nil || score.Accuracy < 0.95 {
		t.Errorf("accuracy %v, error %v", score.Accuracy, err)
	}
}

func TestBadTasks(t *testing.T) {
	config, fine := setUp(t, "softmax", 1)
	trainer, err := cpu.New(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*federated.Task){
		"member":       func(task *federated.Task) { task.Member = 2 },
		"negative":     func(task *federated.Task) { task.Member = -1 },
		"contribution": func(task *federated.Task) { task.Contribution = 101 },
		"nothing":      func(task *federated.Task) { task.Contribution = 0 },
		"batch":        func(task *federated.Task) { task.Local.Batch = 17 },
		"epochs":       func(task *federated.Task) { task.Local.Epochs = 0 },
	} {
		task := fine
		change(&task)
		if _, err := trainer.Train(context.Background(), task); !errors.Is(err, cpu.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := trainer.Train(ctx, fine); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
	if _, err := trainer.Evaluate(ctx, fine.Global); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

func TestBadConfigs(t *testing.T) {
	fine, _ := setUp(t, "softmax", 1)
	for name, change := range map[string]func(*cpu.Config){
		"batch":   func(c *cpu.Config) { c.Batch = -1 },
		"workers": func(c *cpu.Config) { c.Workers = -1 },
		"classes": func(c *cpu.Config) { c.Data.Classes = c.Data.Classes[:2] },
	} {
		config, _ := setUp(t, "softmax", 1)
		change(&config)
		if _, err := cpu.New(config); !errors.Is(err, cpu.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	fine.Shards = []dataset.Shard{{Points: []int32{251}, Labels: []uint8{0}}}
	if _, err := cpu.New(fine); !errors.Is(err, dataset.ErrContribution) {
		t.Errorf("point out of range: error %v", err)
	}
	fine.Shards = []dataset.Shard{{Points: []int32{1}, Labels: []uint8{3}}}
	if _, err := cpu.New(fine); !errors.Is(err, dataset.ErrLabel) {
		t.Errorf("label out of range: error %v", err)
	}
	fine.Shards = []dataset.Shard{{Points: []int32{1, 2}, Labels: []uint8{0}}}
	if _, err := cpu.New(fine); !errors.Is(err, dataset.ErrContribution) {
		t.Errorf("labels missing: error %v", err)
	}
}

func ExampleTrainer() {
	data := colours(300)
	spec, _ := model.New("softmax", model.Shape(data.Shape()), len(data.Classes))
	shards, _ := dataset.Split{}.Shards(data, []dataset.Holding{{Data: 200, Contribution: 200}}, 1)
	trainer, err := cpu.New(cpu.Config{Spec: spec, Data: data, Shards: shards})
	if err != nil {
		fmt.Println(err)
		return
	}
	local, _ := federated.Local{Rate: 0.05}.Defaults()
	update, err := trainer.Train(context.Background(), federated.Task{
		Round: 1, Contribution: 200, Local: local, Seed: 1, Global: model.NewWeights(spec),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	score, _ := trainer.Evaluate(context.Background(), update.Weights)
	fmt.Println("accuracy above 0.9:", score.Accuracy > 0.9)
	// Output: accuracy above 0.9: true
}

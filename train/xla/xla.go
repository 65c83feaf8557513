// Package xla trains the members of a federation on an accelerator, through XLA: the same architectures, weights and
// orders of data as package cpu, whose results differ by rounding only.
//
// Members train side by side on one card. Each runs in a process of its own, since one member's kernels are too small to
// fill a card and XLA runs one program at a time; with NVIDIA's multi-process service (MPS) the kernels of several
// processes run at once. A Pool holds these worker processes: the same program as the parent, started again with a hidden
// command, talking over its standard input and output (Serve). A worker that dies is started again and its task given to
// it anew. A task says all that determines its result, so it comes out the same.
//
// Programs are compiled by one worker, saved, and loaded by the others and by later runs: all compute with the same code.
//
// The parent needs neither cgo nor a card. Without them, or without a plugin, Open says what is missing.
package xla

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	"grange/dataset"
	"grange/federated"
	"grange/model"
	"grange/train/xla/program"
)

// Errors that callers may test for.
var (
	// ErrConfig is a configuration that cannot be trained.
	ErrConfig = errors.New("xla: cannot train")
	// ErrNoPlugin is returned when there is no plugin for the accelerator.
	ErrNoPlugin = errors.New("xla: no plugin")
	// ErrUnsupported is returned by a build that cannot use accelerators.
	ErrUnsupported = errors.New("xla: not in this build")
	// ErrMemory is returned when the card has not enough memory left.
	ErrMemory = errors.New("xla: out of memory on the card")
	// ErrWorker is returned when a worker failed in another way, or died again and again.
	ErrWorker = errors.New("xla: worker failed")
)

// Config says how to train. The zero value of each option is its default; Spec and Data have none.
type Config struct {
	// Spec is the architecture to train, and Data holds the images.
	Spec model.Spec
	Data *dataset.Dataset
	// Batch is the largest mini-batch of any task. Default: 64.
	Batch int
	// Steps is how many steps of training one call of the device does. A task is rounded up to whole calls with steps that
	// do nothing, so it should divide the steps of a task: the number of epochs does. Default: 5.
	Steps int
	// Precision is that of activations and products. Default: program.BFloat16.
	Precision program.Precision
	// Workers is how many processes share the card. Default: 5.
	Workers int
	// Plugin is the path of the plugin. Default: what FindPlugin finds.
	Plugin string
	// Cache is a folder for compiled programs. Default: one in the user's cache folder.
	Cache string
	// Command starts a worker; the arguments must lead to Serve. Default: this program with the argument WorkerCommand.
	Command []string
	// Environment is added to that of the workers.
	Environment []string
	// Log is told about workers that are started again. Default: nobody.
	Log *slog.Logger
}

// WorkerCommand is the argument with which this program is started as a worker.
const WorkerCommand = "xla-worker"

// scoreBatch and scoreSteps are how many test images are scored at a time, and how many times in a call. They are fixed,
// so that sums do not depend on the workers.
const (
	scoreBatch = 250
	scoreSteps = 8
)

func (c Config) withDefaults() (Config, error) {
	for _, option := range []struct {
		value    *int
		standard int
	}{{&c.Batch, 64}, {&c.Steps, 5}, {&c.Workers, 5}} {
		if *option.value == 0 {
			*option.value = option.standard
		}
	}
	if c.Precision == "" {
		c.Precision = program.BFloat16
	}
	if c.Batch < 1 || c.Steps < 1 || c.Workers < 1 {
		return c, fmt.Errorf("%w: batches of %d, %d steps a call, %d workers, expected at least 1 of each", ErrConfig, c.Batch, c.Steps, c.Workers)
	}
	if c.Precision != program.BFloat16 && c.Precision != program.Float32 {
		return c, fmt.Errorf("%w: precision %q, expected %s or %s", ErrConfig, c.Precision, program.BFloat16, program.Float32)
	}
	if c.Data == nil {
		return c, fmt.Errorf("%w: no data set", ErrConfig)
	}
	if shape := model.Shape(c.Data.Shape()); c.Spec.Input != shape || c.Spec.Classes != len(c.Data.Classes) {
		return c, fmt.Errorf("%w: model %s takes images of %v in %d classes, the data has %v in %d", ErrConfig, c.Spec.Name,
			c.Spec.Input, c.Spec.Classes, shape, len(c.Data.Classes))
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// Trainer trains members with given shards on a Pool; it is a federated.Trainer and a federated.Evaluator. It may be used
// from several goroutines.
type Trainer struct {
	pool     *Pool
	shards   []dataset.Shard
	reach    federated.Reach
	progress func(images int)
}

// Trainer makes a Trainer for the members that have the given shards. Several may share a Pool.
func (p *Pool) Trainer(shards []dataset.Shard) (*Trainer, error) {
	if err := p.config.Data.CheckShards(shards); err != nil {
		return nil, err
	}
	reach := federated.Reach{Points: dataset.Points(shards), Batch: p.config.Batch, Weights: p.config.Spec.Size()}
	return &Trainer{pool: p, shards: shards, reach: reach, progress: func(int) {}}, nil
}

// Kernel names what computes.
func (t *Trainer) Kernel() string { return t.pool.Kernel() }

// Train trains one member for one round.
func (t *Trainer) Train(ctx context.Context, task federated.Task) (federated.Update, error) {
	if err := t.reach.Check(task); err != nil {
		return federated.Update{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	plan := newPlan(t.pool.config.Batch, t.pool.config.Steps, t.shards[task.Member], task)
	answer, err := t.pool.ask(ctx, message{
		head: header{
			Kind: kindTrain, Momentum: task.Local.Momentum != 0, Proximal: task.Local.Proximal != 0,
			Rates: [program.Rates]float32{
				float32(task.Local.Rate), float32(task.Local.Momentum), float32(task.Local.Decay), float32(task.Local.Proximal),
			},
		},
		parts: [][]byte{bytesOf(task.Global.Flat), bytesOf(plan.points), bytesOf(plan.labels), bytesOf(plan.counts)},
	})
	if err != nil {
		return federated.Update{}, err
	}
	if len(answer.parts) != 2 || len(answer.parts[0]) != 4*len(task.Global.Flat) || len(answer.parts[1]) != 4*len(plan.counts) {
		return federated.Update{}, fmt.Errorf("%w: it answered with a model of another size", ErrWorker)
	}
	t.progress(task.Local.Epochs * task.Contribution)
	weights := task.Global.Clone()
	copy(bytesOf(weights.Flat), answer.parts[0])
	losses := make([]float32, len(plan.counts))
	copy(bytesOf(losses), answer.parts[1])
	var loss float64
	for _, sum := range losses[plan.lastEpoch:plan.steps] {
		loss += float64(sum)
	}
	return federated.Update{Round: task.Round, Member: task.Member, Weights: weights, Loss: loss / float64(task.Contribution)}, nil
}

// plan is the order in which a task goes through its data, step by step.
type plan struct {
	points, labels, counts []int32
	// steps is how many of counts are steps of the task: later ones are empty. lastEpoch is the first of the last epoch.
	steps, lastEpoch int
}

// newPlan lays the steps of a task out. Each has room for batch points; their number is a multiple of block.
func newPlan(batch, block int, shard dataset.Shard, task federated.Task) plan {
	each := (task.Contribution + task.Local.Batch - 1) / task.Local.Batch
	p := plan{steps: task.Local.Epochs * each, lastEpoch: (task.Local.Epochs - 1) * each}
	all := (p.steps + block - 1) / block * block
	p.points, p.labels, p.counts = make([]int32, all*batch), make([]int32, all*batch), make([]int32, all)
	step := 0
	for _, positions := range task.Batches() {
		for i, position := range positions {
			p.points[step*batch+i] = shard.Points[position]
			p.labels[step*batch+i] = int32(shard.Labels[position])
		}
		p.counts[step] = int32(len(positions))
		step++
	}
	return p
}

// Evaluate scores a model on the test set, with all workers. Images are taken in fixed chunks whose sums are added in
// order.
func (t *Trainer) Evaluate(ctx context.Context, weights *model.Weights) (federated.Score, error) {
	labels := t.pool.config.Data.Test.Labels
	const block = scoreBatch * scoreSteps
	calls := (len(labels) + block - 1) / block
	correct, losses, problems := make([]int, calls), make([]float64, calls), make([]error, calls)
	var group sync.WaitGroup
	for c := range calls {
		group.Go(func() {
			correct[c], losses[c], problems[c] = t.score(ctx, weights, c*block, min((c+1)*block, len(labels)))
		})
	}
	group.Wait()
	var score federated.Score
	for c := range calls {
		if problems[c] != nil {
			return federated.Score{}, problems[c]
		}
		score.Accuracy += float64(correct[c])
		score.Loss += losses[c]
	}
	score.Accuracy /= float64(len(labels))
	score.Loss /= float64(len(labels))
	return score, nil
}

// score scores the test images from…to.
func (t *Trainer) score(ctx context.Context, weights *model.Weights, from, to int) (correct int, loss float64, err error) {
	points, labels := make([]int32, scoreBatch*scoreSteps), make([]int32, scoreBatch*scoreSteps)
	counts := make([]int32, scoreSteps)
	for i := range to - from {
		points[i] = int32(from + i)
		labels[i] = int32(t.pool.config.Data.Test.Labels[from+i])
		counts[i/scoreBatch]++
	}
	answer, err := t.pool.ask(ctx, message{
		head:  header{Kind: kindScore},
		parts: [][]byte{bytesOf(weights.Flat), bytesOf(points), bytesOf(labels), bytesOf(counts)},
	})
	if err != nil {
		return 0, 0, err
	}
	if len(answer.parts) != 2 || len(answer.parts[0]) != 4*scoreSteps || len(answer.parts[1]) != 4*scoreSteps {
		return 0, 0, fmt.Errorf("%w: it answered with scores of another size", ErrWorker)
	}
	hits, sums := make([]int32, scoreSteps), make([]float32, scoreSteps)
	copy(bytesOf(hits), answer.parts[0])
	copy(bytesOf(sums), answer.parts[1])
	for i := range hits {
		correct += int(hits[i])
		loss += float64(sums[i])
	}
	return correct, loss, nil
}

// platform says where this program runs, for messages.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

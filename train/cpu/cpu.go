// Package cpu trains the members of a federation on the processors of this machine.
//
// It joins a data set, the members' shards of it, and the networks of package nn: one network per worker, each with its
// own memory, so that members train side by side without sharing anything but the data, which nobody changes.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"grange/dataset"
	"grange/federated"
	"grange/model"
	"grange/nn"
)

// ErrConfig is a configuration that cannot be trained.
var ErrConfig = errors.New("cpu: cannot train")

const (
	// chunk is how many test images are scored at a time. It is fixed, so that sums do not depend on the workers.
	chunk = 250
	// slice is how many steps a member trains before it looks whether another should go on with its worker.
	slice = 8
)

// Config is what a Trainer needs.
type Config struct {
	// Spec is the architecture to train.
	Spec model.Spec
	// Data holds the images, and Shards what each member has of the training set.
	Data   *dataset.Dataset
	Shards []dataset.Shard
	// Batch is the largest mini-batch of any task. Default: 64.
	Batch int
	// Workers is how many networks there are, each of which keeps one processor busy. Default: one per processor. It
	// changes nothing in the result.
	Workers int
	// Kernel is that of nn.Options. Default: the fastest.
	Kernel string
	// Progress, if not nil, is told now and then how many more images have been trained on, by several goroutines at
	// once.
	Progress func(images int)
}

// Trainer trains and scores models; it is a federated.Trainer and a federated.Evaluator. It may be used from as many
// goroutines as there are members: they share the workers.
type Trainer struct {
	config     Config
	reach      federated.Reach
	normalizer *dataset.Normalizer
	kernel     string
	workers    *pool
}

// worker is a network and the memory to feed it. What belongs to a member's training, such as its weights, is not here,
// so that the training can go on with another worker.
type worker struct {
	network *nn.Network
	images  []float32
	labels  []uint8
	points  []int32
}

// New makes a Trainer.
func New(config Config) (*Trainer, error) {
	if config.Batch == 0 {
		config.Batch = 64
	}
	if config.Workers == 0 {
		config.Workers = runtime.GOMAXPROCS(0)
	}
	if config.Progress == nil {
		config.Progress = func(int) {}
	}
	if config.Batch < 1 || config.Workers < 1 {
		return nil, fmt.Errorf("%w: batch %d and %d workers, expected at least 1 of each", ErrConfig, config.Batch, config.Workers)
	}
	if shape := model.Shape(config.Data.Shape()); config.Spec.Input != shape || config.Spec.Classes != len(config.Data.Classes) {
		return nil, fmt.Errorf("%w: model %s takes images of %v in %d classes, the data has %v in %d", ErrConfig, config.Spec.Name,
			config.Spec.Input, config.Spec.Classes, shape, len(config.Data.Classes))
	}
	if err := config.Data.CheckShards(config.Shards); err != nil {
		return nil, err
	}
	t := &Trainer{
		config: config, normalizer: config.Data.Normalizer(),
		reach: federated.Reach{Points: dataset.Points(config.Shards), Batch: config.Batch, Weights: config.Spec.Size()},
	}
	t.workers = newPool(config.Workers, t.newWorker)
	first, err := t.workers.borrow(context.Background(), 0)
	if err != nil {
		return nil, err
	}
	t.kernel = first.network.Kernel()
	t.workers.giveBack(first)
	return t, nil
}

func (t *Trainer) newWorker() (*worker, error) {
	network, err := nn.New(t.config.Spec, t.config.Batch, nn.Options{Kernel: t.config.Kernel})
	if err != nil {
		return nil, err
	}
	return &worker{
		network: network,
		images:  make([]float32, max(t.config.Batch, chunk)*t.config.Spec.Input.Size()),
		labels:  make([]uint8, max(t.config.Batch, chunk)),
		points:  make([]int32, max(t.config.Batch, chunk)),
	}, nil
}

// Kernel names the kernel that the networks use.
func (t *Trainer) Kernel() string { return t.kernel }

// Train trains one member for one round.
func (t *Trainer) Train(ctx context.Context, task federated.Task) (federated.Update, error) {
	if err := t.reach.Check(task); err != nil {
		return federated.Update{}, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	weights := task.Global.Clone()
	sgd := nn.SGD{
		Rate:     float32(task.Local.Rate),
		Momentum: float32(task.Local.Momentum),
		Decay:    float32(task.Local.Decay),
		Proximal: float32(task.Local.Proximal),
	}
	if sgd.Momentum != 0 {
		sgd.Velocity = make([]float32, len(weights.Flat))
	}
	if sgd.Proximal != 0 {
		sgd.Reference = task.Global.Flat
	}
	shard := t.config.Shards[task.Member]
	// Work is counted in images, of which there are this many left.
	left := task.Local.Epochs * task.Contribution
	w, err := t.workers.borrow(ctx, left)
	if err != nil {
		return federated.Update{}, err
	}
	var loss float64
	steps, told, last := 0, left, -1
	for epoch, batch := range task.Batches() {
		if epoch != last {
			loss, last = 0, epoch
		}
		images, labels := t.gather(w, shard, batch)
		loss += float64(len(batch)) * w.network.Step(weights, images, labels, sgd)
		left -= len(batch)
		if steps++; steps%slice != 0 && left > 0 {
			continue
		}
		t.config.Progress(told - left)
		told = left
		if left == 0 {
			break
		}
		if w, err = t.workers.exchange(ctx, w, left); err != nil {
			if w != nil {
				t.workers.giveBack(w)
			}
			return federated.Update{}, err
		}
	}
	t.workers.giveBack(w)
	return federated.Update{
		Round: task.Round, Member: task.Member, Weights: weights, Loss: loss / float64(task.Contribution),
	}, nil
}

// gather puts the images and labels of a batch, given as positions in the shard, together.
func (t *Trainer) gather(w *worker, shard dataset.Shard, batch []int32) ([]float32, []uint8) {
	for i, position := range batch {
		w.points[i] = shard.Points[position]
		w.labels[i] = shard.Labels[position]
	}
	images := w.images[:len(batch)*t.config.Spec.Input.Size()]
	t.normalizer.Batch(images, &t.config.Data.Train, w.points[:len(batch)])
	return images, w.labels[:len(batch)]
}

// Evaluate scores a model on the test set, with all workers. Images are taken in fixed chunks whose sums are added in
// order.
func (t *Trainer) Evaluate(ctx context.Context, weights *model.Weights) (federated.Score, error) {
	test := &t.config.Data.Test
	chunks := (test.Len() + chunk - 1) / chunk
	correct, losses := make([]int, chunks), make([]float64, chunks)
	var group sync.WaitGroup
	for c := range chunks {
		w, err := t.workers.borrow(ctx, chunk)
		if err != nil {
			group.Wait()
			return federated.Score{}, err
		}
		group.Go(func() {
			defer t.workers.giveBack(w)
			correct[c], losses[c] = t.score(w, weights, c*chunk, min((c+1)*chunk, test.Len()))
		})
	}
	group.Wait()
	var score federated.Score
	for c := range chunks {
		score.Accuracy += float64(correct[c])
		score.Loss += losses[c]
	}
	score.Accuracy /= float64(test.Len())
	score.Loss /= float64(test.Len())
	return score, nil
}

// score counts the test images from…to that a model gets right, and adds up their losses.
func (t *Trainer) score(w *worker, weights *model.Weights, from, to int) (correct int, loss float64) {
	points := w.points[:to-from]
	for i := range points {
		points[i] = int32(from + i)
	}
	images := w.images[:(to-from)*t.config.Spec.Input.Size()]
	t.normalizer.Batch(images, &t.config.Data.Test, points)
	correct, loss = w.network.Evaluate(weights, images, t.config.Data.Test.Labels[from:to])
	return correct, loss * float64(to-from)
}

package xla

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"grange/dataset"
	"grange/federated"
	"grange/train/xla/pjrt"
)

// Pool is a number of worker processes that hold one data set and the programs of one architecture on the card. It must
// be closed.
type Pool struct {
	config      Config
	setup       setup
	environment []string
	service     *service
	idle        chan *worker
	workers     []*worker
	version     string // guarded by the first worker's mutex
}

// attempts is how often a task is tried on workers that die.
const attempts = 3

// Open finds the plugin, starts the workers, and has the programs ready, for tasks like the given one.
func Open(ctx context.Context, config Config, local federated.Local) (*Pool, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(config.Command) == 0 {
		if !pjrt.Available {
			return nil, fmt.Errorf("%w: it was built for %s without cgo, which the accelerator needs", ErrUnsupported, platform())
		}
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("%w: cannot find this program: %w", ErrWorker, err)
		}
		config.Command = []string{self, WorkerCommand}
		if config.Plugin, err = FindPlugin(config.Plugin, os.Getenv); err != nil {
			return nil, err
		}
	}
	cache, err := cacheFolder(config.Cache)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		config: config,
		setup: setup{
			Spec: config.Spec, Precision: config.Precision, Batch: config.Batch, Steps: config.Steps,
			TrainImages: config.Data.Train.Len(), TestImages: config.Data.Test.Len(), Plugin: config.Plugin, Cache: cache,
		},
		idle: make(chan *worker, config.Workers),
	}
	for i := range config.Workers {
		w := &worker{pool: p, number: i + 1}
		p.workers = append(p.workers, w)
		p.idle <- w
	}
	if err := p.begin(ctx, message{head: header{
		Kind: kindPrepare, Momentum: local.Momentum != 0, Proximal: local.Proximal != 0,
	}}); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// begin starts the workers: the first one alone, which compiles, then the others, which load what it compiled.
func (p *Pool) begin(ctx context.Context, prepare message) error {
	p.environment = append(libraryEnvironment(p.config.Plugin, os.Getenv), p.config.Environment...)
	if p.config.Workers > 1 {
		p.service = startService(ctx, p.config.Log)
	}
	first := p.workers[0]
	_, err := first.try(ctx, prepare)
	if err != nil && p.service != nil && ctx.Err() == nil && !errors.Is(err, ErrMemory) {
		p.config.Log.Warn("the card does not open under the multi-process service, trying without it", "error", err)
		first.kill()
		p.service.stop()
		p.service = nil
		_, err = first.try(ctx, prepare)
	}
	if err != nil {
		return err
	}
	problems := make([]error, len(p.workers))
	var group sync.WaitGroup
	for i, w := range p.workers[1:] {
		group.Go(func() { _, problems[i+1] = w.try(ctx, prepare) })
	}
	group.Wait()
	return errors.Join(problems...)
}

// Kernel names what computes, for the record.
func (p *Pool) Kernel() string { return "xla:cuda " + string(p.config.Precision) }

// Version is what the plugin says of itself.
func (p *Pool) Version() string {
	p.workers[0].mutex.Lock()
	defer p.workers[0].mutex.Unlock()
	return p.version
}

// Side says whether the workers' kernels can run at once, under the multi-process service.
func (p *Pool) Side() bool { return p.service != nil }

// Workers is how many tasks can run at once.
func (p *Pool) Workers() int { return len(p.workers) }

// Processes are the process numbers of the workers that run.
func (p *Pool) Processes() []int {
	var numbers []int
	for _, w := range p.workers {
		w.mutex.Lock()
		if w.process != nil {
			numbers = append(numbers, w.process.command.Process.Pid)
		}
		w.mutex.Unlock()
	}
	return numbers
}

// Close ends the workers. Tasks that they are at fail.
func (p *Pool) Close() {
	for _, w := range p.workers {
		w.close()
	}
	if p.service != nil {
		p.service.stop()
		p.service = nil
	}
}

// ask gives a task to a worker that is idle and waits for its answer.
func (p *Pool) ask(ctx context.Context, m message) (message, error) {
	if err := ctx.Err(); err != nil {
		return message{}, err
	}
	select {
	case <-ctx.Done():
		return message{}, ctx.Err()
	case w := <-p.idle:
		defer func() { p.idle <- w }()
		return w.try(ctx, m)
	}
}

// interleaved is the images of a set with the channels of each point side by side, as programs take them.
func interleaved(images *dataset.Images) []byte {
	channels, area := images.Shape.Channels, images.Shape.Height*images.Shape.Width
	if channels == 1 {
		return images.Pixels
	}
	out := make([]byte, len(images.Pixels))
	for i := range images.Len() {
		from, to := images.Image(i), out[i*channels*area:(i+1)*channels*area]
		for c := range channels {
			for k, pixel := range from[c*area : (c+1)*area] {
				to[k*channels+c] = pixel
			}
		}
	}
	return out
}

// scale is the factor and the summand of each channel that normalise a byte as dataset.Normalizer does.
func scale(n *dataset.Normalizer) []float32 {
	channels := len(n.Mean)
	out := make([]float32, 2*channels)
	for c := range channels {
		out[c] = float32(1 / (255 * n.Deviation[c]))
		out[channels+c] = float32(-n.Mean[c] / n.Deviation[c])
	}
	return out
}

package xla

import (
	"context"
	"sync"

	"grange/dataset"
	"grange/federated"
	"grange/model"
	"grange/train"
)

// Engine is a train.Engine. It opens a Pool when it is first needed and keeps it for the jobs that follow, as long as
// they are about the same model, data and batches. It must be closed.
type Engine struct {
	// Config is how to train; its Spec, Data, Batch and Steps are set for each job.
	Config Config

	mutex sync.Mutex
	pools map[poolKey]*Pool
}

// poolKey is what the jobs of a pool have in common.
type poolKey struct {
	model        string
	data         *dataset.Dataset
	batch, steps int
}

// mostSteps is the largest number of steps in a call of the device.
const mostSteps = 16

// Trainer makes a trainer on the card.
func (e *Engine) Trainer(ctx context.Context, spec model.Spec, data *dataset.Dataset, shards []dataset.Shard,
	local federated.Local, progress func(int)) (train.Trainer, error) {
	pool, err := e.pool(ctx, spec, data, local)
	if err != nil {
		return nil, err
	}
	t, err := pool.Trainer(shards)
	if err != nil {
		return nil, err
	}
	t.progress = progress
	return t, nil
}

// pool opens a pool or returns the one that is there.
func (e *Engine) pool(ctx context.Context, spec model.Spec, data *dataset.Dataset, local federated.Local) (*Pool, error) {
	config := e.Config
	config.Spec, config.Data, config.Batch, config.Steps = spec, data, local.Batch, local.Epochs
	if config.Steps > mostSteps {
		config.Steps = mostSteps / 2
	}
	key := poolKey{spec.Name, data, config.Batch, config.Steps}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if pool := e.pools[key]; pool != nil {
		return pool, nil
	}
	pool, err := Open(ctx, config, local)
	if err != nil {
		return nil, err
	}
	if e.pools == nil {
		e.pools = map[poolKey]*Pool{}
	}
	e.pools[key] = pool
	return pool, nil
}

// Close ends all workers.
func (e *Engine) Close() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	for _, pool := range e.pools {
		pool.Close()
	}
	e.pools = nil
}

package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrSetAside is returned when cells were damaged and retraining them was not
// asked for.
var ErrSetAside = errors.New("lab: damaged cells were set aside")

// Progress is how far a Runner has come.
type Progress struct {
	Stage     string // what the cells are for
	Total     int    // cells asked for
	Present   int    // of them, those that were there already
	Done      int    // of them, those that are there now
	Training  int    // cells in training
	Elapsed   time.Duration
	Remaining time.Duration // estimate; 0 while nothing is known
	Latest    *Record       // the cell just finished, nil at the start
}

// Observer is told how a Runner comes along. Calls do not overlap.
type Observer interface {
	Observe(Progress)
}

// Runner trains cells, several at once, and keeps each as it is finished.
type Runner struct {
	Store *Store
	Train Trainer

	Workers   int              // cells in training at once; default 1
	Memory    int64            // bytes all cells in training may use together; default no limit
	Footprint func(Cell) int64 // bytes one cell needs; needed only with Memory
	Retrain   bool             // train damaged cells anew instead of stopping
	Observer  Observer         // default none
	Poll      time.Duration    // how often to look whether another process finished a cell; default 200 ms
}

// Run returns the records of all cells by key, training those that are not in
// the store. It trains the longest first. When ctx ends it stops the cells in
// training, which are lost, and returns ctx's error; all finished ones are
// kept. A cell that another process is training is waited for.
func (r *Runner) Run(ctx context.Context, stage string, cells []Cell) (map[string]*Record, error) {
	for _, cell := range cells {
		if err := cell.Check(); err != nil {
			return nil, err
		}
	}
	records, missing, damaged, err := r.Store.Inspect(cells)
	if err != nil {
		return nil, err
	}
	if len(damaged) > 0 && !r.Retrain {
		return nil, fmt.Errorf("%w in %s: %s", ErrSetAside, r.Store.Dir(), strings.Join(damaged, ", "))
	}
	slices.SortStableFunc(missing, func(a, b Cell) int {
		switch {
		case a.Work() > b.Work():
			return -1
		case a.Work() < b.Work():
			return 1
		}
		return 0
	})
	pass := &pass{Runner: r, records: records, queue: missing, began: r.Store.now()}
	pass.progress = Progress{Stage: stage, Total: len(records) + len(missing), Present: len(records), Done: len(records)}
	for _, cell := range missing {
		pass.workLeft += cell.Work()
	}
	return pass.run(ctx)
}

// finished is what a training goroutine reports.
type finished struct {
	cell   Cell
	record *Record
	err    error
	work   bool // the cell was trained here
}

// pass is one call of Run.
type pass struct {
	*Runner
	records  map[string]*Record
	queue    []Cell // not started, longest first
	claimed  []Cell // in training by another process
	inUse    int64  // bytes
	workDone float64
	workLeft float64
	began    time.Time
	progress Progress
}

func (p *pass) run(ctx context.Context) (map[string]*Record, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.observe(nil)
	poll := p.Poll
	if poll == 0 {
		poll = 200 * time.Millisecond
	}
	ticker := time.NewTicker(poll)
	defer ticker.Stop()

	done := make(chan finished)
	var failure error
	for {
		for failure == nil && ctx.Err() == nil && p.startNext(ctx, done) {
		}
		if p.progress.Training == 0 {
			if failure == nil {
				failure = ctx.Err()
			}
			if failure != nil || len(p.queue)+len(p.claimed) == 0 {
				return p.records, failure
			}
		}
		select {
		case f := <-done:
			p.progress.Training--
			p.inUse -= p.footprint(f.cell)
			switch {
			case errors.Is(f.err, errClaimed):
				p.claimed = append(p.claimed, f.cell)
			case f.err != nil:
				if failure == nil {
					failure = f.err
					cancel()
				}
			default:
				p.finish(f)
			}
		case <-ticker.C:
			p.queue = append(p.queue, p.claimed...)
			p.claimed = nil
		case <-contextDone(ctx, p.progress.Training):
		}
	}
}

// contextDone is ctx's end while nothing is in training; training cells report
// the end themselves.
func contextDone(ctx context.Context, training int) <-chan struct{} {
	if training > 0 {
		return nil
	}
	return ctx.Done()
}

// startNext starts the longest cell that fits into memory.
func (p *pass) startNext(ctx context.Context, done chan<- finished) bool {
	if p.progress.Training >= max(1, p.Workers) {
		return false
	}
	for i, cell := range p.queue {
		need := p.footprint(cell)
		// A cell too large for the limit still runs, alone.
		if p.Memory > 0 && p.inUse+need > p.Memory && p.progress.Training > 0 {
			continue
		}
		p.queue = slices.Delete(p.queue, i, i+1)
		p.inUse += need
		p.progress.Training++
		go func() { done <- p.train(ctx, cell) }()
		return true
	}
	return false
}

func (p *pass) footprint(cell Cell) int64 {
	if p.Footprint == nil {
		return 0
	}
	return p.Footprint(cell)
}

// train trains one cell unless another process has done so or is doing so.
func (p *pass) train(ctx context.Context, cell Cell) finished {
	key := cell.Key()
	fail := func(err error) finished { return finished{cell: cell, err: err} }
	claim, err := p.Store.claim(key)
	if err != nil {
		return fail(err)
	}
	defer claim.release()
	record, err := p.Store.Load(key)
	if err == nil {
		return finished{cell: cell, record: record}
	}
	if !errors.Is(err, ErrMissing) {
		return fail(err)
	}
	outcome, err := p.Train(ctx, cell)
	if err != nil {
		return fail(fmt.Errorf("lab: train cell %s: %w", key, err))
	}
	record, err = p.Store.Save(cell, outcome)
	if err != nil {
		return fail(err)
	}
	return finished{cell: cell, record: record, work: true}
}

func (p *pass) finish(f finished) {
	p.records[f.record.Key] = f.record
	p.progress.Done++
	p.workLeft -= f.cell.Work()
	if f.work {
		p.workDone += f.cell.Work()
	}
	p.observe(f.record)
}

func (p *pass) observe(latest *Record) {
	if p.Observer == nil {
		return
	}
	now := p.progress
	now.Latest = latest
	now.Elapsed = p.Store.now().Sub(p.began)
	if p.workDone > 0 {
		now.Remaining = time.Duration(float64(now.Elapsed) * p.workLeft / p.workDone)
	}
	p.Observer.Observe(now)
}

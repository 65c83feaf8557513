package valuation

import (
	"context"
	"sync"
	"sync/atomic"
)

// evaluate fills values[i] with the worth of at(i). Which worker computes what
// does not matter: each result has its own place. After a failure, places not
// computed keep what they held.
func evaluate(ctx context.Context, g *Game, workers int, values []float64, at func(i int) Coalition) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		next   atomic.Int64
		mu     sync.Mutex
		failed = len(values)
		cause  error
		wait   sync.WaitGroup
	)
	work := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(values) {
				return
			}
			v, err := g.value(ctx, at(i))
			if err == nil {
				values[i] = v
				continue
			}
			mu.Lock()
			// What fails because another failed first is not the cause.
			if first := cause == nil; first || (i < failed && ctx.Err() == nil) {
				failed, cause = i, err
			}
			mu.Unlock()
			cancel()
		}
	}
	for range min(workers, len(values)) - 1 {
		wait.Go(work)
	}
	work()
	wait.Wait()
	if cause == nil && int(next.Load()) < len(values) {
		return ctx.Err()
	}
	return cause
}

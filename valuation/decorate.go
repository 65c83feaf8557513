package valuation

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"grange/game"
)

// Cache is a Utility which remembers every worth. See Cached.
type Cache struct {
	utility Utility
	mu      sync.Mutex
	entries map[Coalition]*entry
}

// entry is one worth, or the promise of one: ready is closed when it is there.
type entry struct {
	ready chan struct{}
	value float64
	err   error
}

// Cached remembers the worths of u in memory. A coalition asked for twice at
// once is computed once. Failures are not remembered.
func Cached(u Utility) *Cache {
	return &Cache{utility: u, entries: map[Coalition]*entry{}}
}

// Value returns the worth of c, computing it if it is not known yet.
func (m *Cache) Value(ctx context.Context, c Coalition) (float64, error) {
	m.mu.Lock()
	e, found := m.entries[c]
	if !found {
		e = &entry{ready: make(chan struct{})}
		m.entries[c] = e
	}
	m.mu.Unlock()
	if !found {
		m.fill(ctx, c, e)
		return e.value, e.err
	}
	select {
	case <-e.ready:
		if e.err != nil && ctx.Err() == nil { // another caller's failure, perhaps of its context
			return m.Value(ctx, c)
		}
		return e.value, e.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// fill computes the worth. It forgets the entry on failure, and on a panic, so
// that nobody waits for ever.
func (m *Cache) fill(ctx context.Context, c Coalition, e *entry) {
	e.err = ErrNotFinite
	defer func() {
		if e.err != nil {
			m.mu.Lock()
			delete(m.entries, c)
			m.mu.Unlock()
		}
		close(e.ready)
	}()
	e.value, e.err = m.utility.Value(ctx, c)
}

// Known returns a copy of the worths computed so far.
func (m *Cache) Known() map[Coalition]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := make(map[Coalition]float64, len(m.entries))
	for c, e := range m.entries {
		select {
		case <-e.ready:
			if e.err == nil {
				known[c] = e.value
			}
		default:
		}
	}
	return known
}

// Counter is a Utility which counts. See Counted.
type Counter struct {
	utility        Utility
	calls, failure atomic.Int64
}

// Counted counts the calls of u.
func Counted(u Utility) *Counter { return &Counter{utility: u} }

// Value calls the utility and counts.
func (m *Counter) Value(ctx context.Context, c Coalition) (float64, error) {
	m.calls.Add(1)
	v, err := m.utility.Value(ctx, c)
	if err != nil {
		m.failure.Add(1)
	}
	return v, err
}

// Calls returns the number of calls begun.
func (m *Counter) Calls() int { return int(m.calls.Load()) }

// Failures returns the number of calls which ended with an error.
func (m *Counter) Failures() int { return int(m.failure.Load()) }

// Limited lets at most n calls of u run at once, across everything that uses
// the returned Utility. It panics when n < 1.
func Limited(u Utility, n int) Utility {
	if n < 1 {
		panic("valuation: Limited to less than one call at once")
	}
	slots := make(chan struct{}, n)
	return UtilityFunc(func(ctx context.Context, c Coalition) (float64, error) {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		defer func() { <-slots }()
		return u.Value(ctx, c)
	})
}

// Observed calls done after every worth of u that was computed, one call at a
// time. It is where a progress bar goes.
func Observed(u Utility, done func(c Coalition, value float64)) Utility {
	var mu sync.Mutex
	return UtilityFunc(func(ctx context.Context, c Coalition) (float64, error) {
		v, err := u.Value(ctx, c)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			done(c, v)
		}
		return v, err
	})
}

// Retry decides whether a call which failed is made again. attempt counts the
// calls made so far, from 1. It may wait before it answers.
type Retry func(ctx context.Context, c Coalition, attempt int, err error) bool

// Attempts is the policy of calling up to n times.
func Attempts(n int) Retry {
	return func(_ context.Context, _ Coalition, attempt int, _ error) bool { return attempt < n }
}

// Retried calls u again while the policy says so, unless the context has
// ended. A worth which is not a finite number is a failure as well.
func Retried(u Utility, again Retry) Utility {
	return UtilityFunc(func(ctx context.Context, c Coalition) (float64, error) {
		for attempt := 1; ; attempt++ {
			v, err := u.Value(ctx, c)
			if err == nil && !game.Finite(v) {
				err = fmt.Errorf("%w: %v", ErrNotFinite, v)
			}
			if err == nil {
				return v, nil
			}
			if ctx.Err() != nil || !again(ctx, c, attempt, err) {
				return 0, fmt.Errorf("after %d attempts: %w", attempt, err)
			}
		}
	})
}

// Noisy is one draw of a worth that chance has a part in, such as the accuracy
// of a model trained with the seed of the given repeat, counted from 0. The
// draw must be a function of coalition and repeat.
type Noisy func(ctx context.Context, c Coalition, repeat int) (float64, error)

// Averaging is a Utility which averages draws. See Averaged.
type Averaging struct {
	draw    Noisy
	repeats int
	mu      sync.Mutex
	spread  map[Coalition]float64 // the variance of the mean
}

// Averaged is the mean of the given number of draws. It panics when repeats < 1.
func Averaged(draw Noisy, repeats int) *Averaging {
	if repeats < 1 {
		panic("valuation: Averaged over less than one repeat")
	}
	return &Averaging{draw: draw, repeats: repeats, spread: map[Coalition]float64{}}
}

// Value returns the mean of the draws, made one after another.
func (m *Averaging) Value(ctx context.Context, c Coalition) (float64, error) {
	var sample moments
	for r := range m.repeats {
		v, err := m.draw(ctx, c, r)
		if err == nil && !game.Finite(v) {
			err = fmt.Errorf("%w: %v", ErrNotFinite, v)
		}
		if err != nil {
			return 0, fmt.Errorf("repeat %d of %d: %w", r+1, m.repeats, err)
		}
		sample.add(v)
	}
	if m.repeats > 1 {
		m.mu.Lock()
		m.spread[c] = sample.variance() / float64(m.repeats)
		m.mu.Unlock()
	}
	return sample.mean, nil
}

// StandardError returns the root mean square, over the coalitions valued so
// far, of the standard error that chance leaves in one worth. It is NaN when
// there is only one repeat, or no coalition yet.
func (m *Averaging) StandardError() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := 0.0
	for _, c := range slices.Sorted(maps.Keys(m.spread)) {
		sum += m.spread[c]
	}
	return math.Sqrt(sum / float64(len(m.spread)))
}

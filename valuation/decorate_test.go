package valuation_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"grange/valuation"
)

func size(_ context.Context, c valuation.Coalition) (float64, error) { return float64(c.Size()), nil }

func TestCacheComputesOnce(t *testing.T) {
	counter := valuation.Counted(valuation.UtilityFunc(size))
	cache := valuation.Cached(counter)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for c := range valuation.Coalition(64) {
				if v, err := cache.Value(t.Context(), c); err != nil || v != float64(c.Size()) {
					t.Errorf("%v is worth %v, %v", c, v, err)
				}
			}
		})
	}
	wait.Wait()
	if counter.Calls() != 64 || len(cache.Known()) != 64 {
		t.Errorf("%d calls and %d known, want 64 of each", counter.Calls(), len(cache.Known()))
	}
}

func TestCacheForgetsFailures(t *testing.T) {
	fails := true
	cache := valuation.Cached(valuation.UtilityFunc(func(ctx context.Context, c valuation.Coalition) (float64, error) {
		if fails {
			return 0, errors.New("no")
		}
		return size(ctx, c)
	}))
	if _, err := cache.Value(t.Context(), 3); err == nil {
		t.Error("no error")
	}
	fails = false
	if v, err := cache.Value(t.Context(), 3); err != nil || v != 2 {
		t.Errorf("%v, %v after the failure, want 2", v, err)
	}
}

func TestLimited(t *testing.T) {
	var now, most atomic.Int64
	gate := make(chan struct{})
	u := valuation.Limited(valuation.UtilityFunc(func(ctx context.Context, c valuation.Coalition) (float64, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-gate
		now.Add(-1)
		return size(ctx, c)
	}), 3)
	var wait sync.WaitGroup
	for c := range valuation.Coalition(20) {
		wait.Go(func() {
			if _, err := u.Value(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	for range 20 {
		gate <- struct{}{}
	}
	wait.Wait()
	if most.Load() > 3 {
		t.Errorf("%d calls at once, at most 3 allowed", most.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	full := valuation.Limited(valuation.UtilityFunc(func(ctx context.Context, _ valuation.Coalition) (float64, error) { return 0, ctx.Err() }), 1)
	if _, err := full.Value(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

func TestRetried(t *testing.T) {
	tries := 0
	u := valuation.UtilityFunc(func(context.Context, valuation.Coalition) (float64, error) {
		switch tries++; tries {
		case 1:
			return 0, errors.New("lost the connection")
		case 2:
			return math.Inf(1), nil
		}
		return 5, nil
	})
	if v, err := valuation.Retried(u, valuation.Attempts(3)).Value(t.Context(), 1); err != nil || v != 5 || tries != 3 {
		t.Errorf("%v, %v after %d tries, want 5 after 3", v, err, tries)
	}
	tries = 0
	if _, err := valuation.Retried(u, valuation.Attempts(2)).Value(t.Context(), 1); !errors.Is(err, valuation.ErrNotFinite) || tries != 2 {
		t.Errorf("error %v after %d tries, want ErrNotFinite after 2", err, tries)
	}
}

func TestAveraged(t *testing.T) {
	u := valuation.Averaged(func(_ context.Context, c valuation.Coalition, repeat int) (float64, error) {
		return float64(c.Size()) + []float64{-1, 0, 1}[repeat], nil
	}, 3)
	if v, err := u.Value(t.Context(), 7); err != nil || v != 3 {
		t.Errorf("%v, %v, want the mean 3", v, err)
	}
	if got, want := u.StandardError(), math.Sqrt(1.0/3); math.Abs(got-want) > 1e-15 {
		t.Errorf("standard error %v, want %v", got, want)
	}
	failing := valuation.Averaged(func(_ context.Context, _ valuation.Coalition, repeat int) (float64, error) { return math.NaN(), nil }, 2)
	if _, err := failing.Value(t.Context(), 1); !errors.Is(err, valuation.ErrNotFinite) {
		t.Errorf("error %v, want ErrNotFinite", err)
	}
}

func TestObserved(t *testing.T) {
	seen := map[valuation.Coalition]float64{}
	u := valuation.Observed(valuation.UtilityFunc(size), func(c valuation.Coalition, v float64) { seen[c] = v })
	g := &valuation.Game{Members: 4, Utility: u}
	if _, err := (valuation.Tabulation{Workers: 4}).Table(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 16 || seen[15] != 4 {
		t.Errorf("saw %d coalitions, N as %v", len(seen), seen[15])
	}
}

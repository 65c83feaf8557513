package cpu

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// spend is how long members take that have so much to do each, one millisecond per unit, with so many workers: by a
// clock that stands still while anyone works.
func spend(t *testing.T, workers int, work ...int) time.Duration {
	var taken time.Duration
	synctest.Test(t, func(t *testing.T) {
		made := 0
		p := newPool(workers, func() (*worker, error) { made++; return &worker{}, nil })
		begin := time.Now()
		var group sync.WaitGroup
		for _, left := range work {
			group.Go(func() {
				w, err := p.borrow(t.Context(), left)
				for ; left > 0 && err == nil; w, err = p.exchange(t.Context(), w, left) {
					part := min(slice, left)
					time.Sleep(time.Duration(part) * time.Millisecond)
					left -= part
				}
				if err != nil {
					t.Error(err)
					return
				}
				p.giveBack(w)
			})
		}
		group.Wait()
		taken = time.Since(begin)
		if made > workers {
			t.Errorf("%d workers were made, expected %d at most", made, workers)
		}
	})
	return taken
}

// With work that can be interrupted, the least time is that of the longest member or that of all work spread evenly,
// whichever is more. Slices cost at most one of them.
func TestWorkIsSpreadEvenly(t *testing.T) {
	for _, test := range []struct {
		workers int
		work    []int
	}{
		{1, []int{160, 160, 160, 160, 160}},
		{2, []int{160, 160, 160, 160, 160}},
		{2, []int{160, 160, 160}},
		{2, []int{400, 100, 100, 100}},
		{2, []int{50, 100, 150, 200, 250}},
		{3, []int{160, 160, 160, 160}},
		{4, []int{1000, 10, 10, 10, 10, 10}},
		{8, []int{160, 160}},
	} {
		total, longest := 0, 0
		for _, work := range test.work {
			total += work
			longest = max(longest, work)
		}
		least := time.Duration(max(longest, (total+test.workers-1)/test.workers)) * time.Millisecond
		if got := spend(t, test.workers, test.work...); got < least || got > least+slice*time.Millisecond {
			t.Errorf("%d workers took %v for %v, expected %v to %v",
				test.workers, got, test.work, least, least+slice*time.Millisecond)
		}
	}
}

// Whoever gives up waiting neither keeps a worker nor stays in the queue.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(1, func() (*worker, error) { return &worker{}, nil })
		w, err := p.borrow(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := p.borrow(ctx, 1)
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		p.giveBack(w)
		if len(p.waiting) != 0 || len(p.idle) != 1 {
			t.Errorf("%d waiting, %d idle, expected none and one", len(p.waiting), len(p.idle))
		}
	})
}

func TestWorkerThatCannotBeMade(t *testing.T) {
	broken := errors.New("no memory")
	p := newPool(1, func() (*worker, error) { return nil, broken })
	for range 2 {
		if _, err := p.borrow(t.Context(), 1); !errors.Is(err, broken) {
			t.Errorf("error %v, expected %v", err, broken)
		}
	}
}

package silo

import (
	"context"
	"errors"
	"sync"
	"time"
)

var (
	// errTaken ends a call whose place another call of the same member took.
	errTaken = errors.New("silo: another connection of this member took over")
	// errIdle ends a transfer that stands still.
	errIdle = errors.New("silo: nothing moved for too long")
)

// slot is something that one call at a time can have. A new call takes it from the old one, which may be that of a
// connection that is long dead.
type slot struct {
	mutex sync.Mutex
	evict context.CancelCauseFunc
	left  chan struct{}
}

// enter takes the slot and waits until whoever had it has left. The context it returns ends when somebody else enters.
func (s *slot) enter(ctx context.Context) (context.Context, func(), error) {
	ctx, evict := context.WithCancelCause(ctx)
	left := make(chan struct{})
	s.mutex.Lock()
	evictBefore, leftBefore := s.evict, s.left
	s.evict, s.left = evict, left
	s.mutex.Unlock()
	leave := func() {
		evict(nil)
		close(left)
	}
	if evictBefore == nil {
		return ctx, leave, nil
	}
	evictBefore(errTaken)
	select {
	case <-leftBefore:
		return ctx, leave, nil
	case <-ctx.Done():
		go func() { // whoever comes next must wait for both
			<-leftBefore
			leave()
		}()
		return nil, nil, context.Cause(ctx)
	}
}

// watch does a transfer and gives up on it when it has not been alive for some time, or when another call took its place.
// The transfer itself then ends with the stream.
func watch(ctx context.Context, idle time.Duration, transfer func(alive func()) error) error {
	timer := time.NewTimer(idle)
	defer timer.Stop()
	done := make(chan error, 1)
	beat := make(chan struct{}, 1)
	alive := func() {
		select {
		case beat <- struct{}{}:
		default:
		}
	}
	go func() { done <- transfer(alive) }()
	taken := ctx.Done()
	for {
		select {
		case err := <-done:
			return asStatus(err)
		case <-beat:
			timer.Reset(idle)
		case <-timer.C:
			return asStatus(errIdle)
		case <-taken:
			if errors.Is(context.Cause(ctx), errTaken) {
				return asStatus(errTaken)
			}
			taken = nil // the transfer notices by itself, or is at its end
		}
	}
}

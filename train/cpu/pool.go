package cpu

import (
	"context"
	"sync"
)

// pool lends workers. Who has most left to do is served first, and a member's training gives its worker up now and
// then for the one who has: so all members finish at about the same time, and five of them take two workers 2.5 times
// as long as one takes, not 3 times. (Longest remaining time first is the best order for work that can be interrupted.)
// Which worker does what changes nothing in the result.
type pool struct {
	create func() (*worker, error)

	mutex   sync.Mutex
	idle    []*worker
	unmade  int // workers that may still be made
	waiting []*waiter
}

// waiter is someone who waits for a worker.
type waiter struct {
	left int // how much it has to do
	lent chan *worker
}

func newPool(size int, create func() (*worker, error)) *pool {
	return &pool{create: create, unmade: size}
}

// borrow waits for a worker. The caller says how much it has to do and must give the worker back.
func (p *pool) borrow(ctx context.Context, left int) (*worker, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mutex.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		w := p.idle[last]
		p.idle = p.idle[:last]
		p.mutex.Unlock()
		return w, nil
	}
	if p.unmade > 0 {
		p.unmade--
		p.mutex.Unlock()
		w, err := p.create()
		if err != nil {
			p.mutex.Lock()
			p.unmade++
			p.mutex.Unlock()
		}
		return w, err
	}
	me := &waiter{left: left, lent: make(chan *worker, 1)}
	p.waiting = append(p.waiting, me)
	p.mutex.Unlock()
	select {
	case w := <-me.lent:
		return w, nil
	case <-ctx.Done():
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for i, other := range p.waiting {
		if other == me {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return nil, ctx.Err()
		}
	}
	p.hand(<-me.lent) // lent at the same moment
	return nil, ctx.Err()
}

// giveBack takes a worker back.
func (p *pool) giveBack(w *worker) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.hand(w)
}

// hand gives a worker to who needs it most, or puts it aside. The mutex is held.
func (p *pool) hand(w *worker) {
	first := p.first()
	if first < 0 {
		p.idle = append(p.idle, w)
		return
	}
	p.waiting[first].lent <- w
	p.waiting = append(p.waiting[:first], p.waiting[first+1:]...)
}

// first is the index of who waits with most left to do, the longest waiting among equals; -1 if nobody waits.
func (p *pool) first() int {
	first := -1
	for i, waiter := range p.waiting {
		if first < 0 || waiter.left > p.waiting[first].left {
			first = i
		}
	}
	return first
}

// exchange gives a worker up if someone waits with more left to do, and returns one to go on with.
func (p *pool) exchange(ctx context.Context, w *worker, left int) (*worker, error) {
	p.mutex.Lock()
	first := p.first()
	if first < 0 || p.waiting[first].left <= left {
		p.mutex.Unlock()
		return w, ctx.Err()
	}
	p.hand(w)
	p.mutex.Unlock()
	return p.borrow(ctx, left)
}

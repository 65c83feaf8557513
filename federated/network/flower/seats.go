package flower

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
)

// seats gives places to clients that do not say who they are.
type seats struct {
	mutex sync.Mutex
	list  []*place
}

// place is one member's.
type place struct {
	Seat
	member int
	// leave ends the conversation with the client that has the place; nil if it is free. last is where the last one was.
	leave context.CancelCauseFunc
	last  netip.Addr
	// turn counts who has had it.
	turn int
}

// host is the address part of where a client is.
func host(address net.Addr) netip.Addr {
	if address == nil {
		return netip.Addr{}
	}
	if port, err := netip.ParseAddrPort(address.String()); err == nil {
		return port.Addr().Unmap()
	}
	return netip.Addr{}
}

// errTaken is why a conversation ends whose client came back by another connection.
var errTaken = fmt.Errorf("%w: another connection from the same address has taken this place", ErrReply)

// take gives a client a place: one bound to its address, else one it had before, else the first that is free. A place
// bound to an address is also given if it is not free: a client that lost its connection may be back before we noticed.
func (s *seats) take(address netip.Addr, leave context.CancelCauseFunc) (*place, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, suits := range []func(*place) bool{
		func(p *place) bool { return p.leave == nil && p.Address.IsValid() && p.Address == address },
		func(p *place) bool { return p.Address.IsValid() && p.Address == address && s.bound(address) == 1 },
		func(p *place) bool {
			return p.leave == nil && !p.Address.IsValid() && p.last.IsValid() && p.last == address
		},
		func(p *place) bool { return p.leave == nil && !p.Address.IsValid() },
	} {
		for _, p := range s.list {
			if suits(p) {
				if p.leave != nil {
					p.leave(errTaken)
				}
				p.leave, p.last = leave, address
				p.turn++
				return &place{Seat: p.Seat, member: p.member, turn: p.turn}, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: there is no place free for a client from %v", ErrReply, address)
}

// bound is how many places are bound to an address.
func (s *seats) bound(address netip.Addr) int {
	n := 0
	for _, p := range s.list {
		if p.Address == address {
			n++
		}
	}
	return n
}

// free gives a place back that was taken, unless another client has it by now.
func (s *seats) free(taken *place) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, p := range s.list {
		if p.member == taken.member && p.turn == taken.turn {
			p.leave = nil
		}
	}
}

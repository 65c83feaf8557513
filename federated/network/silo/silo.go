// Package silo connects members that run Grange with their coordinator: gRPC over TLS 1.3, dialled by the silo.
//
// The Server registers on the coordinator's gRPC server, and passes on what silos say to the network.Federation, which
// decides. A Runner is the silo: it asks for the terms, trains its own data, and uploads what it trained. Models and
// updates travel in pieces with checksums, and a transfer that broke off goes on where it stopped. A Runner reconnects by
// itself, for as long as it takes; what it has trained lies in a file until the coordinator has it, so that not even being
// killed makes it train twice.
//
// What a silo sends is in wire.proto, and nothing else: how much it contributes, what software it runs, and trained
// weights. Images and labels never leave it.
package silo

import (
	"errors"
	"time"

	"google.golang.org/grpc/keepalive"
)

// What can go wrong for a silo so that trying again is of no use.
var (
	// ErrTerms are terms that this silo cannot fulfil.
	ErrTerms = errors.New("silo: cannot take part under these terms")
	// ErrRejected is a coordinator that does not want this silo.
	ErrRejected = errors.New("silo: the coordinator says no")
	// ErrElsewhere is another process that took part with the same identity.
	ErrElsewhere = errors.New("silo: another process takes part as this member")
	// ErrRun is a run that failed at the coordinator.
	ErrRun = errors.New("silo: the run failed")
	// ErrUnreachable is a coordinator that does not answer, where nobody tries again.
	ErrUnreachable = errors.New("silo: the coordinator cannot be reached")
	// ErrFolder is a silo's folder that cannot be used.
	ErrFolder = errors.New("silo: cannot use the silo's folder")
)

// Pace is how patient the two ends of a connection are. The zero value is for networks as they are; tests shorten it.
type Pace struct {
	// Ping is how long nothing may be heard of the other end before it is asked whether it is there, and Timeout how
	// long it may take to answer. Defaults: 15 s and 15 s.
	Ping, Timeout time.Duration
	// Idle is how long a transfer may stand still. Default: 60 s.
	Idle time.Duration
	// FirstRetry and LastRetry are the shortest and the longest pause before trying again; the pause doubles, and is
	// chosen at random up to a third more. Defaults: 0.5 s and 30 s.
	FirstRetry, LastRetry time.Duration
}

func (p Pace) withDefaults() Pace {
	for _, option := range []struct {
		value    *time.Duration
		standard time.Duration
	}{
		{&p.Ping, 15 * time.Second},
		{&p.Timeout, 15 * time.Second},
		{&p.Idle, 60 * time.Second},
		{&p.FirstRetry, 500 * time.Millisecond},
		{&p.LastRetry, 30 * time.Second},
	} {
		if *option.value == 0 {
			*option.value = option.standard
		}
	}
	return p
}

// client and server are the keep-alive settings of the two ends. gRPC allows a client no pings of less than 10 s apart.
func (p Pace) client() keepalive.ClientParameters {
	return keepalive.ClientParameters{Time: p.Ping, Timeout: p.Timeout, PermitWithoutStream: true}
}

func (p Pace) server() (keepalive.ServerParameters, keepalive.EnforcementPolicy) {
	return keepalive.ServerParameters{Time: p.Ping, Timeout: p.Timeout},
		keepalive.EnforcementPolicy{MinTime: min(p.Ping/2, 5*time.Second), PermitWithoutStream: true}
}

// Sizes of gRPC's buffers, found by measurement with bench/network.
const (
	// window is how much a sender may send before the receiver has read it.
	window = 1 << 20
	// buffer is how much is read or written at once.
	buffer = 128 << 10
)

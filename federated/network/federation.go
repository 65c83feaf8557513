package network

import (
	"context"

	"grange/federated"
	"grange/federated/network/objects"
)

// Federation runs one training with members that are elsewhere. It is safe for concurrent use.
type Federation struct {
	config Config
}

// Open takes up the run that the record holds, or begins it.
func Open(ctx context.Context, config Config) (*Federation, error) { return nil, nil }

// Run waits for the members, runs the rounds and returns the result. It is called once; when it returns, Next answers Done.
func (f *Federation) Run(ctx context.Context) (*federated.Result, error) { return nil, nil }

// Config is what the federation was opened with, defaults filled in.
func (f *Federation) Config() Config { return f.config }

// Objects is where models and updates are.
func (f *Federation) Objects() *objects.Store { return f.config.Objects }

// Member is the index of the member with this name, or ErrUnknown.
func (f *Federation) Member(name string) (int, error) { return 0, nil }

// Declare says that a member will take part, and with how much. Saying the same again, as after a lost connection, is fine;
// another contribution once the first round has begun is not.
func (f *Federation) Declare(ctx context.Context, d Declaration) error { return nil }

// Next waits until there is something for a member to do, or the run is over. A member that asks again before it has
// delivered gets the same task again.
func (f *Federation) Next(ctx context.Context, member int) (Assignment, error) {
	return Assignment{}, nil
}

// Deliver hands in an update whose file is in Objects. Once it returns nil the update is recorded and counts; delivering
// the same again is fine. An update that is refused is recorded with the reason, and the member is out for the round.
func (f *Federation) Deliver(ctx context.Context, d Delivery) error { return nil }

// Refuse puts a member out for this round because what it sent is no update at all; the error is for the member.
func (f *Federation) Refuse(ctx context.Context, round, member int, reason error) error { return nil }

// Fail says that a member cannot train in this round.
func (f *Federation) Fail(ctx context.Context, round, member int, reason string) error { return nil }

// Connect tells that a member is there; the returned function that it has gone.
func (f *Federation) Connect(member int) (disconnect func()) { return func() {} }

// Status is how things stand.
func (f *Federation) Status() Status { return Status{} }

package flower

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"grange/federated/network"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/objects"
)

// joins serves clients of start_client.
type joins struct {
	protocol.UnimplementedFlowerServiceServer
	*Server
	seats seats
	// sizes are how many values each array has.
	sizes []int
}

func newJoins(s *Server) (*joins, error) {
	j := &joins{Server: s}
	taken := map[int]bool{}
	for _, seat := range s.options.Legacy {
		member, err := s.federation.Member(seat.Member)
		if err != nil {
			return nil, fmt.Errorf("%w: a place for a Flower client: %w", ErrOptions, err)
		}
		if taken[member] {
			return nil, fmt.Errorf("%w: two places for the Flower client of %s", ErrOptions, seat.Member)
		}
		taken[member] = true
		j.seats.list = append(j.seats.list, &place{Seat: seat, member: member})
	}
	for i := range s.layout.Arrays {
		_, size := s.layout.Offset(i)
		j.sizes = append(j.sizes, size)
	}
	return j, nil
}

// Join has a conversation with one client, until the run is over or the connection breaks.
func (j *joins) Join(stream grpc.BidiStreamingServer[protocol.ClientMessage, protocol.ServerMessage]) error {
	ctx, leave := context.WithCancelCause(stream.Context())
	defer leave(nil)
	from, _ := peer.FromContext(ctx)
	if from == nil {
		from = &peer.Peer{}
	}
	seat, err := j.seats.take(host(from.Addr), leave)
	if err != nil {
		j.options.Log.Warn("A Flower client found no place", "address", host(from.Addr))
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	defer j.seats.free(seat)
	j.options.Log.Info("A Flower client has come", "member", seat.Member, "address", host(from.Addr))
	if err := j.federation.Declare(ctx, j.declaration(seat.member, "flower", "")); err != nil {
		return unavailable(err)
	}
	defer j.federation.Connect(seat.member)()
	err = j.converse(ctx, stream, seat)
	if err != nil {
		j.options.Log.Info("A Flower client has gone", "member", seat.Member, "reason", err.Error())
		return unavailable(err)
	}
	j.options.Log.Info("A Flower client is done", "member", seat.Member)
	return nil
}

// unavailable is the error that a client is told. Clients take it for a reason to try again.
func unavailable(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unavailable, err.Error())
}

// converse asks a client for one update after another.
func (j *joins) converse(ctx context.Context, stream grpc.ServerStream, seat *place) error {
	for {
		next, err := j.federation.Next(ctx, seat.member)
		if err != nil {
			return err
		}
		if next.Done {
			if err := stream.SendMsg(endInstruction()); err != nil {
				return err
			}
			// The client says goodbye, or just goes.
			var last frame
			if stream.RecvMsg(&last) == nil {
				last.free()
			}
			return nil
		}
		instruction := fitInstruction(j.models.get(next.Model, next.Task.Global), next.Task)
		if err := stream.SendMsg(instruction); err != nil {
			return err
		}
		var reply frame
		if err := j.receive(ctx, stream, &reply); err != nil {
			return err
		}
		leaving, err := j.take(ctx, next, seat, reply.data)
		reply.free()
		if err != nil || leaving {
			return err
		}
	}
}

// receive waits for an answer, unless the place is taken by somebody else.
func (j *joins) receive(ctx context.Context, stream grpc.ServerStream, reply *frame) error {
	received := make(chan error, 1)
	go func() { received <- stream.RecvMsg(reply) }()
	select {
	case err := <-received:
		return err
	case <-ctx.Done():
		// Returning from Join ends the stream, and with it the goroutine.
		return context.Cause(ctx)
	}
}

// pause is how long to wait before writing again to a disk that is full.
const pause = time.Second

// take makes an answer an update. What is wrong with it is recorded, and the client is asked again in the next round.
func (j *joins) take(ctx context.Context, next network.Assignment, seat *place, data mem.BufferSlice) (leaving bool, err error) {
	round := next.Task.Round
	a, err := parseAnswer(data, len(j.layout.Arrays))
	switch {
	case err != nil:
		return false, j.refuse(ctx, round, seat.member, err)
	case a.leaving:
		return true, nil
	case a.talk.GetStatus().GetCode() != protocol.Code_OK:
		reason := fmt.Sprintf("the client says %s: %.300s", a.talk.GetStatus().GetCode(), a.talk.GetStatus().GetMessage())
		return false, settled(j.federation.Fail(ctx, round, seat.member, reason))
	case len(a.arrays) != len(j.layout.Arrays):
		err := fmt.Errorf("%w: %d arrays, expected %d", ErrReply, len(a.arrays), len(j.layout.Arrays))
		return false, j.refuse(ctx, round, seat.member, err)
	}
	metrics := map[string]any{}
	for name, value := range a.talk.GetMetrics() {
		switch v := value.GetScalar().(type) {
		case *protocol.Scalar_Double:
			metrics[name] = v.Double
		case *protocol.Scalar_Sint64:
			metrics[name] = v.Sint64
		}
	}
	for {
		err := j.deliver(ctx, round, seat.member, a.talk.GetNumExamples(), loss(metrics), func() (objects.Digest, error) {
			files, done := arrayFiles(data, a, j.sizes)
			defer done()
			return j.models.store(j.federation.Objects(), files)
		})
		if err == nil || network.FaultOf(err) != network.Ours {
			return false, err
		}
		j.options.Log.Error("An update cannot be written", "member", seat.Member, "round", round, "error", err.Error())
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// refuse puts a member out for what it sent, unless the reason is trouble of our own.
func (s *Server) refuse(ctx context.Context, round, member int, reason error) error {
	if network.FaultOf(reason) == network.Ours {
		return reason
	}
	return settled(s.federation.Refuse(ctx, round, member, reason))
}

// deliver stores an update that is wanted and hands it in. An update that is refused is settled; what remains is trouble
// of our own, such as a disk that is full.
func (s *Server) deliver(ctx context.Context, round, member int, examples int64, loss float64,
	store func() (objects.Digest, error)) error {
	if err := s.federation.Wanted(round, member); err != nil {
		return settled(err)
	}
	digest, err := store()
	if err != nil {
		return s.refuse(ctx, round, member, err)
	}
	return settled(s.federation.Deliver(ctx, network.Delivery{
		Round: round, Member: member, Update: digest, Examples: count(examples), Loss: loss,
	}))
}

// count is a number of examples as an int; one that is out of all bounds stays so.
func count(examples int64) int {
	return int(min(max(examples, 0), 1<<31-1))
}

// settled drops errors after which there is nothing left to do for a round.
func settled(err error) error {
	if network.Settled(err) {
		return nil
	}
	return err
}

// loss is the training loss among a client's metrics, which may call it what it likes.
func loss(metrics map[string]any) float64 {
	for _, name := range []string{"train_loss", "train-loss", "loss", "training_loss"} {
		if value, ok := metrics[name].(float64); ok {
			return value
		}
	}
	return 0
}

package silo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"grange/federated"
	"grange/federated/network/objects"
	"grange/federated/network/wire"
)

// Runner takes part in one run.
type Runner struct {
	// Address is the coordinator's HOST:PORT, and TLS how to know it and what certificate to show it.
	Address string
	TLS     *tls.Config
	// Folder is where an update lies until the coordinator has it.
	Folder string
	// Prepare makes what trains under some terms. An error that wraps one of this package's, or any other, ends the run.
	Prepare func(ctx context.Context, terms Terms) (*Prepared, error)
	// Software is what this silo runs, for the coordinator's record.
	Software string
	// Pace says how patient to be.
	Pace Pace
	// Log is told what happens. Default: nobody.
	Log *slog.Logger
	// Observe, if not nil, is told what the silo does, one step at a time.
	Observe func(Step)

	outbox   outbox
	terms    Terms
	prepared *Prepared
	incoming *incoming
	// moved is set when something was achieved since the last pause.
	moved bool
}

// Prepared is a silo that is ready to train.
type Prepared struct {
	Trainer federated.Trainer
	// Contribution is on how many data points it trains, and Data how many it has.
	Contribution, Data int
	// Kernel is what it computes with, for the coordinator's record.
	Kernel string
}

// Action is what a silo does.
type Action string

// The actions.
const (
	Joined      Action = "joined"      // and knows the terms
	Waiting     Action = "waiting"     // for the next round
	Downloading Action = "downloading" // the model
	Training    Action = "training"
	Uploading   Action = "uploading"
	Accepted    Action = "accepted" // the update counts
	Refused     Action = "refused"  // the update does not count
	Stale       Action = "stale"    // the round went on without it
	Failed      Action = "failed"   // training did
	Offline     Action = "offline"  // and will try again
	Finished    Action = "finished" // the run is over
)

// Step is one thing that a silo did or does.
type Step struct {
	Action Action
	// Terms are those of the run, once they are known.
	Terms *Terms
	// Round is the round it is about, 0 for none.
	Round int
	// Reason says why, for refusals and lost connections, and Pause how long the next attempt will wait.
	Reason string
	Pause  time.Duration
	// Loss is the training loss of an update.
	Loss float64
}

// errOver ends a session with the run.
var errOver = errors.New("silo: the run is over")

// Run takes part until the run is over, however often the connection breaks. It returns nil when the run ended well.
func (r *Runner) Run(ctx context.Context) error {
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	r.Pace = r.Pace.withDefaults()
	var err error
	if r.outbox, err = openOutbox(r.Folder); err != nil {
		return err
	}
	connection, err := dial(r.Address, r.TLS, r.Pace)
	if err != nil {
		return err
	}
	defer connection.Close()
	for pause := r.Pace.FirstRetry; ; pause = min(2*pause, r.Pace.LastRetry) {
		r.moved = false
		err := r.session(ctx, wire.NewFederationClient(connection))
		switch {
		case errors.Is(err, errOver):
			r.tell(Step{Action: Finished})
			return r.outbox.clear()
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case final(err):
			return err
		}
		if r.moved {
			pause = r.Pace.FirstRetry
		}
		wait := pause + time.Duration(rand.Int64N(int64(pause)/3+1))
		r.tell(Step{Action: Offline, Reason: words(err), Pause: wait})
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
		connection.ResetConnectBackoff()
	}
}

// words is an error without gRPC's decoration.
func words(err error) string {
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

// tell reports a step.
func (r *Runner) tell(step Step) {
	if r.prepared != nil {
		step.Terms = &r.terms
	}
	level, fields := slog.LevelInfo, []any{}
	if step.Round > 0 {
		fields = append(fields, "round", step.Round)
	}
	if step.Reason != "" {
		level, fields = slog.LevelWarn, append(fields, "reason", step.Reason)
	}
	if step.Pause > 0 {
		fields = append(fields, "again_in", step.Pause.Round(time.Millisecond))
	}
	r.Log.Log(context.Background(), level, string(step.Action), fields...)
	if r.Observe != nil {
		r.Observe(step)
	}
}

// session is everything from joining to the loss of the connection.
func (r *Runner) session(ctx context.Context, client wire.FederationClient) error {
	if err := r.join(ctx, client); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := client.Work(ctx)
	if err != nil {
		return refused(err)
	}
	for {
		task, err := r.next(stream)
		if err != nil {
			return err
		}
		r.moved = true
		if err := r.task(ctx, client, task); err != nil {
			return err
		}
	}
}

// join learns the terms, makes ready, and declares.
func (r *Runner) join(ctx context.Context, client wire.FederationClient) error {
	brief, cancel := context.WithTimeout(ctx, r.Pace.Idle)
	message, err := client.Join(brief, &wire.JoinRequest{Software: cut(r.Software)})
	cancel()
	if err != nil {
		return refused(err)
	}
	terms, err := readTerms(message)
	if err != nil {
		return err
	}
	if r.prepared == nil || terms.Run != r.terms.Run || terms.Member != r.terms.Member {
		prepared, err := r.Prepare(ctx, terms)
		if err != nil && !errors.Is(err, ErrTerms) {
			err = fmt.Errorf("%w: %w", ErrTerms, err)
		}
		if err != nil {
			return err
		}
		if r.incoming, err = newIncoming(terms.Spec); err != nil {
			return err
		}
		r.prepared, r.terms = prepared, terms
		r.tell(Step{Action: Joined})
	}
	brief, cancel = context.WithTimeout(ctx, r.Pace.Idle)
	defer cancel()
	_, err = client.Declare(brief, &wire.Declaration{
		Run: terms.Run, Contribution: uint64(r.prepared.Contribution), Data: uint64(r.prepared.Data),
		Software: cut(r.Software), Kernel: cut(r.prepared.Kernel),
	})
	return refused(err)
}

// next waits for the next task.
func (r *Runner) next(stream grpc.BidiStreamingClient[wire.Ready, wire.Assignment]) (*wire.Task, error) {
	r.tell(Step{Action: Waiting})
	if err := stream.Send(&wire.Ready{Run: r.terms.Run}); err != nil {
		_, err = stream.Recv() // which knows the reason
		return nil, refused(err)
	}
	assignment, err := stream.Recv()
	if err != nil {
		return nil, refused(err)
	}
	if done := assignment.GetDone(); done != nil {
		if done.GetFailure() != "" {
			return nil, fmt.Errorf("%w: %s", ErrRun, cut(done.GetFailure()))
		}
		return nil, errOver
	}
	task := assignment.GetTask()
	if round := int64(task.GetRound()); round < 1 || round > int64(r.terms.Rounds) {
		return nil, fmt.Errorf("%w: a task of round %d of %d", ErrTerms, round, r.terms.Rounds)
	}
	// The coordinator may ask for less than was declared, but not for more.
	if n := task.GetContribution(); n < 1 || n > uint64(r.prepared.Contribution) {
		return nil, fmt.Errorf("%w: it asks to train on %d data points, declared were %d", ErrTerms, n, r.prepared.Contribution)
	}
	return task, nil
}

// task trains and uploads, and does neither again if it was done before.
func (r *Runner) task(ctx context.Context, client wire.FederationClient, task *wire.Task) error {
	round := int(task.GetRound())
	from, err := readDigest(task.GetModel())
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTerms, err)
	}
	u, err := r.outbox.get(r.terms.Run, round, from)
	if err != nil {
		return err
	}
	if u == nil {
		if u, err = r.train(ctx, client, round, from, int(task.GetContribution())); err != nil || u == nil {
			return err
		}
	}
	r.tell(Step{Action: Uploading, Round: round})
	verdict, err := upload(ctx, client, u, r.Pace.Idle, func(offset uint64, alive func(), pass func(*wire.Piece) error) error {
		return r.outbox.send(u, offset, alive, pass)
	})
	if status.Code(err) == codes.DataLoss && r.outbox.check(u) != nil {
		return errors.Join(err, r.outbox.clear()) // our own file is damaged: train again
	}
	if err != nil {
		return err
	}
	step := Step{Round: round, Reason: verdict.GetReason(), Loss: math.Float64frombits(u.Loss)}
	switch verdict.GetOutcome() {
	case wire.Verdict_ACCEPTED:
		step.Action = Accepted
	case wire.Verdict_STALE:
		step.Action = Stale
	default:
		step.Action = Refused
	}
	r.tell(step)
	return r.outbox.clear()
}

// train trains a model and keeps the update. It returns nil and no error if training failed and the coordinator knows.
func (r *Runner) train(ctx context.Context, client wire.FederationClient, round int, from objects.Digest, contribution int) (*update, error) {
	r.incoming.begin(from)
	if !r.incoming.whole() {
		r.tell(Step{Action: Downloading, Round: round})
		if err := download(ctx, client, r.incoming, r.Pace.Idle); err != nil {
			return nil, err
		}
	}
	r.tell(Step{Action: Training, Round: round})
	trained, err := r.prepared.Trainer.Train(ctx, federated.Task{
		Round: round, Member: r.terms.Member, Name: r.terms.Name, Contribution: contribution, Local: r.terms.Local,
		Seed: r.terms.Seed, Global: r.incoming.weights,
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		r.tell(Step{Action: Failed, Round: round, Reason: err.Error()})
		return nil, r.fail(ctx, client, round)
	}
	examples := trained.Examples
	if examples == 0 {
		examples = contribution
	}
	return r.outbox.put(update{
		Run: r.terms.Run, Round: round, Model: from, Examples: examples, Loss: math.Float64bits(trained.Loss),
	}, newContent(r.incoming.header, trained.Weights))
}

// fail tells the coordinator that training failed. The reason stays here, since it may name files.
func (r *Runner) fail(ctx context.Context, client wire.FederationClient, round int) error {
	ctx, cancel := context.WithTimeout(ctx, r.Pace.Idle)
	defer cancel()
	_, err := client.Fail(ctx, &wire.FailRequest{
		Run: r.terms.Run, Round: uint32(round), Reason: "training failed; the silo's own log says why",
	})
	return refused(err)
}

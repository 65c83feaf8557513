package network

import (
	"context"
	"errors"
	"fmt"
	"time"

	"grange/federated"
	"grange/federated/network/objects"
)

// errLate is why a round went on without a member that was not heard of.
var errLate = errors.New("nothing came before the deadline")

// Run waits for the members, runs the rounds and returns the result. It is called once; when it returns, Next answers
// Done, unless it was cancelled or met an error of Ours: then the run can be taken up again.
func (f *Federation) Run(ctx context.Context) (*federated.Result, error) {
	err := f.run(ctx)
	if synced := f.synced(); err == nil {
		err = synced
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err != nil && (ctx.Err() != nil || FaultOf(err) == Ours) {
		return nil, err // nothing is wrong with the run itself
	}
	if recorded := f.end(context.WithoutCancel(ctx), err); recorded != nil {
		return nil, fmt.Errorf("%w: the end of the run: %w", ErrRecord, recorded)
	}
	f.broadcast()
	if err != nil {
		return nil, err
	}
	last := f.finished[len(f.finished)-1]
	result := &federated.Result{
		Accuracy: last.Accuracy, Loss: last.Loss, Seed: f.config.Seed, Kernel: f.config.Kernel, Warnings: last.Warnings,
		Weights: f.global,
	}
	for _, round := range f.finished {
		result.Rounds = append(result.Rounds, round.Round)
	}
	return result, nil
}

// end records the end of the run, unless it has been recorded before. The mutex is held.
func (f *Federation) end(ctx context.Context, failure error) error {
	if f.ended {
		f.over = true
		f.observe(Note{Time: f.config.Now(), Kind: RunEnded, Member: -1, Text: "well, before this start"})
		return nil
	}
	if err := f.config.Record.End(ctx, failure); err != nil && failure == nil {
		return err
	}
	f.over, f.failure = true, failure
	text := "well"
	if failure != nil {
		text = failure.Error()
	}
	f.note(RunEnded, 0, -1, text)
	return nil
}

func (f *Federation) run(ctx context.Context) error {
	if len(f.finished) == 0 && len(f.resumed) == 0 {
		if err := f.gather(ctx); err != nil {
			return err
		}
	}
	for len(f.finished) < f.config.Rounds {
		if err := f.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// gather waits until everybody has declared a contribution, or at the deadline enough have.
func (f *Federation) gather(ctx context.Context) error {
	return f.wait(ctx, func(late bool) bool {
		declared := 0
		for _, d := range f.declarations {
			if d != nil {
				declared++
			}
		}
		return declared == len(f.declarations) || late && declared >= f.config.Policy.Minimum
	})
}

// wait waits until a condition holds, which is told whether the deadline has passed. It is asked with the mutex held.
func (f *Federation) wait(ctx context.Context, holds func(late bool) bool) error {
	var deadline <-chan time.Time
	if f.config.Policy.Deadline > 0 {
		timer := time.NewTimer(f.config.Policy.Deadline)
		defer timer.Stop()
		deadline = timer.C
	}
	late := false
	for {
		f.mutex.Lock()
		changed, fine := f.changed, holds(late)
		f.mutex.Unlock()
		if fine {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-deadline:
			late = true
		}
	}
}

// round runs one round.
func (f *Federation) round(ctx context.Context) error {
	round, err := f.begin()
	if err != nil {
		return err
	}
	defer func() { // a round that did not end well is not under way any more
		f.mutex.Lock()
		f.open = nil
		f.mutex.Unlock()
	}()
	err = f.wait(ctx, func(late bool) bool {
		pending := false
		for member := range round.tasks {
			pending = pending || round.pending(member)
		}
		return !pending || late && round.heard() >= f.config.Policy.Minimum
	})
	if err != nil {
		return err
	}
	f.close(round)
	return f.finish(ctx, round)
}

// begin opens a round.
func (f *Federation) begin() (*openRound, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	n := len(f.config.Members)
	members := make([]federated.Member, n)
	for i, name := range f.config.Members {
		members[i].Name = name
		if d := f.declarations[i]; d != nil {
			members[i].Contribution = d.Contribution
		}
	}
	coordinator, err := federated.NewCoordinator(f.config.Settings, members, f.global, len(f.finished))
	if err != nil {
		return nil, err
	}
	tasks, err := coordinator.Begin()
	if err != nil {
		return nil, err
	}
	round := &openRound{coordinator, make([]*federated.Task, n), make([]*Delivery, n), make([]error, n)}
	for _, task := range tasks {
		task.Local, task.Seed = f.config.Local, f.config.Seed
		round.tasks[task.Member] = &task
	}
	f.open = round
	f.note(RoundBegun, len(f.finished)+1, -1, "")
	for _, d := range f.resumed {
		// An update whose file did not survive is asked for again.
		if f.known(d.Member) == nil && round.pending(d.Member) && f.config.Objects.Check(d.Update) == nil {
			f.accept(d)
		}
	}
	f.resumed = nil
	f.broadcast()
	return round, nil
}

// close ends the time in which updates are taken.
func (f *Federation) close(round *openRound) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.open, f.closed = nil, round.deliveries
	for member := range round.tasks {
		if round.pending(member) {
			round.out[member] = errLate
			f.note(Late, len(f.finished)+1, member, errLate.Error())
		}
	}
	f.last = round.deliveries
}

// finish averages the updates of a round, scores the result and records it. Only Run changes what it reads.
func (f *Federation) finish(ctx context.Context, round *openRound) error {
	aggregate, err := f.aggregate(round)
	if err != nil {
		return err
	}
	score, err := f.config.Evaluator.Evaluate(ctx, aggregate.After)
	if err != nil {
		return fmt.Errorf("evaluating round %d: %w", aggregate.Round, err)
	}
	if err := f.synced(); err != nil {
		return fmt.Errorf("the model after round %d: %w", aggregate.Round-1, err)
	}
	f.files.Lock() // until the model is known for one
	defer f.files.Unlock()
	digest, err := f.config.Objects.Put(f.writer(aggregate.After))
	if err != nil {
		return fmt.Errorf("the model after round %d: %w", aggregate.Round, err)
	}
	finished := Finished{Model: digest, Round: federated.Round{
		Round: aggregate.Round, Accuracy: score.Accuracy, Loss: score.Loss, Training: aggregate.TrainingLoss(), Absent: aggregate.Absent,
	}}
	if len(f.finished) > 0 {
		finished.Warnings = append(finished.Warnings, f.finished[len(f.finished)-1].Warnings...)
	} else {
		finished.Warnings = append(finished.Warnings, f.config.Warnings...)
	}
	for _, absence := range aggregate.Absent {
		finished.Warnings = append(finished.Warnings, absence.Warning(aggregate.Round))
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.config.Record.Finish(ctx, finished); err != nil {
		return fmt.Errorf("%w: round %d: %w", ErrRecord, aggregate.Round, err)
	}
	f.finished, f.global, f.model = append(f.finished, finished), aggregate.After, digest
	f.sync(digest)
	f.note(RoundEnded, aggregate.Round, -1, fmt.Sprintf("accuracy %.4f, %d of %d members", score.Accuracy,
		len(aggregate.Updates), len(aggregate.Updates)+len(aggregate.Absent)))
	return f.tidy(round)
}

// sync begins to put a model on the disk, which the next round need not wait for: a killed process loses nothing that it
// has written, only a power failure does, and then the round is done again.
func (f *Federation) sync(digest objects.Digest) {
	f.syncing = make(chan error, 1)
	go func(done chan<- error) { done <- f.config.Objects.Sync(digest) }(f.syncing)
}

// synced waits until the last model is on the disk.
func (f *Federation) synced() error {
	if f.syncing == nil {
		return nil
	}
	err := <-f.syncing
	f.syncing = nil
	return err
}

// aggregate averages the updates, in member order, reading them from their files.
func (f *Federation) aggregate(round *openRound) (*federated.Aggregate, error) {
	number := len(f.finished) + 1
	for member, d := range round.deliveries {
		if d == nil {
			if round.tasks[member] != nil {
				if err := round.coordinator.Fail(number, member, round.out[member]); err != nil {
					return nil, err
				}
			}
			continue
		}
		file, err := f.stored(d.Update)
		if err != nil { // it was in order when it was accepted; the next start asks for it again if it is not
			return nil, fmt.Errorf("%w: the update of %s in round %d: %w", ErrRecord, f.config.Members[member], number, err)
		}
		defer file.Close()
		update := federated.Update{Round: number, Member: member, Stored: file, Examples: d.Examples, Loss: d.Loss}
		if err := round.coordinator.Receive(update); err != nil {
			return nil, err
		}
	}
	aggregate, err := round.coordinator.Aggregate()
	if err != nil || f.config.Keep == nil {
		return aggregate, err
	}
	if err := f.config.Keep(aggregate); err != nil {
		return nil, fmt.Errorf("%w of round %d: %w", ErrKeep, number, err)
	}
	return aggregate, nil
}

// tidy removes the updates of a round: they are in the average now, and with Keep where they were to be kept. What is
// half uploaded comes too late. The mutex is held.
func (f *Federation) tidy(round *openRound) error {
	f.closed = nil
	needed := f.needed()
	for _, d := range round.deliveries {
		if d == nil || needed[d.Update] {
			continue
		}
		if err := f.config.Objects.Remove(d.Update); err != nil {
			return err
		}
	}
	return f.config.Objects.Abandon()
}

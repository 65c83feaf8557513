package federated

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"grange/model"
)

// Run drives a Coordinator in one process: members train side by side, and the global model is scored after every round.
type Run struct {
	Settings Settings
	Local    Local
	Members  []Member
	// Seed is where all chance in the run comes from.
	Seed uint64
	// Trainer trains the members, all at once: how many it really trains side by side is its own affair. Evaluator
	// scores the global model.
	Trainer   Trainer
	Evaluator Evaluator
	// Kernel names what computes, for the record: with another one the last digits of a result may differ.
	Kernel string
	// Observe, if not nil, sees every round: the global model before and after it, and the members' updates. It must
	// not change them. Rounds come one after another.
	Observe func(Observation)
	// Save, if not nil, is given the state of the run after every round, to continue from it later. An error ends the
	// run.
	Save func(State) error
}

// Observation is one finished round.
type Observation struct {
	*Aggregate
	Score Score
}

// State is a run between two rounds: what is needed to go on with it.
type State struct {
	// Weights is the global model.
	Weights *model.Weights
	// Rounds are the finished rounds.
	Rounds []Round
	// Kernel is what computed them.
	Kernel string
	// Warnings are those of the result so far.
	Warnings []string
}

// Round is the outcome of one round.
type Round struct {
	// Round counts from 1.
	Round int `json:"round"`
	// Accuracy and Loss are those of the global model on the test set.
	Accuracy float64 `json:"accuracy"`
	Loss     float64 `json:"loss"`
	// Training is the members' mean training loss, weighted by contribution.
	Training float64 `json:"training_loss"`
	// Absent are members that failed and did not take part.
	Absent []Absence `json:"absent,omitempty"`
}

// Result is the outcome of a run.
type Result struct {
	Rounds []Round `json:"rounds"`
	// Accuracy and Loss are those of the last round.
	Accuracy float64 `json:"accuracy"`
	Loss     float64 `json:"loss"`
	Seed     uint64  `json:"seed"`
	// Kernel is what computed it.
	Kernel string `json:"kernel"`
	// Warnings say what was doubtful, such as rounds that went on without a member.
	Warnings []string `json:"warnings,omitempty"`
	// Weights is the final global model.
	Weights *model.Weights `json:"-"`
}

// From runs all rounds that are left after a state: all of them after State{Weights: fresh}.
func (r Run) From(ctx context.Context, state State) (*Result, error) {
	var err error
	if r.Local, err = r.Local.Defaults(); err != nil {
		return nil, err
	}
	coordinator, err := NewCoordinator(r.Settings, r.Members, state.Weights, len(state.Rounds))
	if err != nil {
		return nil, err
	}
	state.Rounds, state.Warnings = slices.Clone(state.Rounds), slices.Clone(state.Warnings)
	if state.Kernel != r.Kernel && len(state.Rounds) > 0 {
		state.Warnings = append(state.Warnings, fmt.Sprintf("rounds up to %d were computed with the kernel %s and later ones "+
			"with %s: the last digits may differ from a run with one kernel", len(state.Rounds), state.Kernel, r.Kernel))
	}
	state.Kernel = r.Kernel
	for !coordinator.Done() {
		if err := r.round(ctx, coordinator, &state); err != nil {
			return nil, err
		}
		if r.Save == nil {
			continue
		}
		if err := r.Save(state); err != nil {
			return nil, fmt.Errorf("after round %d: %w", coordinator.Round(), err)
		}
	}
	last := state.Rounds[len(state.Rounds)-1]
	return &Result{
		Rounds: state.Rounds, Accuracy: last.Accuracy, Loss: last.Loss,
		Seed: r.Seed, Kernel: r.Kernel, Warnings: state.Warnings, Weights: state.Weights,
	}, nil
}

// round runs one round and adds it to the state.
func (r Run) round(ctx context.Context, coordinator *Coordinator, state *State) error {
	tasks, err := coordinator.Begin()
	if err != nil {
		return err
	}
	for i := range tasks {
		tasks[i].Local, tasks[i].Seed = r.Local, r.Seed
	}
	outcomes := r.train(ctx, tasks)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for i, outcome := range outcomes {
		if outcome.skipped {
			continue
		}
		reason := outcome.err
		if reason == nil && outcome.update.Member != tasks[i].Member {
			reason = fmt.Errorf("%w: the trainer answered for member %d", ErrMember, outcome.update.Member)
		}
		if reason == nil {
			reason = coordinator.Receive(outcome.update)
		}
		if reason == nil {
			continue
		}
		if err := coordinator.Fail(tasks[i].Round, tasks[i].Member, reason); err != nil {
			return err
		}
	}
	aggregate, err := coordinator.Aggregate()
	if err != nil {
		return err
	}
	score, err := r.Evaluator.Evaluate(ctx, aggregate.After)
	if err != nil {
		return fmt.Errorf("evaluating round %d: %w", aggregate.Round, err)
	}
	if math.IsNaN(score.Loss) || math.IsInf(score.Loss, 0) {
		return fmt.Errorf("%w: the loss of the model after round %d; a lower rate may help", ErrNotFinite, aggregate.Round)
	}
	for _, absence := range aggregate.Absent {
		state.Warnings = append(state.Warnings, absence.Warning(aggregate.Round))
	}
	state.Weights = aggregate.After
	state.Rounds = append(state.Rounds, Round{
		Round: aggregate.Round, Accuracy: score.Accuracy, Loss: score.Loss,
		Training: aggregate.TrainingLoss(), Absent: aggregate.Absent,
	})
	if r.Observe != nil {
		r.Observe(Observation{aggregate, score})
	}
	return nil
}

// outcome is what became of a task.
type outcome struct {
	update Update
	err    error
	// skipped is set where the run had failed before the task was finished.
	skipped bool
}

// train has all tasks done at once. When a failure ends the run anyway, tasks after the failed one are not waited for;
// earlier ones are, so that the member that is reported does not depend on who was faster.
func (r Run) train(ctx context.Context, tasks []Task) []outcome {
	outcomes := make([]outcome, len(tasks))
	contexts := make([]context.Context, len(tasks))
	cancels := make([]context.CancelFunc, len(tasks))
	for i := range tasks {
		contexts[i], cancels[i] = context.WithCancel(ctx)
		defer cancels[i]()
	}
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() {
			update, err := r.Trainer.Train(contexts[i], task)
			outcomes[i] = outcome{update: update, err: err}
			switch {
			case err == nil:
			case contexts[i].Err() != nil && errors.Is(err, context.Canceled):
				outcomes[i].skipped = true
			case r.Settings.OnFailure == Stop:
				for _, cancel := range cancels[i+1:] {
					cancel()
				}
			}
		})
	}
	group.Wait()
	return outcomes
}

// Package federated is federated averaging as a state machine.
//
// In every round each member downloads the global model ω, trains it on its own data, and uploads what it got; the
// Coordinator averages the uploads by the members' contributions:
//
//	ω^r = ω^{r−1} + η_g·(Σ s_n/S · ω_n^r − ω^{r−1})
//
// The Coordinator knows no files, network, clock or logs, and does not train. Run drives it in one process with any
// Trainer; a server would drive it with messages. Whoever drives it, the result depends neither on the order in which
// updates arrive nor on how many members train at once: sums are taken in member order, in double precision.
//
// Batch-norm statistics are part of a model's weights and are averaged like them.
package federated

import (
	"context"
	"errors"
	"fmt"
	"math"

	"grange/model"
)

// What can go wrong in a run. Errors of this package wrap one of these and name the member.
var (
	// ErrSettings is a setting out of range.
	ErrSettings = errors.New("federated: invalid settings")
	// ErrNobody is a run or a round in which no member takes part.
	ErrNobody = errors.New("federated: nobody takes part")
	// ErrRound is a call or an update that belongs to another round.
	ErrRound = errors.New("federated: wrong round")
	// ErrMember is an update from someone who takes no part.
	ErrMember = errors.New("federated: unknown member")
	// ErrDuplicate is a second update from a member in one round.
	ErrDuplicate = errors.New("federated: second update in one round")
	// ErrExamples is an update trained on more data points than the member had declared.
	ErrExamples = errors.New("federated: more examples than declared")
	// ErrWeights is an update that does not fit the model.
	ErrWeights = errors.New("federated: weights do not fit the model")
	// ErrNotFinite is an update, an average, or a loss with values that are infinite or not a number.
	ErrNotFinite = errors.New("federated: not finite")
	// ErrTraining is a member whose training failed.
	ErrTraining = errors.New("federated: training failed")
)

// Member is one who may take part in a run.
type Member struct {
	// Name is how errors and results call it.
	Name string
	// Contribution is how many data points it trains on (s_n). A member with 0 stays out.
	Contribution int
}

// Policy says what a run does about a member that fails in a round.
type Policy int

const (
	// Stop ends the run with an error.
	Stop Policy = iota
	// Proceed goes on without that member for this round, averages the others, and records it in the result.
	Proceed
)

// Settings are the choices of a run that the Coordinator needs. The zero value is plain federated averaging, but for
// Rounds.
type Settings struct {
	// Rounds is the number of rounds, at least 1.
	Rounds int
	// GlobalRate is η_g, above 0. Default: 1, plain averaging.
	GlobalRate float64
	// OnFailure says what to do about a member that fails. Default: Stop.
	OnFailure Policy
}

func (s Settings) withDefaults() (Settings, error) {
	if s.GlobalRate == 0 {
		s.GlobalRate = 1
	}
	switch {
	case s.Rounds < 1:
		return s, fmt.Errorf("%w: %d rounds, expected at least 1", ErrSettings, s.Rounds)
	case !(s.GlobalRate > 0) || math.IsInf(s.GlobalRate, 0):
		return s, fmt.Errorf("%w: global rate %v, expected a number above 0", ErrSettings, s.GlobalRate)
	case s.OnFailure != Stop && s.OnFailure != Proceed:
		return s, fmt.Errorf("%w: unknown failure policy %d", ErrSettings, s.OnFailure)
	}
	return s, nil
}

// Local says how members train in a round: mini-batch SGD that starts afresh from the global model.
type Local struct {
	// Epochs is how often a member goes through its data in a round. Default: 5.
	Epochs int
	// Batch is the size of a mini-batch; the last one of an epoch may be smaller. Default: 64.
	Batch int
	// Rate is the learning rate. Default: 0.1.
	Rate float64
	// Momentum is the share of the last step that is kept; it starts from zero in every round. Default: 0.
	Momentum float64
	// Decay is the weight decay. Default: 0.
	Decay float64
	// Proximal is FedProx's μ, which pulls a member's weights to the global ones. Default: 0.
	Proximal float64
}

// Defaults returns the settings with what is zero replaced by its default, or an error that names what is out of range.
func (l Local) Defaults() (Local, error) {
	if l.Epochs == 0 {
		l.Epochs = 5
	}
	if l.Batch == 0 {
		l.Batch = 64
	}
	if l.Rate == 0 {
		l.Rate = 0.1
	}
	if l.Epochs < 1 || l.Batch < 1 {
		return l, fmt.Errorf("%w: %d epochs of batches of %d, expected at least 1 of each", ErrSettings, l.Epochs, l.Batch)
	}
	for _, option := range []struct {
		name  string
		value float64
		fine  bool
	}{
		{"rate", l.Rate, l.Rate > 0},
		{"momentum", l.Momentum, l.Momentum >= 0 && l.Momentum < 1},
		{"decay", l.Decay, l.Decay >= 0},
		{"proximal", l.Proximal, l.Proximal >= 0},
	} {
		if !option.fine || math.IsInf(option.value, 0) {
			return l, fmt.Errorf("%w: %s %v, expected a rate above 0, a momentum below 1, and nothing negative",
				ErrSettings, option.name, option.value)
		}
	}
	return l, nil
}

// Task is what one member is asked to do in one round. It says all a trainer needs to know beside the member's data, so
// that it may as well be sent to another process or machine.
type Task struct {
	// Round counts from 1.
	Round int
	// Member is the member's index in the run, and Name its name.
	Member int
	Name   string
	// Contribution is the number of data points to train on.
	Contribution int
	// Local says how to train.
	Local Local
	// Seed is the run's seed. Trainers take their chance from it, the member and the round, and from nothing else.
	Seed uint64
	// Global is the model to start from. It is shared and must not be changed.
	Global *model.Weights
}

// Values are the weights of a model that are read piece by piece. Read may be called from several goroutines at once.
type Values interface {
	// Read fills a slice with the weights that begin at a position of the model's flat view.
	Read(values []float32, position int) error
}

// Update is what a member uploads.
type Update struct {
	// Round and Member are those of the task.
	Round, Member int
	// Weights is the model it trained. The receiver keeps it.
	Weights *model.Weights
	// Stored is where the model is if it is not in memory, and Weights is nil. Whoever stored it has checked that its
	// tensors are the model's and finite.
	Stored Values
	// Examples is how many data points it trained on, which is its weight in the average. Default: its contribution.
	Examples int
	// Loss is the mean loss of its last epoch.
	Loss float64
}

// Trainer trains members. Train may be called from several goroutines at once; equal tasks must give equal updates.
type Trainer interface {
	Train(ctx context.Context, task Task) (Update, error)
}

// Score is how good a model is on the test set.
type Score struct {
	Accuracy, Loss float64
}

// Evaluator scores models.
type Evaluator interface {
	Evaluate(ctx context.Context, weights *model.Weights) (Score, error)
}

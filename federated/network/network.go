// Package network runs a federation whose members are elsewhere: in other processes, on other machines, behind firewalls,
// and not to be trusted.
//
// A Federation drives a federated.Coordinator. Transports (package silo for members that run Grange, package flower for
// Flower's clients) tell it what members say, and ask it what members are to do; it decides, writes everything into a
// Record before it answers, and aggregates. Updates stay in files: the Federation reads them piece by piece and in member
// order, so the result is to the byte that of the same training in one process, and memory does not grow with the number
// of members.
//
// A coordinator that was killed goes on from its Record: rounds that are in it are finished, updates that are in it are
// not asked for again, and everything else is done again, with the same result.
package network

import (
	"context"
	"errors"
	"time"

	"grange/federated"
	"grange/federated/network/objects"
	"grange/model"
)

// What a transport has to tell a member. Errors of this package wrap one of these, or one of package federated.
var (
	// ErrUnknown is somebody who is not a member of this federation.
	ErrUnknown = errors.New("network: not a member")
	// ErrDeclaration is a declaration that cannot be accepted.
	ErrDeclaration = errors.New("network: declaration refused")
	// ErrRefused is an update that is not taken. The member is out for this round; the round goes on.
	ErrRefused = errors.New("network: update refused")
	// ErrStale is an update that is not of the round under way, or a second, different one in a round. Nothing changes.
	ErrStale = errors.New("network: update is of no use any more")
	// ErrRecord is a record, or a file beside it, that cannot be written or read, as on a full disk. The member should try
	// again later.
	ErrRecord = errors.New("network: the coordinator cannot use its folder")
	// ErrKeep is a round whose updates cannot be kept where they were to be kept.
	ErrKeep = errors.New("network: cannot keep the updates")
)

// Declaration is what a member says of itself before it takes part.
type Declaration struct {
	// Member is its index in the scenario.
	Member int `json:"member"`
	// Contribution is how many data points it will train on, at most (s_n), and Data how many it says it has.
	Contribution int `json:"contribution"`
	Data         int `json:"data"`
	// Transport is how it takes part: "grange", "flower" or "flower-fleet".
	Transport string `json:"transport"`
	// Software and Kernel are what it computes with.
	Software string `json:"software,omitempty"`
	Kernel   string `json:"kernel,omitempty"`
}

// Assignment is what a member is to do next.
type Assignment struct {
	// Done is set when the run is over, and all else is empty. Failed then says why if it did not end well.
	Done   bool
	Failed string
	// Task is what to train. Its Global may be read by anybody and must not be changed; Model is the same as a file.
	Task  federated.Task
	Model objects.Digest
}

// Delivery is an update that a member uploaded, as a file of model.WriteSafetensors without metadata.
type Delivery struct {
	Round  int            `json:"round"`
	Member int            `json:"member"`
	Update objects.Digest `json:"update"`
	// Examples is how many data points it trained on, and Loss its mean training loss.
	Examples int     `json:"examples"`
	Loss     float64 `json:"loss"`
}

// Kind says what a Note is about.
type Kind string

// The kinds of notes.
const (
	Declared     Kind = "declared"
	Connected    Kind = "connected"
	Disconnected Kind = "disconnected"
	Accepted     Kind = "accepted"
	Refused      Kind = "refused" // an update that was not taken
	Stale        Kind = "stale"   // an update of another round, a replay
	Failed       Kind = "failed"  // a member that said it cannot train
	Late         Kind = "late"    // a round went on without the member
	RoundBegun   Kind = "round begun"
	RoundEnded   Kind = "round ended"
	TurnedAway   Kind = "turned away" // somebody who was let in and is no member
	Lost         Kind = "lost"        // a finished round whose model is damaged or gone
	RunEnded     Kind = "run ended"
)

// Note is one line of the record.
type Note struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	// Round is 0 and Member −1 where there is none.
	Round  int    `json:"round,omitempty"`
	Member int    `json:"member"`
	Text   string `json:"text,omitempty"`
}

// Finished is a finished round.
type Finished struct {
	federated.Round
	// Model is the global model after it.
	Model objects.Digest `json:"model"`
	// Warnings are the run's, up to this round.
	Warnings []string `json:"warnings,omitempty"`
}

// Record is where a federation writes what happened, and finds it again after a crash. What a method has returned from
// is kept, even if the process is killed in the next moment. Methods are called one at a time.
type Record interface {
	// Resume returns what is in the record of this run, which it begins if there is none. A run of another identity is an
	// error, unless nobody has taken part in it: then it gives way. A run that has ended is open again, unless it ended well
	// and has all its rounds.
	Resume(ctx context.Context, run RunInfo) (Saved, error)
	// Declare keeps a member's declaration, in place of the one before.
	Declare(ctx context.Context, d Declaration) error
	// Deliver keeps an accepted update of the round under way, in place of the one before by the same member. That of any
	// other round is an error.
	Deliver(ctx context.Context, d Delivery) error
	// Finish keeps a finished round, the one after the last.
	Finish(ctx context.Context, f Finished) error
	// Rewind forgets all rounds but so many, the first, and all updates of later ones: their models were lost. The run is
	// open again.
	Rewind(ctx context.Context, finished int) error
	// End keeps how the run ended: nil for well.
	End(ctx context.Context, failure error) error
	// Note adds a line. Nothing depends on it.
	Note(ctx context.Context, note Note) error
}

// RunInfo says what is trained.
type RunInfo struct {
	// Name is the scenario's, and Scenario its text.
	Name     string
	Scenario []byte
	// Identity is everything that determines the result.
	Identity map[string]string
	// Members are the members' names in order.
	Members []string
	Rounds  int
	// Started is when it first began.
	Started time.Time
}

// Saved is what a Record knows of a run.
type Saved struct {
	// Declarations are in member order.
	Declarations []Declaration
	// Finished are the finished rounds in order.
	Finished []Finished
	// Deliveries are the accepted updates of the round after the last finished one, in member order.
	Deliveries []Delivery
	// Ended says that the run has ended well, with all its rounds.
	Ended bool
}

// Policy says whom a round waits for.
type Policy struct {
	// Deadline is how long a round waits for everybody. Default: 0, for ever.
	Deadline time.Duration
	// Minimum is how many updates a round needs to go on at the deadline; with fewer it waits on. Default: 1.
	Minimum int
}

// Config is what a Federation needs.
type Config struct {
	RunInfo
	// Settings and Local say how to train, Seed is where all chance comes from.
	Settings federated.Settings
	Local    federated.Local
	Seed     uint64
	// Spec is the architecture, and Initial the model to start from.
	Spec    model.Spec
	Initial *model.Weights
	// Evaluator scores the global model after each round.
	Evaluator federated.Evaluator
	// Kernel names what evaluates, and Warnings are those of the data set.
	Kernel   string
	Warnings []string
	Policy   Policy
	// Record and Objects are where everything is kept.
	Record  Record
	Objects *objects.Store
	// Keep, if not nil, is given every finished round and its updates before they are removed. With an error Run returns it,
	// and the run can be taken up again with this round.
	Keep func(*federated.Aggregate) error
	// Observe, if not nil, is told of every note, one at a time.
	Observe func(Note)
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// MemberStatus is what is known of a member.
type MemberStatus struct {
	Name        string       `json:"name"`
	Declaration *Declaration `json:"declaration,omitempty"`
	Connected   bool         `json:"connected"`
	// Delivered says whether its update of the round under way is there, Rounds in how many rounds it took part.
	Delivered bool `json:"delivered"`
	Rounds    int  `json:"rounds"`
	// Out is why it is out for this round, if it is.
	Out string `json:"out,omitempty"`
}

// Status is a federation at one moment.
type Status struct {
	Name string `json:"name"`
	// Phase is "waiting for members", "round", "between rounds", "done" or "failed".
	Phase string `json:"phase"`
	// Round is the round under way, of Rounds.
	Round   int            `json:"round"`
	Rounds  int            `json:"rounds"`
	Members []MemberStatus `json:"members"`
	// Accuracy is that after the last finished round: nil before there is one, or if it is no finite number.
	Accuracy *float64 `json:"accuracy,omitempty"`
	Failure  string   `json:"failure,omitempty"`
}

package federated

import (
	"fmt"
	"math"
	"slices"

	"grange/model"
)

// Coordinator holds the global model and takes it from round to round: Begin a round, Receive (or Fail) every member
// that takes part, Aggregate. It is not safe for concurrent use.
type Coordinator struct {
	settings Settings
	members  []Member
	active   []int // indices of those who take part

	global  *model.Weights
	round   int  // finished rounds
	open    bool // whether a round is under way
	updates []*Update
	failed  []error
}

// Absence is a member that took no part in a round although it should have.
type Absence struct {
	Member int    `json:"member"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Warning says in a sentence that a round went on without the member.
func (a Absence) Warning(round int) string {
	return fmt.Sprintf("round %d went on without %s, whose training failed: %s", round, a.Name, a.Reason)
}

// Aggregate is the outcome of one round.
type Aggregate struct {
	// Round counts from 1.
	Round int
	// Before and After are the global model before and after the round.
	Before, After *model.Weights
	// Updates are what the members uploaded, in member order.
	Updates []Update
	// Absent are the members that failed, in member order.
	Absent []Absence
}

// NewCoordinator starts a run from a global model after so many finished rounds: 0 unless it continues an earlier run.
// The weights are not changed.
func NewCoordinator(settings Settings, members []Member, global *model.Weights, finished int) (*Coordinator, error) {
	settings, err := settings.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Coordinator{settings: settings, members: slices.Clone(members), global: global, round: finished}
	for i, member := range members {
		switch {
		case member.Contribution < 0:
			return nil, fmt.Errorf("%w: %s contributes %d points, expected 0 or more", ErrSettings, member.Name, member.Contribution)
		case member.Contribution > math.MaxInt32:
			return nil, fmt.Errorf("%w: %s contributes %d points, expected %d at most", ErrSettings, member.Name,
				member.Contribution, math.MaxInt32)
		case member.Contribution > 0:
			c.active = append(c.active, i)
		}
	}
	if len(c.active) == 0 {
		return nil, fmt.Errorf("%w: all %d contributions are 0, expected at least one above", ErrNobody, len(members))
	}
	if finished < 0 || finished > settings.Rounds {
		return nil, fmt.Errorf("%w: %d of %d rounds are finished, expected 0 to %d",
			ErrRound, finished, settings.Rounds, settings.Rounds)
	}
	if !global.Finite() {
		return nil, fmt.Errorf("%w: the weights of the model to start from", ErrNotFinite)
	}
	return c, nil
}

// Done reports whether all rounds are finished.
func (c *Coordinator) Done() bool { return c.round >= c.settings.Rounds }

// Round is the number of finished rounds.
func (c *Coordinator) Round() int { return c.round }

// Global is the current global model. The caller must not change it.
func (c *Coordinator) Global() *model.Weights { return c.global }

// Begin starts the next round and returns one task per member that takes part. Local settings and seed are for the
// driver to fill in.
func (c *Coordinator) Begin() ([]Task, error) {
	switch {
	case c.open:
		return nil, fmt.Errorf("%w: round %d is under way, expected its aggregate first", ErrRound, c.round+1)
	case c.Done():
		return nil, fmt.Errorf("%w: all %d rounds are finished", ErrRound, c.settings.Rounds)
	}
	c.open = true
	c.updates = make([]*Update, len(c.members))
	c.failed = make([]error, len(c.members))
	tasks := make([]Task, len(c.active))
	for i, member := range c.active {
		tasks[i] = Task{
			Round: c.round + 1, Member: member, Name: c.members[member].Name,
			Contribution: c.members[member].Contribution, Global: c.global,
		}
	}
	return tasks, nil
}

// Receive takes one member's update. An update that cannot be used is refused with an error and changes nothing; the
// driver decides whether to ask again or to call Fail.
func (c *Coordinator) Receive(update Update) error {
	if err := c.expect(update.Round, update.Member); err != nil {
		return err
	}
	member := c.members[update.Member]
	if update.Examples == 0 {
		update.Examples = member.Contribution
	}
	if update.Examples < 0 || update.Examples > member.Contribution {
		return fmt.Errorf("%w: %s trained on %d data points in round %d and had declared %d",
			ErrExamples, member.Name, update.Examples, update.Round, member.Contribution)
	}
	if update.Stored == nil {
		if err := sameTensors(c.global, update.Weights); err != nil {
			return fmt.Errorf("%w: update of %s in round %d: %w", ErrWeights, member.Name, update.Round, err)
		}
		if !update.Weights.Finite() {
			return fmt.Errorf("%w: the weights of %s in round %d; a lower rate may help", ErrNotFinite, member.Name, update.Round)
		}
	}
	c.updates[update.Member] = &update
	return nil
}

// Fail records that a member delivers nothing in this round. Under the policy Stop it returns the error the run ends
// with, under Proceed nil.
func (c *Coordinator) Fail(round, member int, reason error) error {
	if err := c.expect(round, member); err != nil {
		return err
	}
	if c.settings.OnFailure == Stop {
		return fmt.Errorf("%w: %s in round %d: %w", ErrTraining, c.members[member].Name, round, reason)
	}
	c.failed[member] = reason
	return nil
}

// expect checks that a round is under way and that the member has not been heard of in it.
func (c *Coordinator) expect(round, member int) error {
	switch {
	case !c.open:
		return fmt.Errorf("%w: no round is under way, got something of round %d", ErrRound, round)
	case round != c.round+1:
		return fmt.Errorf("%w: got something of round %d, expected round %d", ErrRound, round, c.round+1)
	case member < 0 || member >= len(c.members):
		return fmt.Errorf("%w: number %d, expected 0 to %d", ErrMember, member, len(c.members)-1)
	case c.members[member].Contribution == 0:
		return fmt.Errorf("%w: %s contributes nothing and takes no part", ErrMember, c.members[member].Name)
	case c.updates[member] != nil || c.failed[member] != nil:
		return fmt.Errorf("%w: %s in round %d", ErrDuplicate, c.members[member].Name, round)
	}
	return nil
}

// Pending lists the members of the round under way that have not been heard of.
func (c *Coordinator) Pending() []int {
	if !c.open {
		return nil
	}
	var pending []int
	for _, member := range c.active {
		if c.updates[member] == nil && c.failed[member] == nil {
			pending = append(pending, member)
		}
	}
	return pending
}

// Aggregate ends the round: it averages the updates and makes the result the global model.
func (c *Coordinator) Aggregate() (*Aggregate, error) {
	if !c.open {
		return nil, fmt.Errorf("%w: no round is under way, nothing to aggregate", ErrRound)
	}
	if pending := c.Pending(); len(pending) > 0 {
		return nil, fmt.Errorf("%w: round %d: %d members are still missing, the first of them %s",
			ErrRound, c.round+1, len(pending), c.members[pending[0]].Name)
	}
	result := &Aggregate{Round: c.round + 1, Before: c.global}
	for _, member := range c.active {
		if update := c.updates[member]; update != nil {
			result.Updates = append(result.Updates, *update)
		} else {
			result.Absent = append(result.Absent, Absence{member, c.members[member].Name, c.failed[member].Error()})
		}
	}
	if len(result.Updates) == 0 {
		return nil, fmt.Errorf("%w: every member failed in round %d, the first of them %s: %w", ErrNobody, c.round+1,
			result.Absent[0].Name, c.failed[result.Absent[0].Member])
	}
	var err error
	if result.After, err = average(c.global, result.Updates, c.settings.GlobalRate); err != nil {
		return nil, err
	}
	if !result.After.Finite() {
		return nil, fmt.Errorf("%w: the average weights of round %d; a lower rate or global rate may help", ErrNotFinite, c.round+1)
	}
	c.global = result.After
	c.round++
	c.open, c.updates, c.failed = false, nil, nil
	return result, nil
}

// sameTensors says how the tensors of an update differ from those of the model, if they do.
func sameTensors(want, got *model.Weights) error {
	if got == nil {
		return fmt.Errorf("no weights")
	}
	a, b := want.Tensors(), got.Tensors()
	if len(a) != len(b) {
		return fmt.Errorf("%d tensors, expected %d", len(b), len(a))
	}
	for i := range a {
		if a[i].Name != b[i].Name {
			return fmt.Errorf("tensor %d is called %q, expected %q", i, b[i].Name, a[i].Name)
		}
		if !slices.Equal(a[i].Shape, b[i].Shape) {
			return fmt.Errorf("tensor %s has shape %v, expected %v", a[i].Name, b[i].Shape, a[i].Shape)
		}
	}
	if len(want.Flat) != len(got.Flat) {
		return fmt.Errorf("%d values, expected %d", len(got.Flat), len(want.Flat))
	}
	return nil
}

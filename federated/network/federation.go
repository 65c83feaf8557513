package network

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"grange/federated"
	"grange/federated/network/objects"
	"grange/model"
)

// Federation runs one training with members that are elsewhere. It is safe for concurrent use.
type Federation struct {
	config Config
	// header is what the file of every model begins with.
	header []byte

	mutex sync.Mutex
	// changed is closed, and replaced, whenever something happened that somebody may be waiting for.
	changed chan struct{}
	// declarations and connections (how many) are by member.
	declarations []*Declaration
	connections  []int
	// finished are the finished rounds, global the model after the last of them, and model its file.
	finished []Finished
	global   *model.Weights
	model    objects.Digest
	// open is the round under way, nil between rounds.
	open *openRound
	// last are the updates of the round before it, to tell a delivery that is repeated from one that is wrong, and closed
	// are those whose files are still to be averaged.
	last, closed []*Delivery
	// looking counts, by file, the deliveries that are being looked at.
	looking map[objects.Digest]int
	// resumed are the updates of the round under way that an earlier process had accepted.
	resumed []Delivery
	// syncing tells when the last model is on the disk; nil before the first.
	syncing chan error
	over    bool
	failure error
	// ended is set if the record says so already.
	ended bool
	// away is when somebody of a name was last turned away.
	away map[string]time.Time

	// files is held while a file is removed that is not needed, and while one is written that will be. It is locked before
	// mutex.
	files sync.Mutex
}

// openRound is a round under way.
type openRound struct {
	coordinator *federated.Coordinator
	// tasks, deliveries and out (why a member takes no part any more) are by member.
	tasks      []*federated.Task
	deliveries []*Delivery
	out        []error
}

// heard is how many updates are there.
func (r *openRound) heard() int {
	n := 0
	for _, d := range r.deliveries {
		if d != nil {
			n++
		}
	}
	return n
}

// Open takes up the run that the record holds, or begins it.
func Open(ctx context.Context, config Config) (*Federation, error) {
	f, err := New(config)
	if err != nil {
		return nil, err
	}
	if err := f.TakeUp(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// New makes a federation of which nothing is recorded yet. Its configuration can be asked for; all else comes after TakeUp.
func New(config Config) (*Federation, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Started.IsZero() {
		config.Started = config.Now()
	}
	config.Policy.Minimum = max(1, config.Policy.Minimum)
	// A member that fails is out for the round, and the round goes on: members are not trusted.
	config.Settings.OnFailure = federated.Proceed
	config.Settings.Rounds = config.Rounds
	var err error
	if config.Local, err = config.Local.Defaults(); err != nil {
		return nil, err
	}
	n := len(config.Members)
	if n == 0 {
		return nil, fmt.Errorf("%w: no members", federated.ErrNobody)
	}
	if config.Policy.Minimum > n {
		return nil, fmt.Errorf("%w: a minimum of %d members, and there are %d", federated.ErrSettings, config.Policy.Minimum, n)
	}
	f := &Federation{
		config: config, changed: make(chan struct{}), declarations: make([]*Declaration, n), connections: make([]int, n),
		last: make([]*Delivery, n), looking: map[objects.Digest]int{}, away: map[string]time.Time{}, global: config.Initial,
	}
	if f.header, err = model.SafetensorsHeader(config.Initial.Tensors(), nil); err != nil {
		return nil, err
	}
	return f, nil
}

// TakeUp takes up the run that the record holds, or begins it. It is called once, before members are let in.
func (f *Federation) TakeUp(ctx context.Context) error {
	saved, err := f.config.Record.Resume(ctx, f.config.RunInfo)
	if err != nil {
		return err
	}
	return f.restore(ctx, saved)
}

// restore takes over what an earlier process has recorded.
func (f *Federation) restore(ctx context.Context, saved Saved) error {
	for _, d := range saved.Declarations {
		if d.Member < 0 || d.Member >= len(f.declarations) {
			return fmt.Errorf("%w: it names member %d of %d", ErrRecord, d.Member+1, len(f.declarations))
		}
		f.declarations[d.Member] = &d
	}
	f.finished, f.resumed = saved.Finished, saved.Deliveries
	if err := f.rewind(ctx); err != nil {
		return err
	}
	f.ended = saved.Ended && len(f.finished) == f.config.Rounds
	if err := f.sweep(); err != nil {
		return err
	}
	if len(f.finished) == 0 {
		var err error
		f.model, err = f.config.Objects.Put(f.writer(f.global))
		return err
	}
	f.model = f.finished[len(f.finished)-1].Model
	stored, err := f.stored(f.model)
	if err != nil {
		return fmt.Errorf("the model after round %d: %w", len(f.finished), err)
	}
	defer stored.Close()
	f.global = f.config.Initial.Clone()
	return stored.Read(f.global.Flat, 0)
}

// rewind goes back to the last round whose model is still what it was. After a power failure that of the last one may not
// be; then the round is done again.
func (f *Federation) rewind(ctx context.Context) error {
	intact := len(f.finished)
	for ; intact > 0; intact-- {
		last := f.finished[intact-1]
		err := f.config.Objects.Check(last.Model)
		if err == nil {
			break
		}
		if !errors.Is(err, objects.ErrMissing) && !errors.Is(err, objects.ErrDigest) {
			return fmt.Errorf("the model after round %d: %w", intact, err) // it may well be there
		}
		f.note(Lost, last.Round.Round, -1, err.Error())
	}
	if intact == len(f.finished) {
		return nil
	}
	if err := f.config.Record.Rewind(ctx, intact); err != nil {
		return fmt.Errorf("%w: going back to round %d: %w", ErrRecord, intact, err)
	}
	f.finished, f.resumed = f.finished[:intact], nil
	return nil
}

// sweep removes files that nothing in the record speaks of, as of updates whose member was never answered.
func (f *Federation) sweep() error {
	needed := f.needed()
	return f.config.Objects.Sweep(func(d objects.Digest) bool { return needed[d] })
}

// needed are the files that something depends on: models, and updates that were accepted and are not averaged yet. The
// mutex is held, or nobody else knows of f.
func (f *Federation) needed() map[objects.Digest]bool {
	needed := map[objects.Digest]bool{f.model: true}
	for _, finished := range f.finished {
		needed[finished.Model] = true
	}
	for _, d := range f.resumed {
		needed[d.Update] = true
	}
	accepted := f.closed
	if f.open != nil {
		accepted = f.open.deliveries
	}
	for _, d := range accepted {
		if d != nil {
			needed[d.Update] = true
		}
	}
	for digest := range f.looking {
		needed[digest] = true
	}
	return needed
}

// Config is what the federation was opened with, defaults filled in.
func (f *Federation) Config() Config { return f.config }

// Objects is where models and updates are.
func (f *Federation) Objects() *objects.Store { return f.config.Objects }

// Member is the index of the member with this name, or ErrUnknown.
func (f *Federation) Member(name string) (int, error) {
	if member := slices.Index(f.config.Members, name); member >= 0 {
		return member, nil
	}
	return -1, fmt.Errorf("%w: %.100q takes no part in %s", ErrUnknown, name, f.config.Name)
}

// Declare says that a member will take part, and with how much. Saying the same again, as after a lost connection, is fine;
// another contribution is not, once the first round has begun.
func (f *Federation) Declare(ctx context.Context, d Declaration) error {
	if err := f.known(d.Member); err != nil {
		return err
	}
	name := f.config.Members[d.Member]
	if d.Contribution < 0 || d.Contribution > d.Data || d.Data > math.MaxInt32 {
		return fmt.Errorf("%w: %s would contribute %d of %d data points, expected 0 to %d", ErrDeclaration, name,
			d.Contribution, d.Data, math.MaxInt32)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	before := f.declarations[d.Member]
	begun := f.open != nil || len(f.finished) > 0
	switch {
	case before != nil && *before == d:
		return nil
	case before != nil && begun && before.Contribution != d.Contribution:
		return fmt.Errorf("%w: %s declared a contribution of %d before the first round, and now %d", ErrDeclaration, name,
			before.Contribution, d.Contribution)
	}
	if err := f.config.Record.Declare(ctx, d); err != nil {
		return fmt.Errorf("%w: declaration of %s: %w", ErrRecord, name, err)
	}
	f.declarations[d.Member] = &d
	f.note(Declared, 0, d.Member, fmt.Sprintf("contributes %d of %d data points, by %s", d.Contribution, d.Data, d.Transport))
	f.broadcast()
	return nil
}

// Next waits until there is something for a member to do, or the run is over. A member that asks again before it has
// delivered gets the same task again.
func (f *Federation) Next(ctx context.Context, member int) (Assignment, error) {
	if err := f.known(member); err != nil {
		return Assignment{}, err
	}
	for {
		f.mutex.Lock()
		changed, assignment, ready := f.changed, Assignment{}, false
		switch {
		case f.over:
			assignment.Done, ready = true, true
			if f.failure != nil {
				assignment.Failed = f.failure.Error()
			}
		case f.open != nil && f.open.pending(member):
			assignment.Task, assignment.Model, ready = *f.open.tasks[member], f.model, true
		}
		f.mutex.Unlock()
		if ready {
			return assignment, nil
		}
		select {
		case <-ctx.Done():
			return Assignment{}, context.Cause(ctx)
		case <-changed:
		}
	}
}

// pending says whether a member's update is wanted.
func (r *openRound) pending(member int) bool {
	return r.tasks[member] != nil && r.deliveries[member] == nil && r.out[member] == nil
}

func (f *Federation) known(member int) error {
	if member < 0 || member >= len(f.config.Members) {
		return fmt.Errorf("%w: number %d of %d", ErrUnknown, member+1, len(f.config.Members))
	}
	return nil
}

// broadcast wakes all who wait. The mutex is held.
func (f *Federation) broadcast() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// note writes a line into the record. Nothing depends on notes, so one that cannot be written is let go: what does matter
// will fail for the same reason, and say so. The mutex is held.
func (f *Federation) note(kind Kind, round, member int, text string) {
	note := Note{Time: f.config.Now(), Kind: kind, Round: round, Member: member, Text: text}
	_ = f.config.Record.Note(context.Background(), note)
	f.observe(note)
}

func (f *Federation) observe(note Note) {
	if f.config.Observe != nil {
		f.config.Observe(note)
	}
}

// refusal is the error for a member whose update is not taken.
func refusal(reason error) error {
	if errors.Is(reason, ErrRefused) {
		return reason
	}
	return fmt.Errorf("%w: %w", ErrRefused, reason)
}

package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"grange/federated"
	"grange/federated/network/objects"
	"grange/internal/littleendian"
	"grange/model"
)

// ErrFreeRider is an update that is the very model the member was sent.
var ErrFreeRider = errors.New("network: the update is the model that was sent, nothing was trained")

// Wanted says whether an update may come of a member in a round, before it is taken: it is ErrStale if the round is not
// under way, and ErrRefused if the member is out. One that has delivered may do so again, in case it was not answered.
func (f *Federation) Wanted(round, member int) error {
	if err := f.known(member); err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, deliveries := range [][]*Delivery{f.last, f.delivered()} {
		if d := deliveries[member]; d != nil && d.Round == round {
			return nil
		}
	}
	_, err := f.wantedLocked(Delivery{Round: round, Member: member})
	return err
}

// delivered are the updates of the round under way, by member. The mutex is held.
func (f *Federation) delivered() []*Delivery {
	if f.open == nil {
		return make([]*Delivery, len(f.config.Members))
	}
	return f.open.deliveries
}

// Deliver hands in an update whose file is in Objects. Once it returns nil the update is recorded and counts; delivering
// the same again is fine. An update that is refused is recorded with the reason, and the member is out for the round.
// The file of an update that does not count is removed, whatever the reason: nobody fills the disk with updates.
func (f *Federation) Deliver(ctx context.Context, d Delivery) error {
	if err := f.known(d.Member); err != nil {
		return err
	}
	f.mutex.Lock()
	f.looking[d.Update]++
	f.mutex.Unlock()
	defer f.drop(d.Update)
	return f.judge(ctx, d)
}

// drop removes a file that was looked at, unless it is needed.
func (f *Federation) drop(digest objects.Digest) {
	f.files.Lock()
	defer f.files.Unlock()
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.looking[digest]--; f.looking[digest] == 0 {
		delete(f.looking, digest)
	}
	if !f.needed()[digest] {
		_ = f.config.Objects.Remove(digest) // the next start tries again
	}
}

// judge looks at an update, and counts it if it is one.
func (f *Federation) judge(ctx context.Context, d Delivery) error {
	if wanted, err := f.wanted(d); err != nil || !wanted {
		return err
	}
	// Reading the file takes a while, and others should not have to wait for it.
	reason := f.inspect(d)
	if reason != nil && FaultOf(reason) != Theirs {
		return fmt.Errorf("%w: update of %s in round %d: %w", ErrRecord, f.config.Members[d.Member], d.Round, reason)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if wanted, err := f.wantedLocked(d); err != nil || !wanted {
		return err
	}
	if reason != nil {
		return f.putOut(Refused, d.Round, d.Member, reason)
	}
	if err := f.config.Record.Deliver(ctx, d); err != nil {
		return fmt.Errorf("%w: update of %s in round %d: %w", ErrRecord, f.config.Members[d.Member], d.Round, err)
	}
	f.accept(d)
	return nil
}

// accept counts a delivery that is recorded. The mutex is held.
func (f *Federation) accept(d Delivery) {
	f.open.deliveries[d.Member] = &d
	f.note(Accepted, d.Round, d.Member, fmt.Sprintf("%d examples, loss %.4g", d.Examples, d.Loss))
	f.broadcast()
}

// wanted says whether an update is of use: false, and no error, if it is there already.
func (f *Federation) wanted(d Delivery) (bool, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.wantedLocked(d)
}

func (f *Federation) wantedLocked(d Delivery) (bool, error) {
	name, round := f.config.Members[d.Member], len(f.finished)+1
	stale := func(format string, args ...any) (bool, error) {
		err := fmt.Errorf("%w: %s, round %d: %s", ErrStale, name, d.Round, fmt.Sprintf(format, args...))
		f.note(Stale, d.Round, d.Member, err.Error())
		return false, err
	}
	if f.open == nil || d.Round != round {
		if earlier := f.last[d.Member]; earlier != nil && *earlier == d {
			return false, nil // the answer to it was lost
		}
		if f.open == nil {
			return stale("no round is under way")
		}
		return stale("round %d is under way", round)
	}
	switch {
	case f.open.deliveries[d.Member] != nil && f.open.deliveries[d.Member].Update == d.Update:
		return false, nil
	case f.open.deliveries[d.Member] != nil:
		return stale("another update has been accepted")
	case f.open.tasks[d.Member] == nil:
		return stale("it takes no part in this round")
	case f.open.out[d.Member] != nil:
		return false, refusal(fmt.Errorf("%s is out for round %d: %w", name, round, f.open.out[d.Member]))
	}
	return true, nil
}

// inspect says what is wrong with an update, if something is.
func (f *Federation) inspect(d Delivery) error {
	f.mutex.Lock()
	sent, declared := f.model, f.declarations[d.Member]
	f.mutex.Unlock()
	switch {
	case d.Update == sent:
		return ErrFreeRider
	case declared == nil:
		return fmt.Errorf("%w: nothing was declared", ErrDeclaration)
	case d.Examples < 1 || d.Examples > declared.Contribution:
		return fmt.Errorf("%w: %d data points, declared were %d", federated.ErrExamples, d.Examples, declared.Contribution)
	case math.IsNaN(d.Loss) || math.IsInf(d.Loss, 0):
		return fmt.Errorf("%w: the training loss is %v", federated.ErrNotFinite, d.Loss)
	}
	stored, err := f.stored(d.Update)
	if err != nil {
		return err
	}
	defer stored.Close()
	return stored.finite()
}

// Refuse puts a member out for this round because what it sent is no update at all. The error it returns is for the member.
func (f *Federation) Refuse(_ context.Context, round, member int, reason error) error {
	return f.withdraw(Refused, round, member, reason)
}

// Fail says that a member cannot train in this round.
func (f *Federation) Fail(_ context.Context, round, member int, reason string) error {
	if err := f.withdraw(Failed, round, member, fmt.Errorf("%.500s", reason)); !errors.Is(err, ErrRefused) {
		return err
	}
	return nil
}

func (f *Federation) withdraw(kind Kind, round, member int, reason error) error {
	if err := f.known(member); err != nil {
		return err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.open == nil || round != len(f.finished)+1 || !f.open.pending(member) {
		f.note(Stale, round, member, reason.Error())
		return fmt.Errorf("%w: nothing is expected of %s in round %d", ErrStale, f.config.Members[member], round)
	}
	return f.putOut(kind, round, member, reason)
}

// putOut takes a member out of the round under way. The mutex is held.
func (f *Federation) putOut(kind Kind, round, member int, reason error) error {
	f.open.out[member] = reason
	f.note(kind, round, member, reason.Error())
	f.broadcast()
	return refusal(fmt.Errorf("%s, round %d: %w", f.config.Members[member], round, reason))
}

// writer writes a model as a file.
func (f *Federation) writer(weights *model.Weights) func(io.Writer) error {
	return func(out io.Writer) error { return model.WriteSafetensors(out, weights, nil) }
}

// stored is the file of a model. It is a federated.Values.
type stored struct {
	file   *os.File
	header int64
	values int
}

// stored opens the file of a model and checks that it has the tensors it should.
func (f *Federation) stored(digest objects.Digest) (*stored, error) {
	file, err := f.config.Objects.Open(digest)
	if err != nil {
		return nil, err
	}
	if err := f.sameTensors(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &stored{file, int64(len(f.header)), len(f.config.Initial.Flat)}, nil
}

// sameTensors says how the tensors in a file differ from the model's, if they do.
func (f *Federation) sameTensors(file *os.File) error {
	header := make([]byte, len(f.header))
	_, err := io.ReadFull(file, header)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: %w", objects.ErrRead, err)
	}
	if err != nil || !bytes.Equal(header, f.header) {
		return fmt.Errorf("%w: names or shapes are not those of %s", federated.ErrWeights, f.config.Spec.Name)
	}
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", objects.ErrRead, err)
	}
	if want := int64(len(f.header)) + 4*int64(len(f.config.Initial.Flat)); info.Size() != want {
		return fmt.Errorf("%w: %d bytes, expected %d", federated.ErrWeights, info.Size(), want)
	}
	return nil
}

// Read is that of federated.Values.
func (s *stored) Read(values []float32, position int) error {
	if err := littleendian.ReadAt(s.file, values, s.header+4*int64(position)); err != nil {
		return fmt.Errorf("%w: %w", objects.ErrRead, err)
	}
	return nil
}

// finite reports a value that is not a number or infinite.
func (s *stored) finite() error {
	buffer := make([]byte, 1<<18)
	for at := int64(0); at < 4*int64(s.values); at += int64(len(buffer)) {
		part := buffer[:min(int64(len(buffer)), 4*int64(s.values)-at)]
		if _, err := s.file.ReadAt(part, s.header+at); err != nil {
			return fmt.Errorf("%w: %w", objects.ErrRead, err)
		}
		if position, finite := littleendian.Finite(part); !finite {
			return fmt.Errorf("%w: value %d", federated.ErrNotFinite, at/4+int64(position)+1)
		}
	}
	return nil
}

// Close closes the file.
func (s *stored) Close() error { return s.file.Close() }

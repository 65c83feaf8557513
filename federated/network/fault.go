package network

import (
	"errors"

	"grange/federated"
	"grange/federated/network/objects"
)

// Fault is whose matter an error is, and so what follows from it.
type Fault int

// The faults.
const (
	// Ours is the coordinator's own trouble: a disk that is full, too many open files, somebody who stops it. Nothing is
	// wrong with a member or with the run, and what was tried can be tried again. So is every error that nobody knows: a
	// member is not put out and a run is not ended for what they may have nothing to do with.
	Ours Fault = iota
	// Theirs is what a member said or sent. Saying it again changes nothing.
	Theirs
	// Final is a run that cannot go on, whoever tries.
	Final
)

// ErrMalformed is something that a member sent and that cannot be read at all.
var ErrMalformed = errors.New("network: malformed")

// faults sorts errors: what is ours goes before all else, since it may be the reason for the rest.
var faults = []struct {
	fault  Fault
	errors []error
}{
	{Ours, []error{ErrRecord, ErrKeep, objects.ErrWrite, objects.ErrRead, objects.ErrMissing, objects.ErrBusy}},
	{Final, []error{federated.ErrNobody, federated.ErrSettings, federated.ErrTraining}},
	{Theirs, []error{
		ErrUnknown, ErrDeclaration, ErrRefused, ErrStale, ErrFreeRider, ErrMalformed,
		federated.ErrWeights, federated.ErrNotFinite, federated.ErrExamples,
		objects.ErrDigest, objects.ErrOffset, objects.ErrSize,
	}},
}

// FaultOf sorts an error.
func FaultOf(err error) Fault {
	for _, kind := range faults {
		for _, e := range kind.errors {
			if errors.Is(err, e) {
				return kind.fault
			}
		}
	}
	return Ours
}

// Settled says that an error is the last word on an update: there is nothing left to do for its round.
func Settled(err error) bool { return errors.Is(err, ErrRefused) || errors.Is(err, ErrStale) }

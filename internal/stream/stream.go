// Package stream derives independent random streams from one seed.
//
// Every place that needs chance names its purpose and the indices of its task (a member, a round), and gets a stream of
// its own. No stream is ever shared between tasks, so results depend neither on the order in which tasks run nor on how
// many run at once, and adding a new use of chance changes none of the others.
package stream

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// New returns the random stream of one purpose and one list of task indices under a seed. Equal arguments give equal
// streams; streams of different arguments are independent for all practical purposes, since each is keyed by a SHA-256
// digest of them.
func New(seed uint64, purpose string, indices ...int) *rand.Rand {
	message := make([]byte, 0, 16+len(purpose)+8*len(indices))
	message = binary.LittleEndian.AppendUint64(message, seed)
	message = binary.LittleEndian.AppendUint64(message, uint64(len(purpose)))
	message = append(message, purpose...)
	for _, index := range indices {
		message = binary.LittleEndian.AppendUint64(message, uint64(index))
	}
	return rand.New(rand.NewChaCha8(sha256.Sum256(message)))
}

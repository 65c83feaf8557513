package valuation

import (
	"encoding/binary"
	"math/rand/v2"
)

// stream returns the random numbers of one task. Every task of a run has its
// own, so that it does not matter when and where it runs.
func stream(seed, task uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], task)
	copy(key[16:], "grange valuation")
	return rand.New(rand.NewChaCha8(key))
}

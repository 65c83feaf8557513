package game

import (
	"errors"
	"fmt"
	"math"
)

// ErrNoShares is returned for raw indices that do not add up to more than zero.
var ErrNoShares = errors.New("game: no shares by these indices")

// Negative says what happens to a negative contribution index.
type Negative int

const (
	Clip Negative = iota // replace I_n by max(0, I_n); the default
	Raw                  // keep the sign
)

// String returns the word the scenario file uses.
func (n Negative) String() string {
	if n == Raw {
		return "raw"
	}
	return "clip"
}

// ParseNegative reads the word the scenario file uses.
func ParseNegative(word string) (Negative, error) {
	switch word {
	case "clip":
		return Clip, nil
	case "raw":
		return Raw, nil
	}
	return Clip, fmt.Errorf("game: negative is %q, want clip or raw", word)
}

// Shares turns indices into shares g_n = I_n / Σ I. When all indices are zero
// (after clipping) the profit is split equally.
func Shares(indices []float64, negative Negative) []float64 {
	shares := make([]float64, len(indices))
	sum, zero := 0.0, true
	for n, index := range indices {
		if negative == Clip && index < 0 {
			index = 0
		}
		shares[n] = index
		sum += index
		zero = zero && index == 0
	}
	for n := range shares {
		if zero {
			shares[n] = 1 / float64(len(shares))
		} else {
			shares[n] /= sum
		}
	}
	return shares
}

// rounding is what a sum of indices may be off by, as a part of what was added.
const rounding = 1e-9

// SoundShares returns Shares where they can be paid out by. Raw indices that
// add up to less than zero would turn the order of the members around, and near
// zero any share can come out: both are ErrNoShares. An index which is nothing
// but rounding, beside the largest, counts as zero.
func SoundShares(indices []float64, negative Negative) ([]float64, error) {
	largest := 0.0
	for _, index := range indices {
		if !Finite(index) {
			return nil, fmt.Errorf("%w: one is %v", ErrNoShares, index)
		}
		largest = max(largest, math.Abs(index))
	}
	sum, size := 0.0, 0.0
	sound := make([]float64, len(indices))
	for n, index := range indices {
		if math.Abs(index) > 1e-12*largest {
			sound[n] = index
		}
		sum += sound[n]
		size += math.Abs(sound[n])
	}
	if negative == Raw && size > 0 && !(sum > rounding*size) {
		return nil, fmt.Errorf("%w: with their signs they add up to %.6g", ErrNoShares, sum)
	}
	return Shares(sound, negative), nil
}

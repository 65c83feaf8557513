package game

import "fmt"

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

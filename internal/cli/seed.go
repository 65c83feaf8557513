package cli

import "strconv"

// seed is the flag --seed. Zero is a seed like any other; none is none.
type seed struct {
	value uint64
	given bool
}

func (s *seed) String() string {
	if !s.given {
		return ""
	}
	return strconv.FormatUint(s.value, 10)
}

// Type is what help calls the flag's value.
func (*seed) Type() string { return "uint" }

// Set reads the flag.
func (s *seed) Set(text string) error {
	value, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		return err
	}
	s.value, s.given = value, true
	return nil
}

// or returns the seed that was given, or another one.
func (s seed) or(other uint64) uint64 {
	if s.given {
		return s.value
	}
	return other
}

package valuation

import (
	"errors"
	"fmt"
	"math"
)

var (
	// ErrMembers is returned for a game with no members or too many for a Coalition.
	ErrMembers = errors.New("valuation: number of members out of range")
	// ErrTooLarge is matched by a TooLargeError.
	ErrTooLarge = errors.New("valuation: too many members for an exact value")
	// ErrNotFinite is returned for a utility which is NaN or infinite.
	ErrNotFinite = errors.New("valuation: utility is not a finite number")
	// ErrTable is returned for a table whose length is not a power of two.
	ErrTable = errors.New("valuation: a table needs 2^N worths")
	// ErrSettings is returned for settings or options out of range.
	ErrSettings = errors.New("valuation: setting out of range")
	// ErrProgram is returned when a linear program could not be solved to the
	// accuracy that its answer was checked for.
	ErrProgram = errors.New("valuation: linear program not solved")
)

// CoalitionError says which coalition a utility failed for.
type CoalitionError struct {
	Coalition Coalition
	Names     []string // of the game's members; nil when they have none
	Err       error
}

// Error names the coalition and the cause.
func (e *CoalitionError) Error() string {
	return fmt.Sprintf("valuation: utility of coalition %s: %v", e.Coalition.Label(e.Names), e.Err)
}

// Unwrap returns the cause.
func (e *CoalitionError) Unwrap() error { return e.Err }

// TooLargeError says what an exact value would take, and what to use instead.
type TooLargeError struct {
	Members int // N
	Limit   int // the largest N that was allowed
}

// Evaluations returns 2^N.
func (e *TooLargeError) Evaluations() float64 { return math.Ldexp(1, e.Members) }

// Bytes returns the memory a table of 2^N worths takes.
func (e *TooLargeError) Bytes() float64 { return 8 * e.Evaluations() }

// Seconds returns how long the evaluations take at the given seconds for each.
func (e *TooLargeError) Seconds(each float64) float64 { return each * e.Evaluations() }

// Error says how many evaluations, how long, how much memory, and what to do.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: %d members are more than %d; they need %.4g evaluations (%s at 1 ms each, %s at 1 s each) and %s of memory. Try: %s",
		ErrTooLarge, e.Members, e.Limit, e.Evaluations(), duration(e.Seconds(1e-3)), duration(e.Seconds(1)), memory(e.Bytes()), e.advice())
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

func (e *TooLargeError) advice() string {
	const estimate = "an estimator, such as Adjusted (regression-adjusted sampling) or Permutation with Antithetic"
	if e.Members <= ExactLimit {
		return fmt.Sprintf("set Limit to %d to accept the cost, or use %s", e.Members, estimate)
	}
	return estimate
}

func duration(seconds float64) string {
	units := []struct {
		name string
		size float64
	}{{"years", 365.25 * 86400}, {"days", 86400}, {"hours", 3600}, {"minutes", 60}}
	for _, u := range units {
		if seconds >= u.size {
			return fmt.Sprintf("%.3g %s", seconds/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g seconds", seconds)
}

func memory(bytes float64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"}
	u := 0
	for bytes >= 1024 && u < len(units)-1 {
		bytes /= 1024
		u++
	}
	return fmt.Sprintf("%.3g %s", bytes, units[u])
}

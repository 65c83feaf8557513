package cli

import (
	"fmt"
	"slices"
	"time"

	"grange/valuation"
)

// checkSize complains, before anything is valued, when a method values every
// coalition and there are too many. each returns how long one takes, as
// measured, or zero when that is not known; times is how often they are valued.
func checkSize(method string, members, times int, flags valueFlags, each func() (time.Duration, error)) error {
	if slices.Contains(programs, method) && members > valuation.ProgramLimit {
		return &hintError{err: fmt.Errorf("%w: %s solves linear programs with 2^N variables, for up to %d members; these are %d",
			valuation.ErrTooLarge, method, valuation.ProgramLimit, members), code: exitUsage, try: "the Shapley value: --method exact for up to " +
			fmt.Sprintf("%d members, --method adjusted for more", valuation.ExactLimit)}
	}
	if !needsAll(method) || members <= flags.limit {
		return nil
	}
	large := &valuation.TooLargeError{Members: members, Limit: flags.limit}
	took, err := each()
	if err != nil {
		return err
	}
	evaluations := float64(times) * large.Evaluations()
	cost := ""
	if took > 0 {
		cost = fmt.Sprintf(" (%s at the %s that one took)", lasting(evaluations*took.Seconds()), lasting(took.Seconds()))
	}
	try := "--method adjusted, which samples"
	if members <= valuation.ExactLimit {
		try = fmt.Sprintf("--limit %d to accept that, or --method adjusted, which samples", members)
	}
	return &hintError{err: fmt.Errorf("%w: %d members are more than %d; they need %s evaluations%s and %s of memory",
		valuation.ErrTooLarge, members, flags.limit, many(evaluations), cost, bytesOf(large.Bytes())), code: exitUsage, try: try}
}

// many writes a number that may be very large.
func many(x float64) string {
	if x < 1e15 {
		return whole(int64(x))
	}
	return fmt.Sprintf("%.3g", x)
}

// lasting writes a time that may be very long.
func lasting(seconds float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"years", 365.25 * 86400}, {"days", 86400}, {"hours", 3600}, {"minutes", 60}, {"s", 1}} {
		if seconds >= u.size {
			return fmt.Sprintf("%.3g %s", seconds/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.3g ms", 1000*seconds)
}

func bytesOf(x float64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB"}
	u := 0
	for ; x >= 1024 && u < len(units)-1; u++ {
		x /= 1024
	}
	return fmt.Sprintf("%.3g %s", x, units[u])
}

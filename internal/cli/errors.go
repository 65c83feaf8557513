package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"grange/equilibrium"
	"grange/scenario"
)

// usageError is a wrong command line: exit code 2.
type usageError struct{ problem, try string }

func (e *usageError) Error() string { return e.problem }

// errInterrupted is what Ctrl-C ends in.
var errInterrupted = errors.New("interrupted")

// unprovenError is a result that was printed but did not converge or certify:
// exit code 3.
type unprovenError struct{ problem, try string }

func (e *unprovenError) Error() string { return e.problem }

// hintError is an error whose exit code and remedy are known where it arises.
type hintError struct {
	err  error
	code int
	try  string
}

func (e *hintError) Error() string { return e.err.Error() }

func (e *hintError) Unwrap() error { return e.err }

// fail prints an error with what to do about it, and returns the exit code.
func (a *app) fail(err error) int {
	var hinted *hintError
	if errors.Is(err, context.Canceled) && !errors.As(err, &hinted) {
		err = errInterrupted
	}
	code, try := a.classify(err)
	fmt.Fprintf(a.env.Stderr, "grange: %v\n", err)
	fmt.Fprintf(a.env.Stderr, "Try: %s\n", try)
	return code
}

func (a *app) classify(err error) (code int, try string) {
	var usage *usageError
	var unproven *unprovenError
	var invalid *scenario.Error
	var hinted *hintError
	switch {
	case errors.As(err, &hinted):
		return hinted.code, hinted.try
	case errors.Is(err, errInterrupted):
		if kept := a.kept.Load(); kept != nil {
			return exitFailed, *kept
		}
		return exitFailed, "run it again; nothing was written"
	case errors.As(err, &usage):
		return exitUsage, usage.try
	case errors.As(err, &unproven):
		return exitUnproven, unproven.try
	case errors.As(err, &invalid):
		switch {
		case invalid.Hint != "":
			try = invalid.Hint
		case strings.Contains(invalid.Problem, "found character '\t'"):
			try = fmt.Sprintf("indent line %d of %s with spaces: YAML takes no tabs there", invalid.Line, invalid.File)
		case invalid.Line != 0:
			try = fmt.Sprintf("correct line %d of %s; grange help scenario explains every key", invalid.Line, invalid.File)
		default:
			try = "grange help scenario explains the file"
		}
		return exitUsage, try
	case !a.started.Load():
		return exitUsage, "grange help"
	case errors.Is(err, equilibrium.ErrNotFinite):
		return exitFailed, "check accuracy, profit and cost at that profile; floor, ceiling and untrained limit the accuracy"
	}
	return exitFailed, "grange help"
}

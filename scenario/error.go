package scenario

import (
	"errors"
	"fmt"
)

// ErrInvalid is what every complaint about a scenario's text wraps.
var ErrInvalid = errors.New("scenario: invalid scenario")

// Error says what is wrong with a scenario file, and where.
type Error struct {
	File    string
	Line    int // 1 for the first line; 0 when no line is to blame
	Column  int
	Key     string // the key at fault, such as members[2].noise; "" for the file
	Problem string // what is wrong and what was expected
	Hint    string // what to do, an imperative; may be empty
}

// Error returns file:line:column: problem.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Problem)
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Problem)
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *Error) Unwrap() error { return ErrInvalid }

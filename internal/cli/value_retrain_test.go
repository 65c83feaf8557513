package cli

import (
	"context"
	"errors"
	"testing"

	"grange/federated"
	"grange/lab"
)

func TestRetriedTrainsAgainWhatMayWork(t *testing.T) {
	busy := errors.New("the card is busy")
	for _, c := range []struct {
		name    string
		retries int
		errs    []error // of the attempts that fail
		calls   int
		want    error
	}{
		{"at once", 0, nil, 1, nil},
		{"no retries", 0, []error{busy}, 1, busy},
		{"the third time", 2, []error{busy, busy}, 3, nil},
		{"never", 2, []error{busy, busy, busy}, 3, busy},
		{"diverged", 2, []error{federated.ErrNotFinite}, 1, federated.ErrNotFinite},
	} {
		calls := 0
		train := retried(func(context.Context, lab.Cell) (lab.Outcome, error) {
			calls++
			if calls <= len(c.errs) {
				return lab.Outcome{}, c.errs[calls-1]
			}
			return lab.Outcome{Accuracy: 0.5}, nil
		}, c.retries)
		_, err := train(t.Context(), lab.Cell{})
		if calls != c.calls || !errors.Is(err, c.want) {
			t.Errorf("%s: %d calls, %v; want %d, %v", c.name, calls, err, c.calls, c.want)
		}
		var failed *cellError
		if c.want != nil && !errors.As(err, &failed) {
			t.Errorf("%s: the cell is not named: %v", c.name, err)
		}
	}
}

func TestSeedZeroIsASeed(t *testing.T) {
	var s seed
	if got := s.or(7); got != 7 || s.String() != "" {
		t.Errorf("none given: %d, %q", got, s.String())
	}
	if err := s.Set("0"); err != nil || s.or(7) != 0 || s.String() != "0" {
		t.Errorf("zero given: %d, %q, %v", s.or(7), s.String(), err)
	}
	if err := s.Set("-1"); err == nil || s.or(7) != 0 {
		t.Errorf("a negative seed: %d, %v", s.or(7), err)
	}
}

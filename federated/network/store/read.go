package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"grange/federated/network"
)

// queryer is a database or a transaction.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Run is a run as the record has it.
type Run struct {
	network.RunInfo
	// Ended is when it ended, nil while it has not; Failure is why it did not end well.
	Ended   *time.Time
	Failure string

	id int64
}

// Declared is a declaration and when it was made.
type Declared struct {
	network.Declaration
	At time.Time `json:"at"`
}

// Delivered is an update that was accepted.
type Delivered struct {
	network.Delivery
	// Declared is how many data points the member had declared; it used Examples of them.
	Declared int       `json:"declared"`
	At       time.Time `json:"at"`
}

// Round is a finished round.
type Round struct {
	network.Finished
	Ended time.Time `json:"ended"`
}

// Entry is a note with its number.
type Entry struct {
	ID int64 `json:"id"`
	network.Note
}

// Latest is the folder's run, or nil if none was started.
func (s *Store) Latest(ctx context.Context) (*Run, error) {
	run, err := latest(ctx, s.reads)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return run, s.explain("reading the run", err)
}

func latest(ctx context.Context, db queryer) (*Run, error) {
	var run Run
	var identity, members string
	var started moment
	var ended sql.NullInt64
	var failure sql.NullString
	err := db.QueryRowContext(ctx, `SELECT id, name, scenario, identity, members, rounds, started, ended, failure FROM runs ORDER BY id DESC LIMIT 1`).
		Scan(&run.id, &run.Name, &run.Scenario, &identity, &members, &run.Rounds, &started, &ended, &failure)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(identity), &run.Identity); err != nil {
		return nil, fmt.Errorf("%w: a run's identity: %w", ErrDamaged, err)
	}
	if err := json.Unmarshal([]byte(members), &run.Members); err != nil {
		return nil, fmt.Errorf("%w: a run's members: %w", ErrDamaged, err)
	}
	run.Started, run.Failure = time.Time(started), failure.String
	if ended.Valid {
		at := time.Unix(0, ended.Int64).UTC()
		run.Ended = &at
	}
	return &run, nil
}

// Declarations are the run's, in member order.
func (s *Store) Declarations(ctx context.Context, run *Run) ([]Declared, error) {
	list, err := s.declarations(ctx, s.reads, run.id)
	return list, s.explain("reading declarations", err)
}

func (s *Store) declarations(ctx context.Context, db queryer, run int64) ([]Declared, error) {
	return collect(ctx, db, func(rows *sql.Rows) (d Declared, err error) {
		err = rows.Scan(&d.Member, &d.Contribution, &d.Data, &d.Transport, &d.Software, &d.Kernel, (*moment)(&d.At))
		return d, err
	}, `SELECT member, contribution, data, transport, software, kernel, at FROM declarations WHERE run = ? ORDER BY member`, run)
}

// Rounds are the run's finished rounds, in order.
func (s *Store) Rounds(ctx context.Context, run *Run) ([]Round, error) {
	list, err := s.finished(ctx, s.reads, run.id)
	return list, s.explain("reading rounds", err)
}

func (s *Store) finished(ctx context.Context, db queryer, run int64) ([]Round, error) {
	return collect(ctx, db, func(rows *sql.Rows) (r Round, err error) {
		var absent, warnings string
		if err := rows.Scan(&r.Finished.Round.Round, (*number)(&r.Accuracy), (*number)(&r.Loss), (*number)(&r.Training), &absent,
			(*digest)(&r.Model), &warnings, (*moment)(&r.Ended)); err != nil {
			return r, err
		}
		if err := json.Unmarshal([]byte(absent), &r.Absent); err != nil {
			return r, fmt.Errorf("%w: %s: round %d: %w", ErrDamaged, s.path(), r.Finished.Round.Round, err)
		}
		if err := json.Unmarshal([]byte(warnings), &r.Warnings); err != nil {
			return r, fmt.Errorf("%w: %s: round %d: %w", ErrDamaged, s.path(), r.Finished.Round.Round, err)
		}
		return r, nil
	}, `SELECT round, accuracy, loss, training, absent, model, warnings, at FROM rounds WHERE run = ? ORDER BY round`, run)
}

// Deliveries are the run's accepted updates from a round on, in the order of rounds and members.
func (s *Store) Deliveries(ctx context.Context, run *Run, from int) ([]Delivered, error) {
	list, err := s.deliveries(ctx, s.reads, run.id, from)
	return list, s.explain("reading updates", err)
}

func (s *Store) deliveries(ctx context.Context, db queryer, run int64, from int) ([]Delivered, error) {
	return collect(ctx, db, func(rows *sql.Rows) (d Delivered, err error) {
		var declared sql.NullInt64
		err = rows.Scan(&d.Round, &d.Member, &declared, &d.Examples, (*number)(&d.Loss), (*digest)(&d.Update), (*moment)(&d.At))
		d.Declared = int(declared.Int64)
		return d, err
	}, `SELECT round, member, declared, examples, loss, file, at FROM deliveries WHERE run = ? AND round >= ? ORDER BY round, member`, run, from)
}

// Notes are the run's notes after the one of a number, oldest first; with last above 0 only so many, the last ones.
func (s *Store) Notes(ctx context.Context, run *Run, after int64, last int) ([]Entry, error) {
	if last <= 0 {
		last = maxNotes
	}
	list, err := collect(ctx, s.reads, func(rows *sql.Rows) (e Entry, err error) {
		err = rows.Scan(&e.ID, (*moment)(&e.Time), &e.Kind, &e.Round, &e.Member, &e.Text)
		return e, err
	}, `SELECT * FROM (SELECT id, at, kind, round, member, text FROM notes WHERE run = ? AND id > ? ORDER BY id DESC LIMIT ?) ORDER BY id`,
		run.id, after, last)
	return list, s.explain("reading notes", err)
}

// collect reads all rows of a query.
func collect[T any](ctx context.Context, db queryer, scan func(*sql.Rows) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []T
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}

// Set keeps a setting of the folder.
func (s *Store) Set(ctx context.Context, key, value string) error {
	return s.durably(ctx, "writing a setting", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`, key, value)
		return err
	})
}

// Get is a setting of the folder, or "".
func (s *Store) Get(ctx context.Context, key string) (string, error) {
	var value string
	err := s.reads.QueryRowContext(ctx, `SELECT value FROM settings WHERE key = ?`, key).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return value, s.explain("reading a setting", err)
}

package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"grange/federated/network"
	"grange/federated/network/objects"
)

// maxNotes is how many notes are kept: whoever makes much noise does not fill the disk.
const maxNotes = 200_000

// Resume is network.Record's: a folder holds one run. A run that nobody has taken part in gives way to another: it was a
// start with the wrong file, or with a mistake in it.
func (s *Store) Resume(ctx context.Context, info network.RunInfo) (network.Saved, error) {
	var saved network.Saved
	err := s.write(ctx, "taking up the run", func(tx *sql.Tx) error {
		there, err := latest(ctx, tx)
		if errors.Is(err, sql.ErrNoRows) {
			return s.begin(ctx, tx, info)
		}
		if err != nil {
			return err
		}
		if other := there.same(info); other != nil {
			forgotten, err := forget(ctx, tx, there.id)
			if err != nil {
				return err
			}
			if !forgotten {
				return fmt.Errorf("%w: %s: %w", ErrOther, s.path(), other)
			}
			return s.begin(ctx, tx, info)
		}
		s.run = there.id
		if saved, err = s.saved(ctx, tx); err != nil {
			return err
		}
		if len(saved.Finished) > info.Rounds {
			return fmt.Errorf("%w: %s: %d rounds are finished, and only %d are asked for", ErrOther, s.path(), len(saved.Finished), info.Rounds)
		}
		// It may go on for longer than was first planned, and then it is open again.
		saved.Ended = there.Ended != nil && there.Failure == "" && len(saved.Finished) == info.Rounds
		if _, err := tx.ExecContext(ctx, `UPDATE runs SET rounds = ?, scenario = ? WHERE id = ?`, info.Rounds, blob(info.Scenario), s.run); err != nil || saved.Ended {
			return err
		}
		return s.reopen(ctx, tx)
	})
	return saved, err
}

// begin writes a run that is not there yet.
func (s *Store) begin(ctx context.Context, tx *sql.Tx, info network.RunInfo) error {
	identity, err := json.Marshal(info.Identity)
	if err != nil {
		return err
	}
	members, err := json.Marshal(info.Members)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO runs (name, scenario, identity, members, rounds, started) VALUES (?, ?, ?, ?, ?, ?)`,
		info.Name, blob(info.Scenario), string(identity), string(members), info.Rounds, info.Started.UnixNano())
	if err != nil {
		return err
	}
	s.run, err = result.LastInsertId()
	return err
}

// forget removes a run, unless somebody has taken part in it.
func forget(ctx context.Context, tx *sql.Tx, run int64) (bool, error) {
	for _, table := range []string{"declarations", "rounds", "deliveries"} {
		var rows int
		if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM `+table+` WHERE run = ?`, run).Scan(&rows); err != nil || rows > 0 {
			return false, err
		}
	}
	// Its notes speak of members by their numbers, which are others now.
	for _, statement := range []string{`DELETE FROM notes WHERE run = ?`, `DELETE FROM runs WHERE id = ?`} {
		if _, err := tx.ExecContext(ctx, statement, run); err != nil {
			return false, err
		}
	}
	return true, nil
}

// reopen forgets that the run has ended.
func (s *Store) reopen(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, `UPDATE runs SET ended = NULL, failure = NULL WHERE id = ?`, s.run)
	return err
}

// saved reads what a Federation goes on from.
func (s *Store) saved(ctx context.Context, db queryer) (network.Saved, error) {
	var saved network.Saved
	declarations, err := s.declarations(ctx, db, s.run)
	if err != nil {
		return saved, err
	}
	for _, d := range declarations {
		saved.Declarations = append(saved.Declarations, d.Declaration)
	}
	rounds, err := s.finished(ctx, db, s.run)
	if err != nil {
		return saved, err
	}
	for i, r := range rounds {
		if r.Finished.Round.Round != i+1 {
			return saved, fmt.Errorf("%w: %s: round %d is missing", ErrDamaged, s.path(), i+1)
		}
		saved.Finished = append(saved.Finished, r.Finished)
	}
	deliveries, err := s.deliveries(ctx, db, s.run, len(rounds)+1)
	if err != nil {
		return saved, err
	}
	for _, d := range deliveries {
		if d.Round == len(rounds)+1 {
			saved.Deliveries = append(saved.Deliveries, d.Delivery)
		}
	}
	return saved, nil
}

// Declare is network.Record's.
func (s *Store) Declare(ctx context.Context, d network.Declaration) error {
	return s.write(ctx, "writing a declaration", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO declarations (run, member, contribution, data, transport, software, kernel, at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET contribution = excluded.contribution, data = excluded.data,
			transport = excluded.transport, software = excluded.software, kernel = excluded.kernel, at = excluded.at`,
			s.run, d.Member, d.Contribution, d.Data, d.Transport, d.Software, d.Kernel, s.now().UnixNano())
		return err
	})
}

// Deliver is network.Record's. A member that is asked again, because its file was lost, replaces what it delivered; a
// finished round is never changed.
func (s *Store) Deliver(ctx context.Context, d network.Delivery) error {
	return s.write(ctx, "writing an update", func(tx *sql.Tx) error {
		if err := s.follows(ctx, tx, d.Round); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO deliveries (run, round, member, declared, examples, loss, file, at)
			VALUES (?, ?, ?, (SELECT contribution FROM declarations WHERE run = ? AND member = ?), ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET declared = excluded.declared, examples = excluded.examples, loss = excluded.loss,
			file = excluded.file, at = excluded.at`,
			s.run, d.Round, d.Member, s.run, d.Member, d.Examples, d.Loss, d.Update[:], s.now().UnixNano())
		return err
	})
}

// Finish is network.Record's.
func (s *Store) Finish(ctx context.Context, f network.Finished) error {
	absent, err := json.Marshal(f.Absent)
	if err != nil {
		return fmt.Errorf("%w: %w", network.ErrRecord, err)
	}
	warnings, err := json.Marshal(f.Warnings)
	if err != nil {
		return fmt.Errorf("%w: %w", network.ErrRecord, err)
	}
	return s.write(ctx, "writing a round", func(tx *sql.Tx) error {
		if err := s.follows(ctx, tx, f.Round.Round); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO rounds (run, round, accuracy, loss, training, absent, model, warnings, at)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			s.run, f.Round.Round, f.Accuracy, f.Loss, f.Training, string(absent), f.Model[:], string(warnings), s.now().UnixNano())
		return err
	})
}

// Rewind is network.Record's.
func (s *Store) Rewind(ctx context.Context, finished int) error {
	return s.write(ctx, "forgetting rounds that were lost", func(tx *sql.Tx) error {
		for _, table := range []string{"rounds", "deliveries"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE run = ? AND round > ?`, s.run, finished); err != nil {
				return err
			}
		}
		return s.reopen(ctx, tx)
	})
}

// follows checks that a round is the one after the last finished one.
func (s *Store) follows(ctx context.Context, tx *sql.Tx, round int) error {
	var last int
	if err := tx.QueryRowContext(ctx, `SELECT coalesce(max(round), 0) FROM rounds WHERE run = ?`, s.run).Scan(&last); err != nil {
		return err
	}
	if round != last+1 {
		return fmt.Errorf("round %d does not follow round %d, the last that is finished", round, last)
	}
	return nil
}

// End is network.Record's.
func (s *Store) End(ctx context.Context, failure error) error {
	var text sql.NullString
	if failure != nil {
		text = sql.NullString{String: failure.Error(), Valid: true}
	}
	return s.write(ctx, "writing how the run ended", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE runs SET ended = ?, failure = ? WHERE id = ?`, s.now().UnixNano(), text, s.run)
		return err
	})
}

// Note is network.Record's. The oldest are removed when there are very many.
func (s *Store) Note(ctx context.Context, n network.Note) error {
	return s.write(ctx, "writing a note", func(tx *sql.Tx) error {
		if n.Time.IsZero() {
			n.Time = s.now()
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO notes (run, at, kind, round, member, text) VALUES (?, ?, ?, ?, ?, ?)`,
			s.run, n.Time.UnixNano(), string(n.Kind), n.Round, n.Member, n.Text)
		if err != nil {
			return err
		}
		id, err := result.LastInsertId()
		if err == nil && id%1000 == 0 {
			_, err = tx.ExecContext(ctx, `DELETE FROM notes WHERE id <= ?`, id-maxNotes)
		}
		return err
	})
}

// blob is never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// number is a REAL in which NULL stands for not a number, which SQLite cannot keep.
type number float64

// Scan implements sql.Scanner.
func (n *number) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*n = number(math.NaN())
	case float64:
		*n = number(v)
	default:
		return fmt.Errorf("a number is a %T", value)
	}
	return nil
}

// digest is a digest as a BLOB.
type digest objects.Digest

// Scan implements sql.Scanner.
func (d *digest) Scan(value any) error {
	b, ok := value.([]byte)
	if !ok || len(b) != len(d) {
		return errors.New("a digest is not one")
	}
	copy(d[:], b)
	return nil
}

// moment is a time as an INTEGER.
type moment time.Time

// Scan implements sql.Scanner.
func (m *moment) Scan(value any) error {
	v, ok := value.(int64)
	if !ok {
		return fmt.Errorf("a time is a %T", value)
	}
	*m = moment(time.Unix(0, v).UTC())
	return nil
}

// Package store is a coordinator's record: an SQLite database in its folder, in which every declaration, update and
// round, every invitation, certificate and key is written before anybody is told of it.
//
// One coordinator at a time runs in a folder; a lock sees to it, and goes when the process does, however it ends.
// Commands beside it may read, and add an invitation or take back a certificate: every change is one transaction. Rounds
// and updates survive the end of the process; invitations, certificates and keys survive that of the machine as well.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"grange/federated/network"
)

var (
	// ErrMissing is a folder without a record.
	ErrMissing = errors.New("store: there is no record")
	// ErrExists is a folder that has a record already.
	ErrExists = errors.New("store: there is a record already")
	// ErrBusy is a folder in which a coordinator is running.
	ErrBusy = errors.New("store: a coordinator is running in this folder")
	// ErrVersion is a record of a newer version of Grange.
	ErrVersion = errors.New("store: written by a newer version")
	// ErrDamaged is a record that is not what was written.
	ErrDamaged = errors.New("store: damaged")
	// ErrOther is a record of another run.
	ErrOther = errors.New("store: belongs to another run")
)

// File is the database's name in the coordinator's folder. Unfinished is that of what a process left which was stopped
// while it made the database.
const (
	File       = "coordinator.db"
	Unfinished = "coordinator.unfinished"
)

// lockFile is what a running coordinator holds.
const lockFile = "coordinator.lock"

// Store is an open record. It implements network.Record and identity.Ledger, and is safe for concurrent use.
type Store struct {
	folder string
	db     *sql.DB // writes, one at a time
	reads  *sql.DB
	lock   *sql.DB
	now    func() time.Time

	run int64 // what Resume found
}

// Create makes the record of a new coordinator in a folder that is there. It is there whole or not at all.
func Create(ctx context.Context, folder string) (*Store, error) {
	path := filepath.Join(folder, File)
	if _, err := os.Stat(path); err == nil {
		return nil, fmt.Errorf("%w: %s", ErrExists, path)
	}
	if err := create(ctx, folder); err != nil {
		return nil, err
	}
	return open(ctx, folder, false)
}

// create makes the database beside its place, and moves it there.
func create(ctx context.Context, folder string) (err error) {
	beside := filepath.Join(folder, Unfinished)
	defer func() { err = errors.Join(err, os.RemoveAll(beside)) }()
	if err := errors.Join(os.RemoveAll(beside), os.Mkdir(beside, 0o700)); err != nil {
		return fmt.Errorf("%w: %w", network.ErrRecord, err)
	}
	file, err := os.OpenFile(filepath.Join(beside, File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", network.ErrRecord, err)
	}
	s, err := open(ctx, beside, true)
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("%w: %w", network.ErrRecord, err)
	}
	if err := os.Rename(filepath.Join(beside, File), filepath.Join(folder, File)); err != nil {
		return fmt.Errorf("%w: %w", network.ErrRecord, err)
	}
	return nil
}

// Open opens a record to read it and to write a line here and there, also beside a running coordinator.
func Open(ctx context.Context, folder string) (*Store, error) {
	if err := exists(folder); err != nil {
		return nil, err
	}
	return open(ctx, folder, false)
}

// Lead opens a record for the coordinator that is to run in the folder: it takes the lock and checks the database.
func Lead(ctx context.Context, folder string) (*Store, error) {
	if err := exists(folder); err != nil {
		return nil, err
	}
	s, err := open(ctx, folder, false)
	if err != nil {
		return nil, err
	}
	if s.lock == nil {
		if s.lock, err = takeLock(ctx, folder); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	if err := s.check(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Read opens a record that is only read.
func Read(ctx context.Context, folder string) (*Store, error) {
	if err := exists(folder); err != nil {
		return nil, err
	}
	reads, err := connect(folder, "query_only(1)")
	if err != nil {
		return nil, err
	}
	s := &Store{folder: folder, reads: reads, now: time.Now}
	if version, err := s.version(ctx, reads); err != nil {
		return nil, errors.Join(err, s.Close())
	} else if version < len(migrations) {
		return nil, errors.Join(fmt.Errorf("%w: %s is of an older version, and is renewed when the coordinator starts",
			ErrVersion, s.path()), s.Close())
	}
	return s, nil
}

func exists(folder string) error {
	path := filepath.Join(folder, File)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w in %s", ErrMissing, folder)
	} else if err != nil {
		return fmt.Errorf("%w: %w", network.ErrRecord, err)
	}
	return nil
}

func open(ctx context.Context, folder string, fresh bool) (*Store, error) {
	s := &Store{folder: folder, now: time.Now}
	var err error
	if s.db, err = connect(folder); err != nil {
		return nil, err
	}
	s.db.SetMaxOpenConns(1)
	if s.reads, err = connect(folder, "query_only(1)"); err == nil {
		s.reads.SetMaxOpenConns(4)
		err = s.migrate(ctx, fresh)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// connect opens the database. Nothing is read before it is used.
func connect(folder string, pragmas ...string) (*sql.DB, error) {
	path, err := filepath.Abs(filepath.Join(folder, File))
	if err != nil {
		return nil, err
	}
	query := url.Values{"_txlock": {"immediate"}, "_pragma": append([]string{
		"busy_timeout(20000)", "journal_mode(WAL)", "synchronous(NORMAL)", "foreign_keys(1)", "journal_size_limit(16777216)",
	}, pragmas...)}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query.Encode()}).String())
}

// takeLock holds a write lock on a database of its own for as long as the process lives. SQLite's locks do that on every
// system, and the system takes them back when the process is killed.
func takeLock(ctx context.Context, folder string) (*sql.DB, error) {
	path, err := filepath.Abs(filepath.Join(folder, lockFile))
	if err != nil {
		return nil, err
	}
	// Running looks at the lock for a moment, which is no reason not to start.
	query := url.Values{"_pragma": {"busy_timeout(1000)"}}
	lock, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	lock.SetMaxOpenConns(1)
	lock.SetConnMaxIdleTime(0)
	lock.SetConnMaxLifetime(0)
	if _, err = lock.ExecContext(ctx, "BEGIN EXCLUSIVE"); err == nil {
		return lock, nil
	}
	if code(err) == sqlite3.SQLITE_BUSY {
		err = fmt.Errorf("%w: %s", ErrBusy, folder)
	} else {
		err = fmt.Errorf("%w: %s: %w", network.ErrRecord, path, err)
	}
	return nil, errors.Join(err, lock.Close())
}

// Running reports whether a coordinator is running in a folder.
func Running(ctx context.Context, folder string) (bool, error) {
	path, err := filepath.Abs(filepath.Join(folder, lockFile))
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	query := url.Values{"mode": {"ro"}}
	lock, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: query.Encode()}).String())
	if err != nil {
		return false, err
	}
	defer lock.Close()
	var version int
	err = lock.QueryRowContext(ctx, "PRAGMA schema_version").Scan(&version)
	if code(err) == sqlite3.SQLITE_BUSY {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("%w: %s: %w", network.ErrRecord, path, err)
	}
	return false, nil
}

// Close closes the record and lets go of the lock.
func (s *Store) Close() error {
	var failed []error
	for _, db := range []*sql.DB{s.reads, s.db, s.lock} {
		if db != nil {
			failed = append(failed, db.Close())
		}
	}
	return errors.Join(failed...)
}

func (s *Store) path() string { return filepath.Join(s.folder, File) }

// code is SQLite's primary error code, or −1.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return -1
}

// refusal is an error that ends a transaction though nothing is wrong with the database.
type refusal struct{ error }

// explain says what an error of the database is to the caller.
func (s *Store) explain(doing string, err error) error {
	var refused refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused.error
	case errors.Is(err, ErrDamaged), errors.Is(err, ErrVersion), errors.Is(err, ErrOther):
		return err
	case code(err) == sqlite3.SQLITE_CORRUPT, code(err) == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: %s (%s): %w", ErrDamaged, s.path(), doing, err)
	}
	return fmt.Errorf("%w: %s: %w", network.ErrRecord, doing, err)
}

// write changes the record in one transaction: all of it or nothing.
func (s *Store) write(ctx context.Context, doing string, change func(*sql.Tx) error) error {
	return s.explain(doing, transact(ctx, s.db, change))
}

// durably is write for what must outlive a power failure: it waits until the disk has it.
func (s *Store) durably(ctx context.Context, doing string, change func(*sql.Tx) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return s.explain(doing, err)
	}
	defer conn.Close()
	if _, err = conn.ExecContext(ctx, "PRAGMA synchronous = FULL"); err == nil {
		err = transact(ctx, conn, change)
	}
	_, back := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA synchronous = NORMAL")
	return s.explain(doing, errors.Join(err, back))
}

func transact(ctx context.Context, db interface {
	BeginTx(ctx context.Context, options *sql.TxOptions) (*sql.Tx, error)
}, change func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err = change(tx); err == nil {
		return tx.Commit()
	}
	_ = tx.Rollback() // where the database itself has given up there is nothing left of it
	return err
}

// check looks through the whole database.
func (s *Store) check(ctx context.Context) error {
	rows, err := s.db.QueryContext(ctx, "PRAGMA quick_check(3)")
	if err != nil {
		return s.explain("checking it", err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return s.explain("checking it", err)
		}
		if line != "ok" {
			found = append(found, line)
		}
	}
	if err := rows.Err(); err != nil {
		return s.explain("checking it", err)
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %s: %s", ErrDamaged, s.path(), strings.Join(found, "; "))
	}
	return nil
}

package store

import (
	"context"
	"database/sql"
	"fmt"
)

// application marks SQLite files as ours: "GRNG".
const application = 0x47524e47

// migrations take the database from one version to the next; its version is how many have been done. They are only ever
// added to.
var migrations = []string{`
CREATE TABLE runs (
	id       INTEGER PRIMARY KEY,
	name     TEXT    NOT NULL,
	scenario BLOB    NOT NULL,
	identity TEXT    NOT NULL, -- JSON
	members  TEXT    NOT NULL, -- JSON
	rounds   INTEGER NOT NULL,
	started  INTEGER NOT NULL, -- times are nanoseconds since 1970
	ended    INTEGER,
	failure  TEXT
) STRICT;
CREATE TABLE declarations (
	run          INTEGER NOT NULL REFERENCES runs,
	member       INTEGER NOT NULL,
	contribution INTEGER NOT NULL,
	data         INTEGER NOT NULL,
	transport    TEXT    NOT NULL,
	software     TEXT    NOT NULL,
	kernel       TEXT    NOT NULL,
	at           INTEGER NOT NULL,
	PRIMARY KEY (run, member)
) STRICT;
CREATE TABLE rounds (
	run      INTEGER NOT NULL REFERENCES runs,
	round    INTEGER NOT NULL,
	accuracy REAL, -- NULL is not a number
	loss     REAL,
	training REAL,
	absent   TEXT    NOT NULL, -- JSON
	model    BLOB    NOT NULL,
	warnings TEXT    NOT NULL, -- JSON
	at       INTEGER NOT NULL,
	PRIMARY KEY (run, round)
) STRICT;
CREATE TABLE deliveries (
	run      INTEGER NOT NULL REFERENCES runs,
	round    INTEGER NOT NULL,
	member   INTEGER NOT NULL,
	declared INTEGER, -- the contribution at that time
	examples INTEGER NOT NULL,
	loss     REAL,
	file     BLOB    NOT NULL,
	at       INTEGER NOT NULL,
	PRIMARY KEY (run, round, member)
) STRICT;
CREATE TABLE notes (
	id     INTEGER PRIMARY KEY AUTOINCREMENT,
	run    INTEGER,
	at     INTEGER NOT NULL,
	kind   TEXT    NOT NULL,
	round  INTEGER NOT NULL,
	member INTEGER NOT NULL,
	text   TEXT    NOT NULL
) STRICT;
CREATE TABLE invitations (
	id      TEXT    PRIMARY KEY,
	hash    BLOB    NOT NULL,
	member  TEXT    NOT NULL,
	created INTEGER NOT NULL,
	expires INTEGER NOT NULL,
	serial  TEXT -- of the certificate it was used for
) STRICT;
CREATE TABLE certificates (
	serial      TEXT    PRIMARY KEY,
	member      TEXT    NOT NULL,
	fingerprint BLOB    NOT NULL UNIQUE,
	key         BLOB    NOT NULL,
	der         BLOB    NOT NULL,
	expires     INTEGER NOT NULL,
	revoked     INTEGER
) STRICT;
CREATE TABLE nodes (
	id      INTEGER PRIMARY KEY, -- the bits of an unsigned number
	member  TEXT    NOT NULL,
	key     BLOB    NOT NULL UNIQUE,
	at      INTEGER NOT NULL,
	revoked INTEGER
) STRICT;
CREATE TABLE settings (
	key   TEXT PRIMARY KEY,
	value TEXT NOT NULL
) STRICT;
`}

// version is the version of the database, which is not newer than we know.
func (s *Store) version(ctx context.Context, db *sql.DB) (int, error) {
	var version, id int
	err := db.QueryRowContext(ctx, "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id").Scan(&version, &id)
	switch {
	case err != nil:
		return 0, s.explain("opening it", err)
	case id != application && (id != 0 || version != 0):
		return 0, fmt.Errorf("%w: %s is a database of another program", ErrDamaged, s.path())
	case version > len(migrations):
		return 0, fmt.Errorf("%w: %s has version %d, and this program knows versions up to %d", ErrVersion, s.path(), version, len(migrations))
	}
	return version, nil
}

// migrate brings the database to the newest version, or makes a fresh one. An older one is changed only while no
// coordinator runs, and the lock is kept.
func (s *Store) migrate(ctx context.Context, fresh bool) error {
	version, err := s.version(ctx, s.db)
	if err != nil || version == len(migrations) {
		return err
	}
	if version == 0 && !fresh {
		return fmt.Errorf("%w: %s is empty", ErrDamaged, s.path())
	}
	if !fresh {
		if s.lock, err = takeLock(ctx, s.folder); err != nil {
			return err
		}
		if version, err = s.version(ctx, s.db); err != nil { // somebody may have been faster
			return err
		}
	}
	return s.write(ctx, "renewing its tables", func(tx *sql.Tx) error {
		for _, migration := range migrations[version:] {
			if _, err := tx.ExecContext(ctx, migration); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", application, len(migrations)))
		return err
	})
}

package store

import (
	"context"
	"fmt"
)

// Limit lets the database grow to so many pages at most, as a full disk does.
func (s *Store) Limit(ctx context.Context, pages int) error {
	_, err := s.db.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
	return err
}

// AddMigration adds a version for the time of a test.
func AddMigration(statement string) (remove func()) {
	before := migrations
	migrations = append(migrations[:len(before):len(before)], statement)
	return func() { migrations = before }
}

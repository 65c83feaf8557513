package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"grange/federated/network/identity"
)

// Invite is identity.Ledger's.
func (s *Store) Invite(ctx context.Context, i identity.Invitation) error {
	return s.durably(ctx, "writing an invitation", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO invitations (id, hash, member, created, expires) VALUES (?, ?, ?, ?, ?)`,
			i.ID, i.Hash[:], i.Member, i.Created.UnixNano(), i.Expires.UnixNano())
		return err
	})
}

// Redeem is identity.Ledger's.
func (s *Store) Redeem(ctx context.Context, id string, issue func(identity.Invitation, *identity.Issued) (identity.Issued, error)) (identity.Issued, error) {
	var issued identity.Issued
	err := s.durably(ctx, "writing a certificate", func(tx *sql.Tx) error {
		invitation := identity.Invitation{ID: id}
		var serial sql.NullString
		err := tx.QueryRowContext(ctx, `SELECT hash, member, created, expires, serial FROM invitations WHERE id = ?`, id).
			Scan((*digest)(&invitation.Hash), &invitation.Member, (*moment)(&invitation.Created), (*moment)(&invitation.Expires), &serial)
		if errors.Is(err, sql.ErrNoRows) {
			return refusal{fmt.Errorf("%w: not one of this coordinator", identity.ErrToken)}
		}
		if err != nil {
			return err
		}
		var before *identity.Issued
		if serial.Valid {
			there, err := find(ctx, tx, "serial", serial.String)
			if err != nil {
				return err
			}
			before = &there
		}
		if issued, err = issue(invitation, before); err != nil {
			return refusal{err}
		}
		if before != nil && before.Serial == issued.Serial {
			return nil
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO certificates (serial, member, fingerprint, key, der, expires) VALUES (?, ?, ?, ?, ?, ?)`,
			issued.Serial, issued.Member, issued.Fingerprint[:], issued.Key[:], issued.DER, issued.Expires.UnixNano()); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE invitations SET serial = ? WHERE id = ?`, issued.Serial, id)
		return err
	})
	return issued, err
}

// find looks a certificate up by a column.
func find(ctx context.Context, db queryer, column string, value any) (identity.Issued, error) {
	var c identity.Issued
	err := db.QueryRowContext(ctx, `SELECT serial, member, fingerprint, key, der, expires, revoked IS NOT NULL FROM certificates WHERE `+column+` = ?`, value).
		Scan(&c.Serial, &c.Member, (*digest)(&c.Fingerprint), (*digest)(&c.Key), &c.DER, (*moment)(&c.Expires), &c.Revoked)
	return c, err
}

// Issued is identity.Ledger's.
func (s *Store) Issued(ctx context.Context, fingerprint identity.Fingerprint) (identity.Issued, error) {
	issued, err := find(ctx, s.reads, "fingerprint", fingerprint[:])
	if errors.Is(err, sql.ErrNoRows) {
		return issued, fmt.Errorf("%w: no such certificate was given out", identity.ErrRevoked)
	}
	return issued, s.explain("reading a certificate", err)
}

// Enrol is identity.Ledger's.
func (s *Store) Enrol(ctx context.Context, node identity.Node) error {
	return s.durably(ctx, "writing a key", func(tx *sql.Tx) error {
		var member string
		err := tx.QueryRowContext(ctx, `SELECT member FROM nodes WHERE key = ? AND revoked IS NULL`, node.Key).Scan(&member)
		switch {
		case err == nil && member != node.Member:
			return refusal{fmt.Errorf("%w: this key is enrolled for %s", identity.ErrRequest, member)}
		case err != nil && !errors.Is(err, sql.ErrNoRows):
			return err
		}
		now := s.now().UnixNano()
		if _, err := tx.ExecContext(ctx, `UPDATE nodes SET revoked = ? WHERE member = ? AND revoked IS NULL`, now, node.Member); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `INSERT INTO nodes (id, member, key, at) VALUES (?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET member = excluded.member, at = excluded.at, revoked = NULL`, int64(node.ID), node.Member, node.Key, now)
		return err
	})
}

// Node is identity.Ledger's.
func (s *Store) Node(ctx context.Context, key []byte) (identity.Node, error) {
	node := identity.Node{Key: key}
	var id int64
	err := s.reads.QueryRowContext(ctx, `SELECT id, member FROM nodes WHERE key = ? AND revoked IS NULL`, key).Scan(&id, &node.Member)
	if errors.Is(err, sql.ErrNoRows) {
		return node, fmt.Errorf("%w: no such key is enrolled", identity.ErrRevoked)
	}
	node.ID = uint64(id)
	return node, s.explain("reading a key", err)
}

// Revoke is identity.Ledger's.
func (s *Store) Revoke(ctx context.Context, member string) (int, error) {
	revoked := 0
	err := s.durably(ctx, "taking back what was given out", func(tx *sql.Tx) error {
		now := s.now().UnixNano()
		for _, change := range []struct {
			statement string
			args      []any
		}{
			{`UPDATE certificates SET revoked = ? WHERE member = ? AND revoked IS NULL`, []any{now, member}},
			{`UPDATE nodes SET revoked = ? WHERE member = ? AND revoked IS NULL`, []any{now, member}},
			{`DELETE FROM invitations WHERE member = ? AND serial IS NULL`, []any{member}},
		} {
			result, err := tx.ExecContext(ctx, change.statement, change.args...)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			if err != nil {
				return err
			}
			revoked += int(n)
		}
		return nil
	})
	return revoked, err
}

// Admission is how a member may come in.
type Admission struct {
	Member string `json:"member"`
	// Invited is when its last unused token expires; Certificates and Nodes are those that are valid.
	Invited      *time.Time `json:"invited_until,omitempty"`
	Certificates int        `json:"certificates"`
	Nodes        int        `json:"flower_nodes"`
}

// Admissions lists everybody who was ever invited or enrolled, by name.
func (s *Store) Admissions(ctx context.Context) ([]Admission, error) {
	list, err := collect(ctx, s.reads, func(rows *sql.Rows) (a Admission, err error) {
		var invited sql.NullInt64
		err = rows.Scan(&a.Member, &invited, &a.Certificates, &a.Nodes)
		if invited.Valid {
			at := time.Unix(0, invited.Int64).UTC()
			a.Invited = &at
		}
		return a, err
	}, `SELECT m.member,
		(SELECT max(expires) FROM invitations i WHERE i.member = m.member AND serial IS NULL),
		(SELECT count(*) FROM certificates c WHERE c.member = m.member AND revoked IS NULL),
		(SELECT count(*) FROM nodes n WHERE n.member = m.member AND revoked IS NULL)
		FROM (SELECT member FROM invitations UNION SELECT member FROM certificates UNION SELECT member FROM nodes) m ORDER BY m.member`)
	return list, s.explain("reading who was admitted", err)
}

// Outsiders are those who can come in and are not among some members, by name.
func (s *Store) Outsiders(ctx context.Context, members []string) ([]Admission, error) {
	admitted, err := s.Admissions(ctx)
	return slices.DeleteFunc(admitted, func(a Admission) bool {
		invited := a.Invited != nil && a.Invited.After(s.now())
		return slices.Contains(members, a.Member) || !invited && a.Certificates == 0 && a.Nodes == 0
	}), err
}

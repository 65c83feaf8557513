package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"
)

// What can be wrong with who somebody says it is. Errors of this package wrap one of these.
var (
	// ErrToken is a token that cannot be read, is not known, was used, or has expired.
	ErrToken = errors.New("identity: token refused")
	// ErrName is a name that cannot be a member's, or is not the one that was asked for.
	ErrName = errors.New("identity: not a member's name")
	// ErrRequest is a certificate request, a certificate or a key that cannot be used.
	ErrRequest = errors.New("identity: certificate or key refused")
	// ErrRevoked is a certificate or a key that was revoked, or was never given out.
	ErrRevoked = errors.New("identity: revoked or not known")
	// ErrFolder is a folder without a usable identity.
	ErrFolder = errors.New("identity: folder cannot be used")
	// ErrPeer is a coordinator that is not the one that was asked for.
	ErrPeer = errors.New("identity: not the coordinator of this token")
)

// Fingerprint is the SHA-256 digest of a certificate or of a public key, both as DER.
type Fingerprint [sha256.Size]byte

// Invitation is a token as the coordinator remembers it: without its secret.
type Invitation struct {
	// ID finds it, and Hash is the digest of its secret.
	ID   string
	Hash [sha256.Size]byte
	// Member is whom it is for.
	Member  string
	Created time.Time
	Expires time.Time
}

// Issued is a certificate that was given out.
type Issued struct {
	Serial string
	Member string
	// Fingerprint is that of the certificate, and Key that of its public key.
	Fingerprint Fingerprint
	Key         Fingerprint
	// DER is the certificate itself.
	DER     []byte
	Expires time.Time
	Revoked bool
}

// Node is a Flower SuperNode whose public key was enrolled.
type Node struct {
	// ID is the number under which Flower knows it. It is made of the key, and never changes.
	ID     uint64
	Member string
	// Key is the public key as DER (SubjectPublicKeyInfo).
	Key []byte
}

// Ledger remembers whom the coordinator let in. What a method has returned from is kept, even if the machine stops in
// the next moment.
type Ledger interface {
	// Invite keeps an invitation.
	Invite(ctx context.Context, invitation Invitation) error
	// Redeem looks up an invitation by its ID and has the caller make a certificate for it, which is kept while the
	// invitation is marked as used, both or neither. The caller is given what was issued for it before, if it was used.
	// An unknown ID is ErrToken.
	Redeem(ctx context.Context, id string, issue func(invitation Invitation, before *Issued) (Issued, error)) (Issued, error)
	// Issued finds a certificate that was given out, or ErrRevoked if there is none of this fingerprint.
	Issued(ctx context.Context, fingerprint Fingerprint) (Issued, error)
	// Enrol keeps the key of a member's SuperNode, in place of the one it had. A key of another member is ErrRequest.
	Enrol(ctx context.Context, node Node) error
	// Node finds a SuperNode by its public key, or ErrRevoked if there is none.
	Node(ctx context.Context, key []byte) (Node, error)
	// Revoke takes back all certificates, keys and unused invitations of a member, and says how many there were.
	Revoke(ctx context.Context, member string) (int, error)
}

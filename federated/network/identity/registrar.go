package identity

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"
)

// Registrar lets members in, and knows them again. It is safe for concurrent use.
type Registrar struct {
	Authority *Authority
	Ledger    Ledger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

func (r *Registrar) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// Invite makes a token for a member, which it may use once and until it expires.
func (r *Registrar) Invite(ctx context.Context, member string, validity time.Duration) (Token, Invitation, error) {
	if err := CheckName(member); err != nil {
		return Token{}, Invitation{}, err
	}
	token, err := newToken(r.Authority.Fingerprint())
	if err != nil {
		return Token{}, Invitation{}, err
	}
	invitation := Invitation{ID: token.ID(), Hash: token.hash(), Member: member, Created: r.now(), Expires: r.now().Add(validity)}
	return token, invitation, r.Ledger.Invite(ctx, invitation)
}

// Enrol gives a member its certificate for a token and a certificate request (PKCS #10, DER), followed by the
// authority's, as PEM. The same token with the same key, as after an answer that was lost, gives the same certificate.
func (r *Registrar) Enrol(ctx context.Context, text string, request []byte) (member string, certificates []byte, err error) {
	token, err := ParseToken(text)
	if err != nil {
		return "", nil, err
	}
	if token.Authority != r.Authority.Fingerprint() {
		return "", nil, fmt.Errorf("%w: it is of another coordinator", ErrToken)
	}
	csr, err := parseRequest(request)
	if err != nil {
		return "", nil, err
	}
	issued, err := r.Ledger.Redeem(ctx, token.ID(), func(invitation Invitation, before *Issued) (Issued, error) {
		return r.redeem(token, csr, invitation, before)
	})
	if err != nil {
		return "", nil, err
	}
	return issued.Member, encodeCertificates(issued.DER, r.Authority.certificate.Raw), nil
}

func (r *Registrar) redeem(token Token, csr *x509.CertificateRequest, invitation Invitation, before *Issued) (Issued, error) {
	key := keyFingerprint(csr.RawSubjectPublicKeyInfo)
	switch {
	case !token.matches(invitation):
		return Issued{}, fmt.Errorf("%w: not one of this coordinator", ErrToken)
	case before != nil && (before.Key != key || before.Revoked):
		return Issued{}, fmt.Errorf("%w: it has been used", ErrToken)
	case !r.now().Before(invitation.Expires):
		return Issued{}, fmt.Errorf("%w: it expired on %s", ErrToken, invitation.Expires.UTC().Format(time.RFC1123))
	case before != nil:
		return *before, nil
	case csr.Subject.CommonName != "" && csr.Subject.CommonName != invitation.Member:
		return Issued{}, fmt.Errorf("%w: %.200q asks with a token for %q", ErrName, csr.Subject.CommonName, invitation.Member)
	}
	certificate, err := r.Authority.issue(invitation.Member, csr.PublicKey)
	if err != nil {
		return Issued{}, err
	}
	return Issued{
		Serial: serialText(certificate.SerialNumber), Member: invitation.Member, Fingerprint: sha256.Sum256(certificate.Raw),
		Key: key, DER: certificate.Raw, Expires: certificate.NotAfter,
	}, nil
}

// parseRequest reads a certificate request for an ECDSA key on P-256 and checks that whoever made it has the key.
func parseRequest(der []byte) (*x509.CertificateRequest, error) {
	if len(der) > maxPEM {
		return nil, fmt.Errorf("%w: a request of %d bytes, expected %d at most", ErrRequest, len(der), maxPEM)
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	if key, ok := csr.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: its key is not ECDSA on P-256", ErrRequest)
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return csr, nil
}

// Member is the name of the member at the other end of a connection: that in its certificate, if we gave it out and
// did not take it back. Without a certificate the error is ErrRevoked.
func (r *Registrar) Member(ctx context.Context, state tls.ConnectionState) (string, error) {
	if len(state.VerifiedChains) == 0 || len(state.VerifiedChains[0]) == 0 {
		return "", fmt.Errorf("%w: a member's certificate is needed", ErrRevoked)
	}
	leaf := state.VerifiedChains[0][0]
	issued, err := r.Ledger.Issued(ctx, sha256.Sum256(leaf.Raw))
	if err != nil {
		return "", err
	}
	if issued.Revoked || issued.Member != leaf.Subject.CommonName {
		return "", fmt.Errorf("%w: the certificate of %.200q was taken back", ErrRevoked, leaf.Subject.CommonName)
	}
	return issued.Member, nil
}

// EnrolKey lets in a member's Flower SuperNode by its public key: PEM as OpenSSL writes it, or a line as ssh-keygen does.
func (r *Registrar) EnrolKey(ctx context.Context, member string, text []byte) (Node, error) {
	if err := CheckName(member); err != nil {
		return Node{}, err
	}
	key, err := ParsePublicKey(text)
	if err != nil {
		return Node{}, err
	}
	node := Node{ID: NodeID(key), Member: member, Key: key}
	return node, r.Ledger.Enrol(ctx, node)
}

// Node is the SuperNode with a public key, which is given as SuperNodes do: PEM, or the DER in it.
func (r *Registrar) Node(ctx context.Context, key []byte) (Node, error) {
	if block, _ := pem.Decode(key); block != nil {
		key = block.Bytes
	}
	return r.Ledger.Node(ctx, key)
}

package identity

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
)

// Token is an invitation as the member gets it.
type Token struct {
	// Authority is the fingerprint of the certificate of the coordinator's authority.
	Authority Fingerprint

	id     [8]byte
	secret [20]byte
}

// tokenPrefix begins every token, so that one is known when it is seen, as by scanners for secrets.
const tokenPrefix = "grange-token-1-"

// tokenBytes is the length of a token before it is encoded: fingerprint, id, secret, checksum.
const tokenBytes = sha256.Size + 8 + 20 + 4

func newToken(authority Fingerprint) (Token, error) {
	t := Token{Authority: authority}
	if _, err := rand.Read(t.id[:]); err != nil {
		return t, err
	}
	_, err := rand.Read(t.secret[:])
	return t, err
}

// Text is the token as it is handed over. It is a secret: it is not called String, so that no log prints it by accident.
func (t Token) Text() string {
	data := append(append(append([]byte{}, t.Authority[:]...), t.id[:]...), t.secret[:]...)
	sum := sha256.Sum256(data)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(data, sum[:4]...))
}

// String is what may be shown of a token.
func (t Token) String() string { return "token " + t.ID() }

// ID is by which the coordinator finds the token. It is no secret.
func (t Token) ID() string { return hex.EncodeToString(t.id[:]) }

// hash is what the coordinator keeps of the secret.
func (t Token) hash() [sha256.Size]byte {
	return sha256.Sum256(append([]byte("grange token "), t.secret[:]...))
}

// matches compares the token with an invitation, in the same time wherever they differ.
func (t Token) matches(invitation Invitation) bool {
	hash := t.hash()
	return subtle.ConstantTimeCompare(hash[:], invitation.Hash[:]) == 1
}

// ParseToken reads what Text writes.
func ParseToken(text string) (Token, error) {
	var t Token
	encoded, found := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	if !found {
		return t, fmt.Errorf("%w: it does not begin with %s", ErrToken, tokenPrefix)
	}
	if len(encoded) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return t, fmt.Errorf("%w: it is not whole, or has something behind it", ErrToken)
	}
	data, err := base64.RawURLEncoding.Strict().DecodeString(encoded)
	// A line break within the text is passed over by the decoder, and counted in the text's length.
	if err != nil || len(data) != tokenBytes {
		return t, fmt.Errorf("%w: it was not copied right", ErrToken)
	}
	sum := sha256.Sum256(data[:tokenBytes-4])
	if string(sum[:4]) != string(data[tokenBytes-4:]) {
		return t, fmt.Errorf("%w: it was not copied right", ErrToken)
	}
	copy(t.Authority[:], data)
	copy(t.id[:], data[sha256.Size:])
	copy(t.secret[:], data[sha256.Size+8:])
	return t, nil
}

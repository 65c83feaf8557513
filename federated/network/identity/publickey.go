package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
)

// NodeID is the number of the SuperNode with a public key (DER): the same for ever, and never 0.
func NodeID(key []byte) uint64 {
	sum := sha256.Sum256(key)
	return binary.BigEndian.Uint64(sum[:])>>1 | 1
}

// ErrPrivateKey is a private key where a public one is wanted.
var ErrPrivateKey = errors.New("it is a private key")

// ParsePublicKey reads the public key of a SuperNode, PEM (SubjectPublicKeyInfo) or OpenSSH's line, and returns it as
// DER. It must be an ECDSA key.
func ParsePublicKey(text []byte) ([]byte, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("%w: a public key of %d bytes, expected %d at most", ErrRequest, len(text), maxPEM)
	}
	for _, mark := range []string{"PRIVATE KEY-----", "PuTTY-User-Key-File"} { // also where the rest of it is damaged
		if bytes.Contains(text, []byte(mark)) {
			return nil, fmt.Errorf("%w: %w", ErrRequest, ErrPrivateKey)
		}
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return parseSSH(text)
	}
	if block.Type != "PUBLIC KEY" {
		return nil, fmt.Errorf("%w: it is a %.40q, expected a PUBLIC KEY", ErrRequest, block.Type)
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return marshalPublic(key)
}

// marshalPublic writes an ECDSA key in the one way there is.
func marshalPublic(key any) ([]byte, error) {
	if _, ok := key.(*ecdsa.PublicKey); !ok {
		return nil, fmt.Errorf("%w: the public key is a %T, expected ECDSA", ErrRequest, key)
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return der, nil
}

var sshCurves = map[string]elliptic.Curve{
	"nistp256": elliptic.P256(), "nistp384": elliptic.P384(), "nistp521": elliptic.P521(),
}

// parseSSH reads "ecdsa-sha2-nistp384 AAAA… comment" (RFC 5656).
func parseSSH(text []byte) ([]byte, error) {
	words := bytes.Fields(text)
	if len(words) < 2 || !bytes.HasPrefix(words[0], []byte("ecdsa-sha2-")) {
		return nil, fmt.Errorf("%w: it is neither a PEM public key nor OpenSSH's line of an ECDSA key", ErrRequest)
	}
	blob, err := base64.StdEncoding.DecodeString(string(words[1]))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	var parts [3][]byte
	for i := range parts {
		if len(blob) < 4 || uint64(len(blob)-4) < uint64(binary.BigEndian.Uint32(blob)) {
			return nil, fmt.Errorf("%w: OpenSSH's key is cut short", ErrRequest)
		}
		n := 4 + int(binary.BigEndian.Uint32(blob))
		parts[i], blob = blob[4:n], blob[n:]
	}
	curve, known := sshCurves[string(parts[1])]
	if !known || !bytes.Equal(parts[0], words[0]) || len(blob) != 0 || string(parts[0]) != "ecdsa-sha2-"+string(parts[1]) {
		return nil, fmt.Errorf("%w: OpenSSH's key is of an unknown kind", ErrRequest)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(curve, parts[2])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return marshalPublic(key)
}

// Package identity says who is who in a federation.
//
// A coordinator has a certificate authority of its own, which issues one certificate to the coordinator and one to each
// member. A member is let in by a token, which an operator hands over: it says by its fingerprint which authority the
// coordinator belongs to, so the member knows the coordinator at first contact, and it holds a secret, so the coordinator
// knows the member. The member makes its key itself, and the key never leaves it. A token is used once and expires, by
// the coordinator's clock; of the secret the coordinator keeps a digest only.
//
// Flower's SuperNodes have no certificates. They sign with a key, whose public half an operator enrols.
//
// Keys are ECDSA on P-256, which every TLS library knows. Certificates are valid from a day before they are made, so that
// clocks may differ.
package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/renameio/v2"
)

const (
	// skew is how long before it is made a certificate is valid.
	skew = 24 * time.Hour
	// How long certificates are valid.
	authorityLife = 20 * 365 * 24 * time.Hour
	serverLife    = 397 * 24 * time.Hour
	memberLife    = 3 * 365 * 24 * time.Hour
	// maxPEM is the largest file or message that is read.
	maxPEM = 64 << 10
	// maxName is the longest member's name in bytes.
	maxName = 200
)

// CheckName says what is wrong with a member's name, if something is.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > maxName:
		return fmt.Errorf("%w: it has %d bytes, expected %d at most", ErrName, len(name), maxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Errorf("%w: %q has characters that cannot be printed", ErrName, name)
	case strings.TrimSpace(name) != name:
		return fmt.Errorf("%w: %q begins or ends with a space", ErrName, name)
	}
	return nil
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// keyFingerprint is that of a certificate's or request's public key.
func keyFingerprint(spki []byte) Fingerprint { return sha256.Sum256(spki) }

// encodeCertificates writes certificates as PEM.
func encodeCertificates(ders ...[]byte) []byte {
	var out []byte
	for _, der := range ders {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out
}

// decodeCertificates reads certificates, at least one and no more than four, and nothing else.
func decodeCertificates(text []byte) ([]*x509.Certificate, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("%w: certificates of %d bytes, expected %d at most", ErrRequest, len(text), maxPEM)
	}
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" || len(list) == 4 {
			return nil, fmt.Errorf("%w: a %.40q among up to four certificates", ErrRequest, block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRequest, err)
		}
		list = append(list, certificate)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no certificate", ErrRequest)
	}
	return list, nil
}

// encodeKey writes a private key as PEM.
func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// decodeKey reads a private key.
func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, fmt.Errorf("%w: no private key", ErrRequest)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: the key is a %T, expected ECDSA", ErrRequest, key)
	}
	return private, nil
}

// readFile reads a small file of an identity.
func readFile(folder, name string) ([]byte, error) {
	path := filepath.Join(folder, name)
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxPEM {
		return nil, fmt.Errorf("%w: %s is larger than %d bytes", ErrFolder, path, maxPEM)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no %s", ErrFolder, path)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return text, nil
}

// writeFile replaces a file as a whole, and keeps it from others.
func writeFile(folder, name string, text []byte) error {
	if err := renameio.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
		return fmt.Errorf("%w: %w", ErrFolder, err)
	}
	return nil
}

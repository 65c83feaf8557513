package identity

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The files of a member's identity.
const (
	memberKeyFile         = "key.pem"
	memberCertificateFile = "certificate.pem"
)

// Card is what a member shows the coordinator: its certificate and key.
type Card struct {
	// Member is its name.
	Member string

	certificate tls.Certificate
	authority   *x509.Certificate
}

// Request makes a certificate request for the member whose folder this is, which is made as well. The key is made at the
// first request and stays the same, so that asking again after an answer was lost is asking for the same.
func Request(folder string) (der []byte, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	var key *ecdsa.PrivateKey
	if _, err := os.Stat(filepath.Join(folder, memberKeyFile)); errors.Is(err, fs.ErrNotExist) {
		if key, err = newKey(); err != nil {
			return nil, err
		}
		text, err := encodeKey(key)
		if err != nil {
			return nil, err
		}
		if err := writeFile(folder, memberKeyFile, text); err != nil {
			return nil, err
		}
	} else {
		text, err := readFile(folder, memberKeyFile)
		if err != nil {
			return nil, err
		}
		if key, err = decodeKey(text); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrFolder, memberKeyFile, err)
		}
	}
	return x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{}}, key)
}

// FirstContact is TLS to a coordinator of which only the token is known. A coordinator whose authority is another one
// than the token's is ErrPeer, before anything is sent to it.
func (t Token) FirstContact() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"},
		ServerName: ServerName,
		// The chain is verified below, with the authority that the token names.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, certificate := range state.PeerCertificates {
				if sha256.Sum256(certificate.Raw) == t.Authority {
					return verifyServer(state, certificate)
				}
			}
			return fmt.Errorf("%w: its authority is another one", ErrPeer)
		},
	}
}

// verifyServer checks that the other end is the coordinator of an authority.
func verifyServer(state tls.ConnectionState, authority *x509.Certificate) error {
	if len(state.PeerCertificates) == 0 {
		return fmt.Errorf("%w: it shows no certificate", ErrPeer)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: roots, DNSName: ServerName, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPeer, err)
	}
	return nil
}

// Accept keeps what Registrar.Enrol returned for the request of this folder, if it is in order: a certificate for our
// key, of the authority that the token names.
func (t Token) Accept(folder string, certificates []byte) (*Card, error) {
	list, err := decodeCertificates(certificates)
	if err != nil {
		return nil, err
	}
	if len(list) != 2 || sha256.Sum256(list[1].Raw) != t.Authority {
		return nil, fmt.Errorf("%w: the certificate it issued is of another authority", ErrPeer)
	}
	text, err := readFile(folder, memberKeyFile)
	if err != nil {
		return nil, err
	}
	card, err := newCard(certificates, text)
	if err != nil {
		return nil, err
	}
	return card, writeFile(folder, memberCertificateFile, certificates)
}

// LoadCard opens what Accept kept.
func LoadCard(folder string) (*Card, error) {
	certificates, err := readFile(folder, memberCertificateFile)
	if err != nil {
		return nil, err
	}
	key, err := readFile(folder, memberKeyFile)
	if err != nil {
		return nil, err
	}
	card, err := newCard(certificates, key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, folder, err)
	}
	return card, nil
}

func newCard(certificates, key []byte) (*Card, error) {
	list, err := decodeCertificates(certificates)
	if err != nil {
		return nil, err
	}
	if len(list) != 2 {
		return nil, fmt.Errorf("%w: %d certificates, expected the member's and the authority's", ErrRequest, len(list))
	}
	private, err := decodeKey(key)
	if err != nil {
		return nil, err
	}
	if !private.PublicKey.Equal(list[0].PublicKey) {
		return nil, fmt.Errorf("%w: the certificate is for another key", ErrRequest)
	}
	if err := list[0].CheckSignatureFrom(list[1]); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	name := list[0].Subject.CommonName
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return &Card{
		Member:      name,
		certificate: tls.Certificate{Certificate: [][]byte{list[0].Raw}, PrivateKey: private, Leaf: list[0]},
		authority:   list[1],
	}, nil
}

// Config is the member's side of TLS: version 1.3 only, its certificate shown, the coordinator known by its authority.
func (c *Card) Config() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(c.authority)
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"h2"},
		ServerName:   ServerName,
		RootCAs:      roots,
		Certificates: []tls.Certificate{c.certificate},
	}
}

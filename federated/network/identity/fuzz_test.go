package identity_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"testing"
	"time"

	"grange/federated/network/identity"
)

func FuzzToken(f *testing.F) {
	f.Add("grange-token-1-AAAA")
	f.Add(identity.Token{}.Text())
	f.Fuzz(func(t *testing.T, text string) {
		token, err := identity.ParseToken(text)
		if err != nil {
			if !errors.Is(err, identity.ErrToken) {
				t.Fatal(err)
			}
			return
		}
		if again, err := identity.ParseToken(token.Text()); err != nil || again != token {
			t.Fatalf("%v, read again: %v", token, err)
		}
	})
}

func FuzzRequest(f *testing.F) {
	der, err := identity.Request(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(der)
	f.Fuzz(func(t *testing.T, der []byte) {
		csr, err := identity.ParseRequest(der)
		if err != nil && !errors.Is(err, identity.ErrRequest) || err == nil && csr.PublicKey == nil {
			t.Fatal(err)
		}
	})
}

func FuzzCertificates(f *testing.F) {
	authority, err := identity.CreateAuthority(f.TempDir(), []string{"localhost"}, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(authority.PEM())
	f.Add(append(authority.PEM(), authority.PEM()...))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := identity.DecodeCertificates(text)
		if err != nil && !errors.Is(err, identity.ErrRequest) || err == nil && (len(list) == 0 || len(list) > 4) {
			t.Fatal(err)
		}
	})
}

func FuzzPublicKey(f *testing.F) {
	text, ssh := superNode(f)
	f.Add(text)
	f.Add(ssh)
	f.Fuzz(func(t *testing.T, text []byte) {
		der, err := identity.ParsePublicKey(text)
		if err != nil {
			if !errors.Is(err, identity.ErrRequest) {
				t.Fatal(err)
			}
			return
		}
		if _, err := x509.ParsePKIXPublicKey(der); err != nil {
			t.Fatal(err)
		}
		again, err := identity.ParsePublicKey(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		if err != nil || string(again) != string(der) {
			t.Fatalf("written and read again: %v", err)
		}
	})
}

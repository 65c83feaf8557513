package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"grange/federated/network/identity"
	"grange/federated/network/store"
)

// office is a coordinator's registrar, and the clock it goes by.
type office struct {
	*identity.Registrar
	store  *store.Store
	folder string
	clock  time.Time
}

func (o *office) now() time.Time { return o.clock }

func open(t *testing.T) *office {
	t.Helper()
	o := &office{folder: t.TempDir(), clock: time.Now()}
	authority, err := identity.CreateAuthority(filepath.Join(o.folder, "identity"), []string{"localhost", "127.0.0.1"}, o.now)
	if err != nil {
		t.Fatal(err)
	}
	if o.store, err = store.Create(t.Context(), o.folder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.store.Close() })
	o.Registrar = &identity.Registrar{Authority: authority, Ledger: o.store, Now: o.now}
	return o
}

func invite(t *testing.T, o *office, member string) identity.Token {
	t.Helper()
	token, invitation, err := o.Invite(t.Context(), member, 24*time.Hour)
	if err != nil || invitation.Member != member || !invitation.Expires.Equal(o.clock.Add(24*time.Hour)) {
		t.Fatalf("invitation %+v, %v", invitation, err)
	}
	return token
}

func request(t *testing.T, folder string) []byte {
	t.Helper()
	der, err := identity.Request(folder)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// join is all a member does to be let in.
func join(t *testing.T, o *office, member string) *identity.Card {
	t.Helper()
	token, folder := invite(t, o, member), t.TempDir()
	name, certificates, err := o.Enrol(t.Context(), token.Text(), request(t, folder))
	if err != nil || name != member {
		t.Fatalf("enrolled as %q: %v", name, err)
	}
	if _, err := token.Accept(folder, certificates); err != nil {
		t.Fatal(err)
	}
	card, err := identity.LoadCard(folder)
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// meet has a client with this configuration meet the coordinator, and returns what each of them makes of it.
func meet(t *testing.T, o *office, client *tls.Config) (member string, refused, mine error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	var group sync.WaitGroup
	group.Go(func() {
		server := tls.Server(far, o.Authority.Config())
		if refused = server.Handshake(); refused == nil {
			member, refused = o.Member(t.Context(), server.ConnectionState())
		}
		far.Close()
	})
	conn := tls.Client(near, client)
	if mine = conn.Handshake(); mine == nil {
		if state := conn.ConnectionState(); state.Version != tls.VersionTLS13 || state.NegotiatedProtocol != "h2" {
			t.Errorf("TLS %x with %q", state.Version, state.NegotiatedProtocol)
		}
		conn.Read(make([]byte, 1)) // whatever else there is
	}
	near.Close()
	group.Wait()
	return member, refused, mine
}

func TestMemberIsKnownByItsCertificate(t *testing.T) {
	o := open(t)
	for _, name := range []string{"north", "St. Mary’s, Zürich"} {
		card := join(t, o, name)
		if member, refused, mine := meet(t, o, card.Config()); member != name || refused != nil || mine != nil || card.Member != name {
			t.Errorf("%s: %q, %v, %v", name, member, refused, mine)
		}
	}
	card := join(t, o, "south")
	if n, err := o.Ledger.Revoke(t.Context(), "south"); err != nil || n != 1 {
		t.Errorf("revoked %d: %v", n, err)
	}
	if _, refused, _ := meet(t, o, card.Config()); !errors.Is(refused, identity.ErrRevoked) {
		t.Errorf("a revoked certificate: %v", refused)
	}
	again := join(t, o, "south")
	if member, refused, _ := meet(t, o, again.Config()); member != "south" || refused != nil {
		t.Errorf("invited again: %q, %v", member, refused)
	}
	token := invite(t, o, "west")
	if _, refused, mine := meet(t, o, token.FirstContact()); !errors.Is(refused, identity.ErrRevoked) || mine != nil {
		t.Errorf("no certificate: %v, %v", refused, mine)
	}
}

func TestStrangers(t *testing.T) {
	o, other := open(t), open(t)
	card := join(t, other, "north")
	if _, refused, mine := meet(t, o, card.Config()); refused == nil || mine == nil {
		t.Errorf("a member of another federation: %v, %v", refused, mine)
	}
	token := invite(t, other, "north")
	if _, _, mine := meet(t, o, token.FirstContact()); !errors.Is(mine, identity.ErrPeer) {
		t.Errorf("another coordinator than the token's: %v", mine)
	}
	old := card.Config()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if _, refused, _ := meet(t, other, old); refused == nil {
		t.Error("TLS 1.2 was spoken")
	}
	// A member may not play the coordinator for others, though the authority signed its certificate.
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(other.Authority.PEM())
	_, err := card.Config().Certificates[0].Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	if err == nil {
		t.Error("a member's certificate serves a coordinator")
	}
}

func TestTokens(t *testing.T) {
	o := open(t)
	folder := t.TempDir()
	csr := request(t, folder)
	enrol := func(text string, csr []byte) error {
		_, _, err := o.Enrol(t.Context(), text, csr)
		return err
	}
	token := invite(t, o, "north")
	if strings.Contains(token.String(), token.Text()) || !strings.Contains(token.String(), token.ID()) {
		t.Errorf("a token shows as %s", token)
	}
	parsed, err := identity.ParseToken("  " + token.Text() + "\n")
	if err != nil || parsed != token {
		t.Errorf("read back: %v", err)
	}
	_, first, err := o.Enrol(t.Context(), token.Text(), csr)
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := o.Enrol(t.Context(), token.Text(), request(t, folder))
	if err != nil || string(second) != string(first) {
		t.Errorf("asked again after a lost answer: %v", err)
	}
	if err := enrol(token.Text(), request(t, t.TempDir())); !errors.Is(err, identity.ErrToken) || !strings.Contains(err.Error(), "used") {
		t.Errorf("used with another key: %v", err)
	}
	late := invite(t, o, "south")
	o.clock = o.clock.Add(24 * time.Hour)
	if err := enrol(late.Text(), csr); !errors.Is(err, identity.ErrToken) || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a day later: %v", err)
	}
	taken := invite(t, o, "east")
	if n, err := o.Ledger.Revoke(t.Context(), "east"); n != 1 || err != nil {
		t.Errorf("revoked %d, %v", n, err)
	}
	if err := enrol(taken.Text(), csr); !errors.Is(err, identity.ErrToken) {
		t.Errorf("taken back: %v", err)
	}
	if err := enrol(invite(t, open(t), "north").Text(), csr); !errors.Is(err, identity.ErrToken) || !strings.Contains(err.Error(), "another coordinator") {
		t.Errorf("of another coordinator: %v", err)
	}
	// The right token's id with another secret: the last of the secret's bytes changed, and the checksum with it.
	forged := invite(t, o, "west")
	if err := enrol(forged.Forge().Text(), csr); !errors.Is(err, identity.ErrToken) || !strings.Contains(err.Error(), "not one of this") {
		t.Errorf("forged: %v", err)
	}
	text := token.Text()
	for _, wrong := range []string{"", "x", text[:40], text + "A", strings.Replace(text, text[60:61], "!", 1), text[:70] + string(text[70]^1) + text[71:]} {
		if _, err := identity.ParseToken(wrong); !errors.Is(err, identity.ErrToken) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

func TestRequests(t *testing.T) {
	o := open(t)
	make := func(curve elliptic.Curve, name string) []byte {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	broken := make(elliptic.P256(), "north")
	broken[len(broken)-1] ^= 1
	for what, c := range map[string]struct {
		csr  []byte
		want error
	}{
		"another name":        {make(elliptic.P256(), "south"), identity.ErrName},
		"another curve":       {make(elliptic.P384(), "north"), identity.ErrRequest},
		"a wrong signature":   {broken, identity.ErrRequest},
		"nothing":             {nil, identity.ErrRequest},
		"too much":            {append(make(elliptic.P256(), "north"), 0), identity.ErrRequest},
		"far too much":        {[]byte(strings.Repeat("x", 1<<20)), identity.ErrRequest},
		"the member's own CN": {make(elliptic.P256(), "north"), nil},
	} {
		token := invite(t, o, "north")
		if _, _, err := o.Enrol(t.Context(), token.Text(), c.csr); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, name := range []string{"", " a", "a\n", "a\x00b", "\xff", strings.Repeat("x", 201)} {
		if _, _, err := o.Invite(t.Context(), name, time.Hour); !errors.Is(err, identity.ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAcceptRefusesWhatIsNotOurs(t *testing.T) {
	o, other := open(t), open(t)
	token, folder := invite(t, o, "north"), t.TempDir()
	_, certificates, err := o.Enrol(t.Context(), token.Text(), request(t, folder))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := t.TempDir()
	request(t, elsewhere)
	if _, err := token.Accept(elsewhere, certificates); !errors.Is(err, identity.ErrRequest) {
		t.Errorf("for another key: %v", err)
	}
	foreign := invite(t, other, "north")
	if _, err := foreign.Accept(folder, certificates); !errors.Is(err, identity.ErrPeer) {
		t.Errorf("of another authority: %v", err)
	}
	for _, wrong := range []string{"", "x", string(certificates[:100]), string(certificates) + string(certificates) + string(certificates)} {
		if _, err := token.Accept(folder, []byte(wrong)); err == nil {
			t.Errorf("%d bytes were accepted", len(wrong))
		}
	}
	if _, err := identity.LoadCard(folder); !errors.Is(err, identity.ErrFolder) {
		t.Errorf("nothing accepted: %v", err)
	}
}

func TestServerCertificateIsRenewed(t *testing.T) {
	o := open(t)
	folder := filepath.Join(o.folder, "identity")
	show := func() *x509.Certificate {
		t.Helper()
		certificate, err := o.Authority.Config().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return certificate.Leaf
	}
	first := show()
	o.clock = o.clock.Add(200 * 24 * time.Hour)
	if !show().Equal(first) {
		t.Error("renewed in the first half of its life")
	}
	o.clock = o.clock.Add(100 * 24 * time.Hour)
	second := show()
	if second.Equal(first) || second.NotAfter.Before(o.clock.Add(390*24*time.Hour)) {
		t.Errorf("valid until %s on %s", second.NotAfter, o.clock)
	}
	if got := o.Authority.Hosts(); len(got) != 2 || got[0] != "localhost" || got[1] != "127.0.0.1" {
		t.Errorf("hosts %q", got)
	}
	opened, err := identity.OpenAuthority(folder, o.now)
	if err != nil || opened.Fingerprint() != o.Authority.Fingerprint() {
		t.Fatal(err)
	}
	third, err := opened.Config().GetCertificate(nil)
	if err != nil || !third.Leaf.Equal(second) {
		t.Errorf("the renewed one was not kept: %v", err)
	}
	for _, name := range []string{"authority-key.pem", "server.pem", "authority.pem"} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if _, err := identity.CreateAuthority(folder, nil, o.now); !errors.Is(err, identity.ErrFolder) {
		t.Errorf("made twice: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "server.pem"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.OpenAuthority(folder, o.now); !errors.Is(err, identity.ErrFolder) {
		t.Errorf("damaged: %v", err)
	}
}

// A host that is added while the coordinator runs is in the certificate that it shows from then on, and in those after it.
func TestHostsAreAdded(t *testing.T) {
	o := open(t)
	hosts := func() []string {
		t.Helper()
		certificate, err := o.Authority.Config().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, name := range certificate.Leaf.DNSNames {
			if name != identity.ServerName {
				list = append(list, name)
			}
		}
		for _, address := range certificate.Leaf.IPAddresses {
			list = append(list, address.String())
		}
		return list
	}
	card := join(t, o, "north")
	if got := hosts(); !slices.Equal(got, []string{"localhost", "127.0.0.1"}) {
		t.Errorf("hosts %q", got)
	}
	beside, err := identity.OpenAuthority(filepath.Join(o.folder, "identity"), o.now)
	if err != nil {
		t.Fatal(err)
	}
	if err := beside.AddHosts("localhost", "coordinator.example.org", "2001:DB8::1"); err != nil {
		t.Fatal(err)
	}
	want := []string{"localhost", "coordinator.example.org", "127.0.0.1", "2001:db8::1"}
	if got := hosts(); !slices.Equal(got, want) || !slices.Equal(beside.Hosts(), want) {
		t.Errorf("hosts %q and %q, want %q", got, beside.Hosts(), want)
	}
	if beside.Fingerprint() != o.Authority.Fingerprint() {
		t.Error("another authority")
	}
	if member, refused, mine := meet(t, o, card.Config()); member != "north" || refused != nil || mine != nil {
		t.Errorf("%q, %v, %v", member, refused, mine)
	}
	o.clock = o.clock.Add(300 * 24 * time.Hour)
	if got := hosts(); !slices.Equal(got, want) {
		t.Errorf("renewed for %q, want %q", got, want)
	}
	// A file that is damaged by now does not keep the coordinator from going on.
	if err := os.WriteFile(filepath.Join(o.folder, "identity", "server.pem"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := hosts(); !slices.Equal(got, want) {
		t.Errorf("hosts %q, want %q", got, want)
	}
}

// A clock that is an hour off, either way, does no harm.
func TestClocksDiffer(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		o := open(t)
		o.clock = o.clock.Add(off)
		card := join(t, o, "north")
		if member, refused, mine := meet(t, o, card.Config()); member != "north" || refused != nil || mine != nil {
			t.Errorf("%v: %q, %v, %v", off, member, refused, mine)
		}
		token := invite(t, o, "south")
		if _, _, mine := meet(t, o, token.FirstContact()); mine != nil {
			t.Errorf("first contact, %v: %v", off, mine)
		}
	}
}

// superNode makes a public key as SuperNodes have, as PEM and as OpenSSH's line.
func superNode(t testing.TB) (pemText, ssh []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	var blob []byte
	for _, part := range []string{"ecdsa-sha2-nistp384", "nistp384", string(point)} {
		blob = append(binary.BigEndian.AppendUint32(blob, uint32(len(part))), part...)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		[]byte("ecdsa-sha2-nistp384 " + base64.StdEncoding.EncodeToString(blob) + " somebody@somewhere\n")
}

func TestSuperNodes(t *testing.T) {
	o := open(t)
	text, ssh := superNode(t)
	node, err := o.EnrolKey(t.Context(), "north", text)
	if err != nil || node.ID == 0 || node.ID>>63 != 0 {
		t.Fatalf("%+v, %v", node, err)
	}
	same, err := o.EnrolKey(t.Context(), "north", ssh)
	if err != nil || same.ID != node.ID {
		t.Errorf("as OpenSSH writes it: %+v, %v", same, err)
	}
	if found, err := o.Node(t.Context(), text); err != nil || found.ID != node.ID || found.Member != "north" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := o.EnrolKey(t.Context(), "south", text); !errors.Is(err, identity.ErrRequest) || !strings.Contains(err.Error(), "north") {
		t.Errorf("for a second member: %v", err)
	}
	if err := o.store.Close(); err != nil {
		t.Fatal(err)
	}
	if o.store, err = store.Open(t.Context(), o.folder); err != nil {
		t.Fatal(err)
	}
	o.Ledger = o.store
	if found, err := o.Node(t.Context(), node.Key); err != nil || found.ID != node.ID {
		t.Errorf("after a restart: %+v, %v", found, err)
	}
	second, _ := superNode(t)
	if _, err := o.EnrolKey(t.Context(), "north", second); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Node(t.Context(), text); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("a key that was replaced: %v", err)
	}
	admitted, err := o.store.Admissions(t.Context())
	if err != nil || len(admitted) != 1 || admitted[0].Member != "north" || admitted[0].Nodes != 1 {
		t.Errorf("admitted %+v, %v", admitted, err)
	}
	if _, err := o.Ledger.Revoke(t.Context(), "north"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Node(t.Context(), second); !errors.Is(err, identity.ErrRevoked) {
		t.Errorf("revoked: %v", err)
	}
	if back, err := o.EnrolKey(t.Context(), "south", text); err != nil || back.ID != node.ID {
		t.Errorf("a freed key: %+v, %v", back, err)
	}
}

package identity

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// ServerName is a name that every coordinator's certificate has, beside those of its hosts. Members ask for it: they
// know the coordinator by its authority, whatever address they reach it by.
const ServerName = "coordinator.grange.internal"

// The files of a coordinator's identity.
const (
	authorityFile    = "authority.pem"
	authorityKeyFile = "authority-key.pem"
	serverFile       = "server.pem" // key and certificate in one, so that they are always of each other
)

// Authority is a coordinator's certificate authority with the coordinator's own certificate. It is safe for concurrent
// use.
type Authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	now         func() time.Time

	mutex  sync.Mutex
	server *tls.Certificate
	// file is what server was read from, as it was then.
	file os.FileInfo
}

// CreateAuthority makes an authority in a folder, which is made as well, for a coordinator that is reached under these
// host names and addresses. One that is there is never replaced.
func CreateAuthority(folder string, hosts []string, now func() time.Time) (*Authority, error) {
	if _, err := os.Stat(filepath.Join(folder, authorityFile)); err == nil {
		return nil, fmt.Errorf("%w: %s has an authority already", ErrFolder, folder)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Grange coordinator's authority", SerialNumber: serial.Text(16)},
		NotBefore: now().Add(-skew), NotAfter: now().Add(authorityLife),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &Authority{folder: folder, certificate: certificate, key: key, now: now}
	text, err := encodeKey(key)
	if err != nil {
		return nil, err
	}
	if err := writeFile(folder, authorityKeyFile, text); err != nil {
		return nil, err
	}
	if err := a.renew(hosts); err != nil {
		return nil, err
	}
	// This one last: with it the identity is whole.
	return a, writeFile(folder, authorityFile, encodeCertificates(der))
}

// OpenAuthority opens what CreateAuthority made.
func OpenAuthority(folder string, now func() time.Time) (*Authority, error) {
	a := &Authority{folder: folder, now: now}
	text, err := readFile(folder, authorityFile)
	if err != nil {
		return nil, err
	}
	certificates, err := decodeCertificates(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, authorityFile, err)
	}
	a.certificate = certificates[0]
	if text, err = readFile(folder, authorityKeyFile); err != nil {
		return nil, err
	}
	if a.key, err = decodeKey(text); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, authorityKeyFile, err)
	}
	if !a.key.PublicKey.Equal(a.certificate.PublicKey) {
		return nil, fmt.Errorf("%w: %s is not the key of %s", ErrFolder, authorityKeyFile, authorityFile)
	}
	if err := a.read(); err != nil {
		return nil, err
	}
	return a, nil
}

// read reads the coordinator's own certificate. The mutex is held, or nobody else knows of a.
func (a *Authority) read() error {
	file, _ := os.Stat(filepath.Join(a.folder, serverFile)) // if that fails, reading it does as well, and says why
	text, err := readFile(a.folder, serverFile)
	if err != nil {
		return err
	}
	server, err := tls.X509KeyPair(text, text)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrFolder, serverFile, err)
	}
	a.server, a.file = &server, file
	return nil
}

// AddHosts makes the coordinator's certificate anew, signed by the same authority, if it is not for all of these host names
// and addresses as well. A coordinator that runs shows the new one from then on.
func (a *Authority) AddHosts(hosts ...string) error {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	all := hostsOf(a.server.Leaf)
	before := len(all)
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			host = address.String()
		}
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	if len(all) == before {
		return nil
	}
	return a.renew(all)
}

// Fingerprint is that of the authority's certificate.
func (a *Authority) Fingerprint() Fingerprint { return sha256.Sum256(a.certificate.Raw) }

// PEM is the authority's certificate, for those who are to trust it.
func (a *Authority) PEM() []byte { return encodeCertificates(a.certificate.Raw) }

// Hosts are the names and addresses that the coordinator's certificate is for.
func (a *Authority) Hosts() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return hostsOf(a.server.Leaf)
}

func hostsOf(leaf *x509.Certificate) []string {
	var hosts []string
	for _, name := range leaf.DNSNames {
		if name != ServerName {
			hosts = append(hosts, name)
		}
	}
	for _, address := range leaf.IPAddresses {
		hosts = append(hosts, address.String())
	}
	return hosts
}

// renew makes a new certificate for the coordinator itself. The mutex is held, or nobody else knows of a.
func (a *Authority) renew(hosts []string) error {
	key, err := newKey()
	if err != nil {
		return err
	}
	serial, err := newSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "Grange coordinator"}, DNSNames: []string{ServerName},
		NotBefore: a.now().Add(-skew), NotAfter: a.now().Add(serverLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
		} else if !slices.Contains(template.DNSNames, host) {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("%w: a certificate for %q: %w", ErrRequest, hosts, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	text, err := encodeKey(key)
	if err != nil {
		return err
	}
	// Members are sent the authority's certificate as well: they compare it with the fingerprint in their token.
	a.server = &tls.Certificate{Certificate: [][]byte{der, a.certificate.Raw}, PrivateKey: key, Leaf: leaf}
	return writeFile(a.folder, serverFile, append(text, encodeCertificates(a.server.Certificate...)...))
}

// serverCertificate is the coordinator's own, renewed in the last third of its life.
func (a *Authority) serverCertificate() (*tls.Certificate, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	// Somebody may have added a host. What cannot be read is left for the next call.
	file, err := os.Stat(filepath.Join(a.folder, serverFile))
	if err == nil && (a.file == nil || !os.SameFile(file, a.file) || !file.ModTime().Equal(a.file.ModTime())) {
		_ = a.read()
	}
	leaf := a.server.Leaf
	if left := leaf.NotAfter.Sub(a.now()); left > leaf.NotAfter.Sub(leaf.NotBefore)/3 {
		return a.server, nil
	}
	before := a.server
	if err := a.renew(hostsOf(leaf)); err != nil && a.server == before {
		return nil, err
	}
	return a.server, nil // a new one that could not be written serves as well, until the process ends
}

// issue makes a member's certificate.
func (a *Authority) issue(member string, public any) (*x509.Certificate, error) {
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: member},
		NotBefore: a.now().Add(-skew), NotAfter: a.now().Add(memberLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return x509.ParseCertificate(der)
}

// pool is a pool with the authority alone.
func (a *Authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Config is the coordinator's side of TLS: version 1.3 only, and clients' certificates are verified where they are
// given. Who needs one is for each method to decide. Clients that know HTTP/1.1 are spoken to in it, others in HTTP/2.
func (a *Authority) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS13,
		NextProtos:     []string{"http/1.1", "h2"},
		ClientAuth:     tls.VerifyClientCertIfGiven,
		ClientCAs:      a.pool(),
		Time:           a.now,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.serverCertificate() },
	}
}

// serialText is how a serial number is written.
func serialText(serial *big.Int) string { return serial.Text(16) }

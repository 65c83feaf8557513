package listen_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"

	"grange/federated/network/identity"
	"grange/federated/network/listen"
	"grange/federated/network/store"
)

// server is a gRPC and an HTTP server on one port.
type server struct {
	*listen.Listener
	address string
	office  *identity.Registrar
	roots   *x509.CertPool
	refused chan error
	peers   chan credentials.AuthInfo
}

func serve(t *testing.T, change func(*listen.Config)) *server {
	t.Helper()
	authority, err := identity.CreateAuthority(t.TempDir(), []string{"127.0.0.1"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	record, err := store.Create(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { record.Close() })
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: inner.Addr().String(), roots: x509.NewCertPool(), refused: make(chan error, 1000), peers: make(chan credentials.AuthInfo, 1000)}
	s.roots.AppendCertsFromPEM(authority.PEM())
	s.office = &identity.Registrar{Authority: authority, Ledger: record}
	config := listen.Config{TLS: authority.Config(), Refused: func(_ net.Addr, reason error) { s.refused <- reason }}
	if change != nil {
		change(&config)
	}
	s.Listener = listen.New(inner, config)
	calls := grpc.NewServer(grpc.Creds(listen.Credentials()), grpc.UnaryInterceptor(
		func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			from, _ := peer.FromContext(ctx)
			s.peers <- from.AuthInfo
			return handler(ctx, request)
		}))
	healthpb.RegisterHealthServer(calls, health.NewServer())
	members := grpc.NewServer(grpc.Creds(listen.Credentials()))
	known := health.NewServer()
	known.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING) // tells the two apart
	healthpb.RegisterHealthServer(members, known)
	pages := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			t.Error("a page without TLS")
		}
		io.WriteString(w, r.Proto)
	})}
	go calls.Serve(s.GRPC())
	go members.Serve(s.Members())
	go pages.Serve(s.HTTP())
	go s.Serve()
	t.Cleanup(func() {
		s.Close()
		calls.Stop()
		members.Stop()
		pages.Close()
	})
	return s
}

// check asks the open server.
func check(t *testing.T, address string, with credentials.TransportCredentials) error {
	t.Helper()
	answer, err := ask(t, address, with)
	if err == nil && answer.Status != healthpb.HealthCheckResponse_SERVING {
		t.Error("the members' server answered")
	}
	return err
}

func ask(t *testing.T, address string, with credentials.TransportCredentials) (*healthpb.HealthCheckResponse, error) {
	t.Helper()
	client, err := grpc.NewClient(address, grpc.WithTransportCredentials(with))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	return healthpb.NewHealthClient(client).Check(t.Context(), &healthpb.HealthCheckRequest{})
}

func (s *server) page(t *testing.T, http2 bool) (string, error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.roots}, ForceAttemptHTTP2: http2}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Get("https://" + s.address + "/healthz")
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func TestOnePortForBoth(t *testing.T) {
	s := serve(t, nil)
	if err := check(t, s.address, credentials.NewTLS(&tls.Config{RootCAs: s.roots})); err != nil {
		t.Error(err)
	}
	if info, ok := (<-s.peers).(credentials.TLSInfo); !ok || info.State.Version != tls.VersionTLS13 || info.SecurityLevel != credentials.PrivacyAndIntegrity {
		t.Errorf("the peer is %+v", info)
	}
	for _, http2 := range []bool{false, true} { // offered only HTTP/1.1, and both
		if proto, err := s.page(t, http2); err != nil || proto != "HTTP/1.1" {
			t.Errorf("%q, %v", proto, err)
		}
	}
	if in, out := s.Bytes(); in < 1000 || out < 1000 {
		t.Errorf("%d bytes in, %d out", in, out)
	}
	if err := check(t, s.address, insecure.NewCredentials()); err == nil {
		t.Error("gRPC without TLS, which was not switched on")
	}
	if err := <-s.refused; !errors.Is(err, listen.ErrRefused) || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("refused: %v", err)
	}
}

func TestMembersHaveAServerOfTheirOwn(t *testing.T) {
	s := serve(t, nil)
	token, _, err := s.office.Invite(t.Context(), "north", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	request, err := identity.Request(folder)
	if err != nil {
		t.Fatal(err)
	}
	_, certificates, err := s.office.Enrol(t.Context(), token.Text(), request)
	if err != nil {
		t.Fatal(err)
	}
	card, err := token.Accept(folder, certificates)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := ask(t, s.address, credentials.NewTLS(card.Config()))
	if err != nil || answer.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("%v, %v", answer, err)
	}
	if err := check(t, s.address, credentials.NewTLS(token.FirstContact())); err != nil {
		t.Error(err)
	}
}

func TestWithoutTLS(t *testing.T) {
	s := serve(t, func(c *listen.Config) { c.Plain = true })
	if err := check(t, s.address, insecure.NewCredentials()); err != nil {
		t.Error(err)
	}
	if info, ok := (<-s.peers).(listen.Plain); !ok || info.SecurityLevel != credentials.NoSecurity {
		t.Errorf("the peer is %+v", info)
	}
	if err := check(t, s.address, credentials.NewTLS(&tls.Config{RootCAs: s.roots})); err != nil {
		t.Error(err)
	}
}

func TestGarbage(t *testing.T) {
	s := serve(t, nil)
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x00\x01\x02", "\x16\x03\x01\xff\xff garbage", "\x16GARBAGE GARBAGE GARBAGE", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""} {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, text)
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn) // until it is hung up on
		conn.Close()
		if err := <-s.refused; !errors.Is(err, listen.ErrRefused) {
			t.Errorf("%q: %v", text, err)
		}
	}
	old := &tls.Config{RootCAs: s.roots, MaxVersion: tls.VersionTLS12}
	if conn, err := tls.Dial("tcp", s.address, old); err == nil {
		conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
	if proto, err := s.page(t, false); err != nil || proto != "HTTP/1.1" {
		t.Errorf("after garbage: %q, %v", proto, err)
	}
}

// Those who say nothing, or too little, are hung up on; there may be only so many of them from one host, and meanwhile
// others are served.
func TestSlowClients(t *testing.T) {
	s := serve(t, func(c *listen.Config) { c.Handshake, c.PerHost = 500*time.Millisecond, 10 })
	var conns []net.Conn
	for i := range 9 {
		conn, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			conn.Write([]byte{0x16, 3, 1})
		}
		conns = append(conns, conn)
	}
	if proto, err := s.page(t, false); err != nil || proto != "HTTP/1.1" {
		t.Errorf("beside slow clients: %q, %v", proto, err)
	}
	for _, conn := range conns {
		io.Copy(io.Discard, conn)
		if err := <-s.refused; !errors.Is(err, listen.ErrRefused) {
			t.Error(err)
		}
	}
}

func TestTooMany(t *testing.T) {
	for what, limit := range map[string]func(*listen.Config){
		"from this host": func(c *listen.Config) { c.PerHost = 3 },
		"have not said":  func(c *listen.Config) { c.Pending = 3 },
		"are open":       func(c *listen.Config) { c.Connections = 3 },
	} {
		t.Run(what, func(t *testing.T) {
			s := serve(t, func(c *listen.Config) { c.Handshake = time.Hour; limit(c) })
			var conns []net.Conn
			for range 4 {
				conn, err := net.Dial("tcp", s.address)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conns = append(conns, conn)
			}
			if err := <-s.refused; !strings.Contains(err.Error(), what) {
				t.Errorf("refused: %v", err)
			}
			for _, conn := range conns {
				conn.Close()
			}
			for s.Connections() > 0 {
				runtime.Gosched()
			}
			if proto, err := s.page(t, false); err != nil || proto != "HTTP/1.1" {
				t.Errorf("once they had gone: %q, %v", proto, err)
			}
		})
	}
}

// A host without a certificate cannot hold all connections, not even after it has shaken hands; members come in beside it.
func TestStrangers(t *testing.T) {
	s := serve(t, func(c *listen.Config) { c.Strangers = 3 })
	token, _, err := s.office.Invite(t.Context(), "north", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	request, err := identity.Request(folder)
	if err != nil {
		t.Fatal(err)
	}
	_, certificates, err := s.office.Enrol(t.Context(), token.Text(), request)
	if err != nil {
		t.Fatal(err)
	}
	card, err := token.Accept(folder, certificates)
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for range 4 { // one more than may be
		conn, err := tls.Dial("tcp", s.address, &tls.Config{RootCAs: s.roots, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	if err := <-s.refused; !strings.Contains(err.Error(), "3 connections without a certificate") {
		t.Errorf("refused: %v", err)
	}
	if _, err := ask(t, s.address, credentials.NewTLS(card.Config())); err != nil {
		t.Errorf("a member beside them: %v", err)
	}
	for _, conn := range conns {
		conn.Close()
	}
	for s.Connections() > 0 {
		runtime.Gosched()
	}
	if proto, err := s.page(t, false); err != nil || proto != "HTTP/1.1" {
		t.Errorf("once they had gone: %q, %v", proto, err)
	}
}

func TestClose(t *testing.T) {
	s := serve(t, nil)
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Error(err)
	}
	if _, err := s.GRPC().Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", s.address); err == nil {
		conn.Close()
		t.Error("still listening")
	}
}

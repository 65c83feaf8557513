package listen_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"grange/federated/network/identity"
	"grange/federated/network/listen"
)

// pipes is a listener for connections that are made in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// FuzzConnection sends bytes and hangs up: whatever they are, that is refused, and the next one is served.
func FuzzConnection(f *testing.F) {
	authority, err := identity.CreateAuthority(f.TempDir(), []string{"localhost"}, time.Now)
	if err != nil {
		f.Fatal(err)
	}
	refused := make(chan error)
	inner := make(pipes)
	l := listen.New(inner, listen.Config{TLS: authority.Config(), Refused: func(_ net.Addr, reason error) { refused <- reason }})
	go l.Serve()
	f.Cleanup(func() { l.Close() })
	for _, text := range []string{"", "\x16", "\x16\x03\x01\x00\x05hello", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		near, far := net.Pipe()
		inner <- far
		go io.Copy(io.Discard, near)
		go func() {
			near.Write(data)
			near.Close()
		}()
		if err := <-refused; !errors.Is(err, listen.ErrRefused) {
			t.Fatal(err)
		}
	})
}

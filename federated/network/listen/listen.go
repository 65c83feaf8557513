// Package listen serves gRPC and HTTP/1.1 on one port.
//
// The first byte of a connection tells TLS from anything else. Under TLS, a client that knows HTTP/1.1 (curl, Prometheus,
// a browser) is handed to the HTTP server, and one that speaks HTTP/2 only (gRPC) to a gRPC server: one for members, who
// have shown a certificate that was verified, and one for everybody else. HTTP/2 without TLS is accepted only if it was
// switched on; whatever else comes is hung up on.
//
// Until it is handed over a connection has a deadline, and there may be only so many of them, in all and from one host:
// whoever opens connections and says nothing keeps nobody else out for long. Without a member's certificate a host may also
// have only so many connections that were handed over.
package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// ErrRefused is why a connection was hung up on.
var ErrRefused = errors.New("listen: connection refused")

// ErrPlain is a connection that begins as gRPC without TLS does, which is not switched on.
var ErrPlain = errors.New("it speaks without TLS, which is not switched on")

// Config says how to listen. The zero value of each option is its default; TLS has none.
type Config struct {
	// TLS is the server's side of TLS. Its NextProtos must name http/1.1 before h2.
	TLS *tls.Config
	// Plain accepts HTTP/2 without TLS as well.
	Plain bool
	// Handshake is how long a connection may take until it is handed over. Default: 10 s.
	Handshake time.Duration
	// Connections is how many may be open at once, Pending how many of them may not have been handed over yet, and
	// PerHost how many of those may come from one host. Default: 4096, 512 and 128.
	Connections, Pending, PerHost int
	// Strangers is how many connections that were handed over may come from one host without a member's certificate; in
	// IPv6 a host is a network of 64 bits. Default: 512.
	Strangers int
	// Refused, if not nil, is told of connections that were hung up on.
	Refused func(from net.Addr, reason error)
}

// Listener takes connections and hands them over.
type Listener struct {
	config  Config
	inner   net.Listener
	members *branch
	grpc    *branch
	http    *branch
	closed  chan struct{}
	once    sync.Once

	in, out atomic.Int64

	mutex   sync.Mutex
	open    int
	pending int
	// hosts are pending connections by host, and strangers those that were handed over without a member's certificate.
	hosts, strangers map[string]int
}

// New listens on what an inner listener accepts. Nothing happens before Serve.
func New(inner net.Listener, config Config) *Listener {
	fallback := func(value *int, otherwise int) {
		if *value == 0 {
			*value = otherwise
		}
	}
	if config.Handshake == 0 {
		config.Handshake = 10 * time.Second
	}
	fallback(&config.Connections, 4096)
	fallback(&config.Pending, 512)
	fallback(&config.PerHost, 128)
	fallback(&config.Strangers, 512)
	l := &Listener{config: config, inner: inner, closed: make(chan struct{}), hosts: map[string]int{}, strangers: map[string]int{}}
	l.members, l.grpc, l.http = newBranch(inner.Addr()), newBranch(inner.Addr()), newBranch(inner.Addr())
	return l
}

// Members is the listener for a gRPC server, made with Credentials, for clients with a certificate that was verified.
func (l *Listener) Members() net.Listener { return l.members }

// GRPC is the listener for a gRPC server, made with Credentials, for clients without a certificate.
func (l *Listener) GRPC() net.Listener { return l.grpc }

// HTTP is the listener for an HTTP server. Its connections are TLS already: call Serve, not ServeTLS.
func (l *Listener) HTTP() net.Listener { return l.http }

// Addr is where it listens.
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Bytes is how many bytes came in and went out so far, TLS included.
func (l *Listener) Bytes() (in, out int64) { return l.in.Load(), l.out.Load() }

// Connections is how many connections are open.
func (l *Listener) Connections() int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.open
}

// Serve accepts connections until Close, after which it returns nil.
func (l *Listener) Serve() error {
	pause := time.Duration(0)
	for {
		conn, err := l.inner.Accept()
		if err == nil {
			pause = 0
			l.take(conn)
			continue
		}
		select {
		case <-l.closed:
			return nil
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		// Such as too many open files: others will close theirs.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		select {
		case <-l.closed:
			return nil
		case <-time.After(pause):
		}
	}
}

// Close stops listening. Connections that were handed over stay open.
func (l *Listener) Close() error {
	var err error
	l.once.Do(func() {
		close(l.closed)
		err = errors.Join(l.inner.Close(), l.members.Close(), l.grpc.Close(), l.http.Close())
	})
	return err
}

// take begins with a connection.
func (l *Listener) take(raw net.Conn) {
	host := hostOf(raw.RemoteAddr())
	l.mutex.Lock()
	var reason error
	switch {
	case l.open >= l.config.Connections:
		reason = fmt.Errorf("%w: %d connections are open", ErrRefused, l.open)
	case l.pending >= l.config.Pending:
		reason = fmt.Errorf("%w: %d connections have not said what they want", ErrRefused, l.pending)
	case l.hosts[host] >= l.config.PerHost:
		reason = fmt.Errorf("%w: %d connections from this host have not said what they want", ErrRefused, l.hosts[host])
	default:
		l.open++
		l.pending++
		l.hosts[host]++
	}
	l.mutex.Unlock()
	if reason != nil {
		l.refuse(raw, reason)
		return
	}
	conn := &counted{Conn: raw, listener: l}
	go func() {
		branch, ready, err := l.recognise(conn)
		l.mutex.Lock()
		l.pending--
		less(l.hosts, host)
		if err == nil && !known(ready) {
			if l.strangers[host] >= l.config.Strangers {
				err = fmt.Errorf("%w: %d connections without a certificate from this host are open", ErrRefused, l.strangers[host])
			} else {
				l.strangers[host]++
				conn.stranger = host
			}
		}
		l.mutex.Unlock()
		if err != nil {
			l.refuse(conn, err)
			return
		}
		branch.hand(ready)
	}()
}

// hostOf is the host of an address; in IPv6 its network, of whose addresses anybody has as many as he likes.
func hostOf(address net.Addr) string {
	from, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	host := from.Addr().Unmap()
	if host.Is6() {
		if network, err := host.WithZone("").Prefix(64); err == nil {
			return network.String()
		}
	}
	return host.String()
}

// less counts one less.
func less(counts map[string]int, host string) {
	if counts[host]--; counts[host] == 0 {
		delete(counts, host)
	}
}

// known says whether the other end has shown a certificate that was verified.
func known(conn net.Conn) bool {
	secure, ok := conn.(*tls.Conn)
	return ok && len(secure.ConnectionState().VerifiedChains) > 0
}

func (l *Listener) refuse(conn net.Conn, reason error) {
	_ = conn.Close()
	if l.config.Refused != nil {
		l.config.Refused(conn.RemoteAddr(), reason)
	}
}

// recognise finds out what a connection is for, and shakes hands with it.
func (l *Listener) recognise(conn *counted) (*branch, net.Conn, error) {
	if err := conn.SetDeadline(time.Now().Add(l.config.Handshake)); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil {
		return nil, nil, fmt.Errorf("%w: it said nothing: %w", ErrRefused, err)
	}
	whole := &prefixed{counted: conn, prefix: first[:]}
	switch {
	case first[0] == 0x16: // a TLS handshake
	case first[0] == 'P' && l.config.Plain: // the preface of HTTP/2
		return l.grpc, whole, conn.SetDeadline(time.Time{})
	case first[0] == 'P':
		return nil, nil, fmt.Errorf("%w: %w", ErrRefused, ErrPlain)
	default:
		return nil, nil, fmt.Errorf("%w: it speaks no TLS", ErrRefused)
	}
	secure := tls.Server(whole, l.config.TLS)
	ctx, cancel := context.WithTimeout(context.Background(), l.config.Handshake)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	state := secure.ConnectionState()
	switch {
	case state.NegotiatedProtocol != "h2":
		return l.http, secure, nil
	case len(state.VerifiedChains) > 0:
		return l.members, secure, nil
	}
	return l.grpc, secure, nil
}

// branch is the listener of one of the two servers.
type branch struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newBranch(addr net.Addr) *branch {
	return &branch{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// hand hands a connection over, or hangs up if nobody takes it any more.
func (b *branch) hand(conn net.Conn) {
	select {
	case b.conns <- conn:
	case <-b.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (b *branch) Accept() (net.Conn, error) {
	select {
	case conn := <-b.conns:
		return conn, nil
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (b *branch) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// Addr implements net.Listener.
func (b *branch) Addr() net.Addr { return b.addr }

// counted counts what goes through a connection, and that it is open.
type counted struct {
	net.Conn
	listener *Listener
	once     sync.Once
	// stranger is the host of one that was handed over without a member's certificate. The listener's mutex guards it.
	stranger string
}

// Read implements net.Conn.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.listener.in.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.listener.out.Add(int64(n))
	return n, err
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.once.Do(func() {
		c.listener.mutex.Lock()
		c.listener.open--
		if c.stranger != "" {
			less(c.listener.strangers, c.stranger)
		}
		c.listener.mutex.Unlock()
	})
	return c.Conn.Close()
}

// prefixed gives back what was read of a connection to recognise it.
type prefixed struct {
	*counted
	prefix []byte
}

// Read implements net.Conn.
func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.prefix) == 0 {
		return p.counted.Read(b)
	}
	n := copy(b, p.prefix)
	p.prefix = p.prefix[n:]
	return n, nil
}

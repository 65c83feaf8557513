package silo_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// proxy stands between silos and a coordinator, and can do what networks do.
type proxy struct {
	address string
	target  string

	mutex sync.Mutex
	// stalled is closed when the network works, open while nothing goes through.
	works chan struct{}
	conns map[net.Conn]bool
	// up and down are how many bytes went to the coordinator and back; cutUp and cutDown at how many of them, once, all
	// connections break.
	up, down, cutUp, cutDown int64
	cuts                     int
	// slow is how long 16 KiB take.
	slow time.Duration
}

func newProxy(t testing.TB, target string, slow time.Duration) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), target: target, works: make(chan struct{}), conns: map[net.Conn]bool{}, slow: slow}
	close(p.works)
	t.Cleanup(func() {
		listener.Close()
		p.cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return p
}

func (p *proxy) serve(client net.Conn) {
	<-p.working()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		client.Close()
		return
	}
	p.mutex.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mutex.Unlock()
	var group sync.WaitGroup
	group.Go(func() { p.copy(server, client, &p.up, &p.cutUp) })
	group.Go(func() { p.copy(client, server, &p.down, &p.cutDown) })
	group.Wait()
	p.mutex.Lock()
	delete(p.conns, client)
	delete(p.conns, server)
	p.mutex.Unlock()
}

// copy passes bytes on until there are no more.
func (p *proxy) copy(to, from net.Conn, count, limit *int64) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		<-p.working()
		time.Sleep(p.slow)
		p.mutex.Lock()
		*count += int64(n)
		broken := *limit > 0 && *count >= *limit
		if broken {
			*limit = 0
			p.cuts++
		}
		p.mutex.Unlock()
		if broken {
			p.cut()
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *proxy) working() chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.works
}

// cut breaks all connections.
func (p *proxy) cut() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
}

// stall lets nothing through from now on for some time.
func (p *proxy) stall(duration time.Duration) {
	works := make(chan struct{})
	p.mutex.Lock()
	p.works = works
	p.mutex.Unlock()
	time.AfterFunc(duration, func() { close(works) })
}

// breakAfter breaks all connections once, after so many more bytes in a direction.
func (p *proxy) breakAfter(up, down int64) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if up > 0 {
		p.cutUp = p.up + up
	}
	if down > 0 {
		p.cutDown = p.down + down
	}
}

func (p *proxy) passed() (up, down int64, cuts int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.up, p.down, p.cuts
}

// Package coordinator puts a federation's parts together in one process with one port: the record and the identity in its
// folder, the services for silos and for Flower's clients, and the pages for operators and their monitoring.
//
// A coordinator's folder holds coordinator.db (the record), coordinator.lock (held while one runs), identity/ (keys and
// certificates), objects/ (models and updates by their digest) and partial/ (what is being received).
package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/identity"
	"grange/federated/network/listen"
	"grange/federated/network/objects"
	"grange/federated/network/silo"
	"grange/federated/network/store"
)

// ErrListen is an address that cannot be listened on.
var ErrListen = errors.New("coordinator: cannot listen")

// Settings of the record: the address that was last listened on, and since when (RFC 3339).
const (
	AddressSetting = "address"
	SinceSetting   = "since"
)

// IdentityFolder is where a coordinator's keys and certificates are.
func IdentityFolder(folder string) string { return filepath.Join(folder, "identity") }

// Guests is another way to take part than that of silos. The server of package flower is one.
type Guests interface {
	// Register offers services on the gRPC server for clients without a certificate.
	Register(grpc.ServiceRegistrar)
	// Handler, if not nil, serves what is below /v1/.
	Handler() http.Handler
	// Close lets go of all.
	Close()
}

// Config is what a Coordinator needs.
type Config struct {
	// Folder is the coordinator's, as grange coordinator init makes it.
	Folder string
	// Address is where to listen.
	Address string
	// Federation says what is trained. Where it is kept is filled in.
	Federation network.Config
	// Silos says what silos are told. The rest is filled in.
	Silos silo.ServerConfig
	// Guests, if not nil, lets others in. Options are what their gRPC server needs, and Plain lets them speak without TLS.
	Guests  func(*network.Federation, *identity.Registrar) (Guests, error)
	Options []grpc.ServerOption
	Plain   bool
	// Linger is how long a finished coordinator waits for members that were not told yet. Default: 30 s.
	Linger time.Duration
	// Log is told what happens. Default: nobody.
	Log *slog.Logger
}

// Coordinator is a federation that can be reached.
type Coordinator struct {
	config     Config
	federation *network.Federation
	record     *store.Store
	registrar  *identity.Registrar
	listener   *listen.Listener
	guests     Guests
	metrics    *metrics
	complaints complaints
	members    *grpc.Server
	open       *grpc.Server
	pages      *http.Server
	serving    sync.WaitGroup
	stopped    sync.Once

	mutex sync.Mutex
	// over is set once the run has ended, and told are the members that have left since.
	over bool
	told map[int]bool
	news chan struct{}
}

// Open takes up the run in a folder, or begins it, and listens. Members may come from now on. Close it in any case.
func Open(ctx context.Context, config Config) (_ *Coordinator, err error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if config.Linger == 0 {
		config.Linger = 30 * time.Second
	}
	c := &Coordinator{config: config, told: map[int]bool{}, news: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.record, err = store.Lead(ctx, config.Folder); err != nil {
		return nil, err
	}
	authority, err := identity.OpenAuthority(IdentityFolder(config.Folder), time.Now)
	if err != nil {
		return nil, err
	}
	c.registrar = &identity.Registrar{Authority: authority, Ledger: c.record}
	if err := c.recall(ctx); err != nil {
		return nil, err
	}
	c.metrics = newCounters()
	c.complaints.log = config.Log
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp", config.Address)
	if err != nil {
		return nil, fmt.Errorf("%w on %s: %w", ErrListen, config.Address, err)
	}
	c.listener = listen.New(inner, listen.Config{
		TLS: authority.Config(), Plain: config.Plain, Refused: c.refused,
	})
	// The run is written into the record when nothing is left that a wrong option could stop.
	if err := c.makeFederation(); err != nil {
		return nil, err
	}
	if err := c.makeServers(); err != nil {
		return nil, err
	}
	if err := c.federation.TakeUp(ctx); err != nil {
		return nil, err
	}
	for key, value := range map[string]string{
		AddressSetting: inner.Addr().String(), SinceSetting: time.Now().UTC().Format(time.RFC3339Nano),
	} {
		if err := c.record.Set(ctx, key, value); err != nil {
			return nil, err
		}
	}
	c.serve()
	return c, nil
}

// recall finds out, for a run that has ended before, which members have left since.
func (c *Coordinator) recall(ctx context.Context) error {
	run, err := c.record.Latest(ctx)
	if err != nil || run == nil || run.Ended == nil {
		return err
	}
	notes, err := c.record.Notes(ctx, run, 0, 0)
	for _, n := range notes {
		switch n.Kind {
		case network.RunEnded:
			clear(c.told)
		case network.Disconnected:
			c.told[n.Member] = true
		}
	}
	return err
}

func (c *Coordinator) makeFederation() (err error) {
	federation := c.config.Federation
	federation.Record = c.record
	if federation.Objects, err = objects.Open(c.config.Folder); err != nil {
		return err
	}
	observe := federation.Observe
	federation.Observe = func(note network.Note) {
		c.note(note)
		if observe != nil {
			observe(note)
		}
	}
	c.federation, err = network.New(federation)
	return err
}

// Addr is where it listens.
func (c *Coordinator) Addr() net.Addr { return c.listener.Addr() }

// Status is how the federation stands.
func (c *Coordinator) Status() network.Status { return c.federation.Status() }

// Used is how many data points each member used in the last round it took part in: as many as it declared, unless it is a
// client of Flower's, which says how many with every update. It is 0 for those who took part in none.
func (c *Coordinator) Used(ctx context.Context) ([]int, error) {
	used := make([]int, len(c.config.Federation.Members))
	run, err := c.record.Latest(ctx)
	if err != nil || run == nil {
		return used, err
	}
	deliveries, err := c.record.Deliveries(ctx, run, 0)
	for _, d := range deliveries { // by rounds
		if d.Member >= 0 && d.Member < len(used) {
			used[d.Member] = cmp.Or(d.Examples, d.Declared)
		}
	}
	return used, err
}

// Outsiders are those who were let in and are no members.
func (c *Coordinator) Outsiders(ctx context.Context) ([]store.Admission, error) {
	return c.record.Outsiders(ctx, c.config.Federation.Members)
}

// note counts and logs what happens, and notices which members have heard of the end.
func (c *Coordinator) note(n network.Note) {
	c.metrics.note(n)
	c.log(n)
	c.mutex.Lock()
	switch {
	case n.Kind == network.RoundBegun:
		clear(c.told)
	case n.Kind == network.RunEnded:
		c.over = true
	case n.Kind == network.Disconnected && c.over:
		c.told[n.Member] = true
	}
	c.mutex.Unlock()
	select {
	case c.news <- struct{}{}:
	default:
	}
}

func (c *Coordinator) log(n network.Note) {
	level := slog.LevelInfo
	switch n.Kind {
	case network.Refused, network.Stale, network.Failed, network.Late, network.TurnedAway:
		level = slog.LevelWarn
	}
	var args []any
	if n.Round > 0 {
		args = append(args, "round", n.Round)
	}
	if members := c.config.Federation.Members; n.Member >= 0 && n.Member < len(members) {
		args = append(args, "member", members[n.Member])
	}
	if n.Text != "" {
		args = append(args, "what", n.Text)
	}
	c.config.Log.Log(context.Background(), level, string(n.Kind), args...)
}

// Run runs the federation to its end. When the context ends, members are hung up on first, so that they come back to
// whoever takes up the run, and the run stays as the record has it.
func (c *Coordinator) Run(ctx context.Context) (*federated.Result, error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		c.hangUp()
		cancel(context.Cause(ctx))
	})
	defer stop()
	return c.federation.Run(inner)
}

// Linger waits, after the end of the run, until everybody who took part has heard of it and left, or for as long as the
// configuration says. It returns the names of those who have not.
func (c *Coordinator) Linger(ctx context.Context) []string {
	ctx, cancel := context.WithTimeout(ctx, c.config.Linger)
	defer cancel()
	for {
		waiting := c.untold()
		if len(waiting) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return waiting
		case <-c.news:
		}
	}
}

// untold are the members that took part and may not know that the run has ended.
func (c *Coordinator) untold() []string {
	status := c.federation.Status()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.over {
		return nil
	}
	var names []string
	for i, member := range status.Members {
		// SuperNodes stay where they are when a run has ended.
		if d := member.Declaration; d != nil && d.Transport != "flower-fleet" && !c.told[i] {
			names = append(names, member.Name)
		}
	}
	return names
}

// Close ends everything.
func (c *Coordinator) Close() error {
	c.hangUp()
	c.serving.Wait()
	if c.record == nil {
		return nil
	}
	return c.record.Close()
}

package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"grange/federated/network"
	"grange/federated/network/identity"
	"grange/federated/network/listen"
	"grange/federated/network/silo"
)

// makeServers makes the servers, of which none is started yet.
func (c *Coordinator) makeServers() error {
	silos := c.config.Silos
	silos.Federation, silos.Identify, silos.Enrol, silos.Log = c.federation, c.identify, c.enrol, c.config.Log
	service, err := silo.NewServer(silos)
	if err != nil {
		return err
	}
	if c.config.Guests != nil {
		guests, err := c.config.Guests(c.federation, c.registrar)
		if err != nil {
			return err
		}
		c.guests = guests
	}
	options := append(silo.ServerOptions(silos.Pace), grpc.Creds(listen.Credentials()))
	c.members = grpc.NewServer(options...)
	service.Register(c.members)
	// Whoever has no certificate and asks nothing is hung up on, and may come again.
	options = append(options, silo.OpenServer(silos.Pace), grpc.UnknownServiceHandler(c.unknownCall))
	c.open = grpc.NewServer(append(options, c.config.Options...)...)
	service.Register(c.open)
	if c.guests != nil {
		c.guests.Register(c.open)
	}
	c.pages = &http.Server{
		Handler: c.handler(), MaxHeaderBytes: 16 << 10, ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout: 5 * time.Minute, WriteTimeout: 5 * time.Minute, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(c.config.Log.Handler(), slog.LevelDebug),
	}
	return nil
}

// serve starts the servers.
func (c *Coordinator) serve() {
	for _, serve := range []func() error{
		c.listener.Serve,
		func() error { return c.members.Serve(c.listener.Members()) },
		func() error { return c.open.Serve(c.listener.GRPC()) },
		func() error { return c.pages.Serve(c.listener.HTTP()) },
	} {
		c.serving.Go(func() {
			err := serve()
			for _, normal := range []error{nil, net.ErrClosed, http.ErrServerClosed, grpc.ErrServerStopped} {
				if errors.Is(err, normal) {
					return
				}
			}
			c.config.Log.Error("a server ended", "reason", err)
		})
	}
}

// identify says which member is at the other end of a call.
func (c *Coordinator) identify(ctx context.Context) (string, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			name, err := c.registrar.Member(ctx, info.State)
			if err != nil && !errors.Is(err, network.ErrRecord) {
				c.complaints.about(p.Addr.String(), noMember, "reason", err)
			}
			return name, err
		}
	}
	return "", fmt.Errorf("%w: a member's certificate is needed", identity.ErrRevoked)
}

// enrol exchanges a token for a certificate.
func (c *Coordinator) enrol(ctx context.Context, token string, request []byte) (string, []byte, error) {
	member, certificates, err := c.registrar.Enrol(ctx, token, request)
	if errors.Is(err, network.ErrRecord) {
		err = status.Error(codes.Unavailable, err.Error())
	}
	return member, certificates, err
}

// hangUp stops listening and ends all conversations. Clients are told that the server goes away.
func (c *Coordinator) hangUp() {
	c.stopped.Do(func() {
		if c.listener != nil {
			_ = c.listener.Close() // nothing was written to it
		}
		var group sync.WaitGroup
		for _, server := range []*grpc.Server{c.members, c.open} {
			if server == nil {
				continue
			}
			group.Go(func() {
				done := make(chan struct{})
				go func() {
					server.GracefulStop()
					close(done)
				}()
				select {
				case <-done:
				case <-time.After(200 * time.Millisecond): // silos that wait for work do so for hours
					server.Stop()
					<-done
				}
			})
		}
		group.Wait()
		if c.guests != nil {
			c.guests.Close()
		}
		if c.pages != nil {
			_ = c.pages.Close() // its connections are only read from
		}
	})
}

package silo_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"grange/federated/network/identity"
	"grange/federated/network/silo"
	"grange/federated/network/store"
)

// office is a coordinator that lets members in by tokens, and whose clock need not be right.
func (w *world) office(t *testing.T, off time.Duration) *identity.Registrar {
	t.Helper()
	clock := func() time.Time { return time.Now().Add(off) }
	authority, err := identity.CreateAuthority(t.TempDir(), []string{"127.0.0.1"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := store.Create(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ledger.Close() })
	registrar := &identity.Registrar{Authority: authority, Ledger: ledger, Now: clock}
	w.tls = authority.Config()
	w.tls.Time = clock
	w.tls.NextProtos = []string{"h2"}
	w.config.Now = clock
	w.server.Enrol = registrar.Enrol
	w.server.Identify = func(ctx context.Context) (string, error) {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return "", errors.New("nobody")
		}
		info, ok := p.AuthInfo.(credentials.TLSInfo)
		if !ok {
			return "", errors.New("not TLS")
		}
		return registrar.Member(ctx, info.State)
	}
	return registrar
}

// enrol exchanges a token for a card.
func (w *world) enrol(t *testing.T, token identity.Token) (*identity.Card, string, error) {
	t.Helper()
	folder := t.TempDir()
	request, err := identity.Request(folder)
	if err != nil {
		t.Fatal(err)
	}
	_, certificates, err := silo.Enrol(t.Context(), w.address, token.FirstContact(), token.Text(), request)
	if err != nil {
		return nil, "", err
	}
	card, err := token.Accept(folder, certificates)
	return card, folder, err
}

// The coordinator's clock is an hour ahead, or behind.
func clockIsOff(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		w := newWorld(t, "softmax", 2, member("a", 500, 100, 0), member("b", 500, 100, 0))
		registrar := w.office(t, off)
		w.start()
		var group sync.WaitGroup
		for i, m := range w.job.Members {
			token, _, err := registrar.Invite(t.Context(), m.Name, time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			card, folder, err := w.enrol(t, token)
			if err != nil {
				t.Fatal(err)
			}
			s := w.silo(i)
			s.TLS, s.Folder = card.Config(), folder
			run(t, &group, s)
		}
		w.expect()
		group.Wait()
		w.stop()
	}
}

func TestEnrolmentIsRefused(t *testing.T) {
	w := newWorld(t, "softmax", 1, member("a", 500, 100, 0))
	registrar := w.office(t, 0)
	w.start()
	token, _, err := registrar.Invite(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.enrol(t, token); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.enrol(t, token); !errors.Is(err, silo.ErrRejected) {
		t.Errorf("a used token: %v", err)
	}
	expired, _, err := registrar.Invite(t.Context(), "a", -time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.enrol(t, expired); !errors.Is(err, silo.ErrRejected) {
		t.Errorf("an expired token: %v", err)
	}
	elsewhere := newWorld(t, "softmax", 1, member("a", 500, 100, 0))
	other, _, err := elsewhere.office(t, 0).Invite(t.Context(), "a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.enrol(t, other); !errors.Is(err, identity.ErrPeer) {
		t.Errorf("a token of another coordinator: %v", err)
	}
	w.stop()
	if _, _, err := w.enrol(t, token); !errors.Is(err, silo.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
}

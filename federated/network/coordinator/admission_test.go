package coordinator_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"grange/federated/network"
	"grange/federated/network/coordinator"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/identity"
	"grange/federated/network/silo"
	"grange/federated/network/store"
)

func TestWhoIsNotLetIn(t *testing.T) {
	h := build(t, 1)
	var away []string
	h.config.Federation.Observe = func(n network.Note) {
		if n.Kind == network.TurnedAway {
			away = append(away, n.Text)
		}
	}
	c := h.open()
	stranger := h.join("stranger") // invited, but no member of the scenario
	if err := h.run(stranger, 100); !errors.Is(err, silo.ErrRejected) || !strings.Contains(err.Error(), "stranger") {
		t.Errorf("a stranger: %v", err)
	}
	_ = h.run(stranger, 100) // again, at once
	c.Status()               // which waits for whoever writes a note
	if !slices.Equal(away, []string{`"stranger" was let in, but is no member of houses`}) {
		t.Errorf("noted of the stranger: %q", away)
	}
	outsiders, err := c.Outsiders(t.Context())
	if err != nil || len(outsiders) != 1 || outsiders[0].Member != "stranger" || outsiders[0].Certificates != 1 {
		t.Errorf("outsiders %+v, %v", outsiders, err)
	}
	card := h.join("north")
	record, err := store.Open(t.Context(), h.folder)
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	if _, err := record.Revoke(t.Context(), "north"); err != nil {
		t.Fatal(err)
	}
	if err := h.run(card, 100); !errors.Is(err, silo.ErrRejected) {
		t.Errorf("revoked while the coordinator runs: %v", err)
	}
	token := h.invite("south")
	config := token.FirstContact()
	request, err := identity.Request(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := silo.Enrol(t.Context(), h.config.Address, config, "grange-token-1-x", request); !errors.Is(err, silo.ErrRejected) {
		t.Errorf("no token: %v", err)
	}
	if _, err := coordinator.Open(t.Context(), h.config); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second one in the folder: %v", err)
	}
	other := build(t, 1)
	other.config.Address = h.config.Address
	if _, err := coordinator.Open(t.Context(), other.config); !errors.Is(err, coordinator.ErrListen) {
		t.Errorf("the same port: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// A folder is taken by a run that somebody takes part in, not by one that could not be started or that nobody has joined.
func TestWhatTakesAFolder(t *testing.T) {
	h := build(t, 1)
	latest := func() *store.Run {
		record, err := store.Read(t.Context(), h.folder)
		if err != nil {
			t.Fatal(err)
		}
		defer record.Close()
		run, err := record.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	for what, change := range map[string]func(*coordinator.Config){
		"an address": func(c *coordinator.Config) { c.Address = "nonsense" },
		"an option": func(c *coordinator.Config) {
			c.Guests = func(*network.Federation, *identity.Registrar) (coordinator.Guests, error) {
				return nil, errors.New("no")
			}
		},
		"holdings": func(c *coordinator.Config) { c.Silos.Holdings = nil },
	} {
		wrong := h.config
		change(&wrong)
		if _, err := coordinator.Open(t.Context(), wrong); err == nil {
			t.Errorf("%s that is wrong: no error", what)
		}
		if run := latest(); run != nil {
			t.Errorf("%s that is wrong: the folder is taken by %+v", what, run)
		}
	}
	if err := h.open().Close(); err != nil {
		t.Fatal(err)
	}
	h.config.Federation.Identity = map[string]string{"seed": "4"}
	if err := h.open().Close(); err != nil {
		t.Fatal(err)
	}
	if run := latest(); run == nil || run.Identity["seed"] != "4" {
		t.Errorf("the folder is of %+v", run)
	}
	record, err := store.Lead(t.Context(), h.folder)
	if err != nil {
		t.Fatal(err)
	}
	_, err = record.Resume(t.Context(), h.config.Federation.RunInfo)
	if err := errors.Join(err, record.Declare(t.Context(), network.Declaration{}), record.Close()); err != nil {
		t.Fatal(err)
	}
	h.config.Federation.Identity = map[string]string{"seed": "5"}
	if _, err := coordinator.Open(t.Context(), h.config); !errors.Is(err, store.ErrOther) || !strings.Contains(err.Error(), "training.seed is 4, now 5") {
		t.Errorf("another run in the folder: %v", err)
	}
}

// logged is a log that can be read while it is written.
type logged struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(b)
}

func (l *logged) count(what string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Count(l.text.String(), what)
}

// Flower's clients that meet a coordinator without the option for them are told so where they can be, and the log says
// which option it is: once for each address.
func TestFlowerNotSwitchedOn(t *testing.T) {
	h := build(t, 1)
	var log logged
	h.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	h.open()
	for range 3 {
		conn, err := net.Dial("tcp", h.config.Address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(conn) // until it is hung up on
		conn.Close()
	}
	for range 3 {
		code, text := h.get("/v1/fleet/activate-node")
		if code != http.StatusPreconditionFailed || !strings.Contains(text, "--flower-app APP.fab") {
			t.Errorf("a SuperNode by HTTP: %d %s", code, text)
		}
	}
	client, err := grpc.NewClient(h.config.Address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: h.roots()})))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	stream, err := protocol.NewFlowerServiceClient(client).Join(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "--flower NAME") {
		t.Errorf("start_client with TLS: %v", err)
	}
	_, err = protocol.NewFleetClient(client).ActivateNode(t.Context(), &protocol.ActivateNodeRequest{})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "--flower-app") {
		t.Errorf("a SuperNode by gRPC: %v", err)
	}
	if err := client.Invoke(t.Context(), "/other.Service/Call", &protocol.ActivateNodeRequest{}, &protocol.ActivateNodeResponse{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("another service: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); log.count("without TLS") == 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	for _, what := range []string{
		"a connection without TLS was refused; for Flower's start_client start with --flower NAME",
		"a client of Flower's start_client was refused; start with --flower NAME",
		"a Flower SuperNode was refused; start with --flower-app APP.fab",
	} {
		if n := log.count(fmt.Sprintf("msg=%q from=127.0.0.1\n", what)); n != 1 {
			t.Errorf("%q is logged %d times in\n%s", what, n, &log.text)
		}
	}
}

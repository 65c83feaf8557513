package coordinator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/coordinator"
	"grange/federated/network/identity"
	"grange/federated/network/silo"
	"grange/federated/network/store"
	"grange/train"
)

// house is a coordinator's folder and what is to be trained in it.
type house struct {
	t      *testing.T
	folder string
	job    train.Job
	config coordinator.Config
}

func build(t *testing.T, rounds int) *house {
	t.Helper()
	data, err := dataset.Open(t.Context(), "fashion", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, folder: t.TempDir()}
	if _, err := identity.CreateAuthority(coordinator.IdentityFolder(h.folder), []string{"127.0.0.1"}, time.Now); err != nil {
		t.Fatal(err)
	}
	record, err := store.Create(t.Context(), h.folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	h.job = train.Job{
		Data: data, Model: "softmax", Seed: 3, Settings: federated.Settings{Rounds: rounds}, Local: federated.Local{Epochs: 1},
		Members: []train.Member{
			{Name: "north", Holding: dataset.Holding{Data: 300, Contribution: 200}},
			{Name: "south", Holding: dataset.Holding{Data: 300, Contribution: 300, Noise: dataset.Noise{Rate: 0.2}}},
		},
	}
	federation, err := train.Federate(t.Context(), h.job)
	if err != nil {
		t.Fatal(err)
	}
	federation.Name = "houses"
	h.config = coordinator.Config{
		Folder: h.folder, Address: "127.0.0.1:0", Federation: federation,
		Silos: silo.ServerConfig{Data: silo.Describe(data), Split: h.job.Split, Holdings: h.job.Holdings()},
	}
	return h
}

func (h *house) open() *coordinator.Coordinator {
	h.t.Helper()
	c, err := coordinator.Open(h.t.Context(), h.config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	h.config.Address = c.Addr().String() // the same after a restart
	return c
}

// invite is what an operator does beside the coordinator.
func (h *house) invite(name string) identity.Token {
	h.t.Helper()
	record, err := store.Open(h.t.Context(), h.folder)
	if err != nil {
		h.t.Fatal(err)
	}
	defer record.Close()
	authority, err := identity.OpenAuthority(coordinator.IdentityFolder(h.folder), time.Now)
	if err != nil {
		h.t.Fatal(err)
	}
	token, _, err := (&identity.Registrar{Authority: authority, Ledger: record}).Invite(h.t.Context(), name, time.Hour)
	if err != nil {
		h.t.Fatal(err)
	}
	return token
}

// join enrols a silo, over the network.
func (h *house) join(name string) *identity.Card {
	h.t.Helper()
	token, folder := h.invite(name), h.t.TempDir()
	request, err := identity.Request(folder)
	if err != nil {
		h.t.Fatal(err)
	}
	member, certificates, err := silo.Enrol(h.t.Context(), h.config.Address, token.FirstContact(), token.Text(), request)
	if err != nil || member != name {
		h.t.Fatalf("enrolled as %q: %v", member, err)
	}
	card, err := token.Accept(folder, certificates)
	if err != nil {
		h.t.Fatal(err)
	}
	return card
}

// run runs a silo to its end.
func (h *house) run(card *identity.Card, contribution int) error {
	return h.runner(card, contribution).Run(h.t.Context())
}

func (h *house) runner(card *identity.Card, contribution int) *silo.Runner {
	return &silo.Runner{
		Address: h.config.Address, TLS: card.Config(), Folder: h.t.TempDir(),
		Prepare: silo.Source{Name: "fashion", Contribution: contribution}.Prepare,
		Pace:    silo.Pace{FirstRetry: 20 * time.Millisecond, LastRetry: 100 * time.Millisecond},
	}
}

// roots are what a client trusts that was given the authority's file.
func (h *house) roots() *x509.CertPool {
	h.t.Helper()
	roots := x509.NewCertPool()
	text, err := os.ReadFile(filepath.Join(coordinator.IdentityFolder(h.folder), "authority.pem"))
	if err != nil {
		h.t.Fatal(err)
	}
	roots.AppendCertsFromPEM(text)
	return roots
}

func (h *house) get(path string) (int, string) {
	h.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: h.roots()}}}
	defer client.CloseIdleConnections()
	response, err := client.Get("https://" + h.config.Address + path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func (h *house) same(got *federated.Result) {
	h.t.Helper()
	want, err := train.Run(h.t.Context(), h.job)
	if err != nil {
		h.t.Fatal(err)
	}
	result := h.job.Result(got)
	if !slices.Equal(result.Weights.Flat, want.Weights.Flat) {
		h.t.Error("other weights than in one process")
	}
	result.Weights, want.Weights = nil, nil
	if diff := cmp.Diff(result, want); diff != "" {
		h.t.Error(diff)
	}
}

func TestFromInvitationToResult(t *testing.T) {
	h := build(t, 3)
	c := h.open()
	if code, body := h.get("/healthz"); code != http.StatusOK || body != "waiting for members\n" {
		t.Errorf("%d %q", code, body)
	}
	for _, page := range []string{"/status", "/metrics"} {
		if code, text := h.get(page); code != http.StatusOK || !strings.Contains(text, "phase") || strings.Contains(text, "accuracy") {
			t.Errorf("%s before the first round: %d %s", page, code, text)
		}
	}
	var group sync.WaitGroup
	for _, member := range h.job.Members {
		card := h.join(member.Name)
		group.Go(func() {
			if err := h.run(card, member.Contribution); err != nil {
				t.Error(err)
			}
		})
	}
	result, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if late := c.Linger(t.Context()); late != nil {
		t.Errorf("not told: %q", late)
	}
	group.Wait()
	h.same(result)
	code, text := h.get("/metrics")
	for _, line := range []string{
		"grange_rounds_finished 3", "grange_rounds_planned 3", `grange_updates_total{outcome="accepted"} 6`,
		`grange_updates_total{outcome="late"} 0`, `grange_phase{phase="done"} 1`, "grange_round_duration_seconds_count 3",
		"grange_members_declared 2", "grange_members_connected 0", fmt.Sprintf("grange_accuracy %v\n", result.Accuracy),
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%d, no %q in\n%s", code, line, text)
		}
	}
	if strings.Contains(text, "north") {
		t.Error("the metrics name a member")
	}
	if code, text := h.get("/status"); code != http.StatusOK || !strings.Contains(text, `"name":"south"`) || !strings.Contains(text, `"phase":"done"`) {
		t.Errorf("%d %s", code, text)
	}
	if code, _ := h.get("/elsewhere"); code != http.StatusNotFound {
		t.Errorf("elsewhere: %d", code)
	}
}

// sparing is a trainer that trains on less than it was asked for, as clients of Flower's may.
type sparing struct {
	federated.Trainer
	examples int
}

func (s sparing) Train(ctx context.Context, task federated.Task) (federated.Update, error) {
	trained, err := s.Trainer.Train(ctx, task)
	trained.Examples = s.examples - task.Round
	return trained, err
}

// What a member used is what it said last, whatever it had declared.
func TestUsed(t *testing.T) {
	h := build(t, 2)
	c := h.open()
	var group sync.WaitGroup
	for i, card := range []*identity.Card{h.join("north"), h.join("south")} {
		runner := h.runner(card, h.job.Members[i].Contribution)
		if i == 1 {
			prepare := runner.Prepare
			runner.Prepare = func(ctx context.Context, terms silo.Terms) (*silo.Prepared, error) {
				prepared, err := prepare(ctx, terms)
				if err == nil {
					prepared.Trainer = sparing{prepared.Trainer, 72}
				}
				return prepared, err
			}
		}
		group.Go(func() {
			if err := runner.Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	if used, err := c.Used(t.Context()); err != nil || !slices.Equal(used, []int{0, 0}) {
		t.Errorf("before it begins: %v, %v", used, err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Linger(t.Context())
	group.Wait()
	if used, err := c.Used(t.Context()); err != nil || !slices.Equal(used, []int{200, 70}) {
		t.Errorf("used %v, %v", used, err)
	}
}

// A coordinator that is stopped and started again goes on, silos come back by themselves, and the result is the same.
func TestStoppedAndStartedAgain(t *testing.T) {
	h := build(t, 4)
	second := make(chan struct{})
	var once sync.Once
	h.config.Federation.Observe = func(n network.Note) {
		if n.Kind == network.Accepted && n.Round == 2 {
			once.Do(func() { close(second) })
		}
	}
	c := h.open()
	var group sync.WaitGroup
	for _, member := range h.job.Members {
		card := h.join(member.Name)
		group.Go(func() {
			if err := h.run(card, member.Contribution); err != nil {
				t.Error(err)
			}
		})
	}
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-second
		stop()
	}()
	if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if late := c.Linger(t.Context()); late != nil {
		t.Errorf("lingers for %q though nothing has ended", late)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	again := h.open()
	if status := again.Status(); status.Round < 1 || status.Members[0].Declaration == nil {
		t.Errorf("it starts from %+v", status)
	}
	result, err := again.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	again.Linger(t.Context())
	group.Wait()
	h.same(result)
}

func TestLogsNoSecrets(t *testing.T) {
	h := build(t, 1)
	var log bytes.Buffer
	h.config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := h.open()
	token := h.invite("north")
	request, err := identity.Request(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, _, err := silo.Enrol(t.Context(), h.config.Address, token.FirstContact(), token.Text(), request); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "enrolled") || strings.Contains(text, token.Text()[20:60]) {
		t.Errorf("the log is\n%s", text)
	}
}

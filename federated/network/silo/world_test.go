package silo_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/federated/network/silo"
	"grange/federated/network/store"
	"grange/internal/stream"
	"grange/model"
	"grange/train"
	"grange/train/cpu"
)

// authority signs certificates.
type authority struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
}

func (a *authority) issue(t testing.TB, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate(name), a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// client is a member's side of TLS.
func (a *authority) client(t testing.TB, name string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: "coordinator", RootCAs: a.pool(),
		Certificates: []tls.Certificate{a.issue(t, name)},
	}
}

// identify is the common name in the certificate that the caller has proved to hold.
func identify(ctx context.Context) (string, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok && len(info.State.VerifiedChains) > 0 {
			return info.State.VerifiedChains[0][0].Subject.CommonName, nil
		}
	}
	return "", errors.New("a member's certificate is needed")
}

var fashion = sync.OnceValues(func() (*dataset.Dataset, error) {
	return dataset.Open(context.Background(), "fashion", dataset.Options{})
})

// described is the description of fashion.
var described = sync.OnceValues(func() (silo.Description, error) {
	data, err := fashion()
	if err != nil {
		return silo.Description{}, err
	}
	return silo.Describe(data), nil
})

// evaluators are those of each model, which take a while to make.
var evaluators sync.Map

func evaluator(spec model.Spec, data *dataset.Dataset) (*cpu.Trainer, error) {
	if known, ok := evaluators.Load(spec.Name); ok {
		return known.(*cpu.Trainer), nil
	}
	fresh, err := cpu.New(cpu.Config{Spec: spec, Data: data})
	evaluators.Store(spec.Name, fresh)
	return fresh, err
}

// quick does not wait long for anything.
var quick = silo.Pace{FirstRetry: 20 * time.Millisecond, LastRetry: 200 * time.Millisecond, Ping: 2 * time.Second, Timeout: 2 * time.Second, Idle: 20 * time.Second}

// world is a training that can be done in one process or by silos.
type world struct {
	t         testing.TB
	authority *authority
	job       train.Job
	config    network.Config
	server    silo.ServerConfig
	// tls is the coordinator's side of TLS. Default: a certificate of the authority.
	tls    *tls.Config
	folder string // of the coordinator

	address    string
	federation *network.Federation
	stop       func()
	result     chan outcome
}

type outcome struct {
	result *federated.Result
	err    error
}

// newWorld prepares a training of some members.
func newWorld(t testing.TB, name string, rounds int, members ...train.Member) *world {
	t.Helper()
	data, err := fashion()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, authority: newAuthority(t), folder: t.TempDir()}
	w.job = train.Job{
		Data: data, Model: name, Settings: federated.Settings{Rounds: rounds}, Local: federated.Local{Epochs: 1}, Seed: 7,
		Members: members, Split: dataset.Split{Method: dataset.Dirichlet, Concentration: 1},
	}
	spec, err := model.New(name, model.Shape(data.Shape()), len(data.Classes))
	if err != nil {
		t.Fatal(err)
	}
	evaluator, err := evaluator(spec, data)
	if err != nil {
		t.Fatal(err)
	}
	description, err := described()
	if err != nil {
		t.Fatal(err)
	}
	w.config = network.Config{
		RunInfo:  network.RunInfo{Name: "silos", Rounds: rounds, Identity: map[string]string{"model": name}},
		Settings: w.job.Settings, Local: w.job.Local, Seed: w.job.Seed, Spec: spec,
		Initial:   model.Init(spec, stream.New(w.job.Seed, "initial weights")),
		Evaluator: evaluator, Kernel: evaluator.Kernel(),
	}
	w.server = silo.ServerConfig{Identify: identify, Data: description, Split: w.job.Split, Pace: quick}
	for _, member := range members {
		w.config.Members = append(w.config.Members, member.Name)
		w.server.Holdings = append(w.server.Holdings, member.Holding)
	}
	return w
}

// start starts a coordinator, at the same address if there was one before.
func (w *world) start() {
	w.t.Helper()
	record, err := store.Create(w.t.Context(), w.folder)
	if errors.Is(err, store.ErrExists) {
		record, err = store.Open(w.t.Context(), w.folder)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if w.config.Objects, err = objects.Open(w.folder); err != nil {
		w.t.Fatal(err)
	}
	w.config.Record = record
	if w.federation, err = network.Open(w.t.Context(), w.config); err != nil {
		w.t.Fatal(err)
	}
	w.server.Federation = w.federation
	service, err := silo.NewServer(w.server)
	if err != nil {
		w.t.Fatal(err)
	}
	address := w.address
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	w.address = listener.Addr().String()
	config := w.tls
	if config == nil {
		config = &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{w.authority.issue(w.t, "coordinator")},
			ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: w.authority.pool(),
		}
	}
	server := grpc.NewServer(append(silo.ServerOptions(quick), grpc.Creds(credentials.NewTLS(config)))...)
	service.Register(server)
	go server.Serve(listener)
	ctx, cancel := context.WithCancel(w.t.Context())
	result := make(chan outcome, 1)
	w.result = result
	go func() {
		r, err := w.federation.Run(ctx)
		result <- outcome{r, err}
	}()
	w.stop = sync.OnceFunc(func() {
		cancel()
		server.Stop()
		record.Close()
	})
	w.t.Cleanup(w.stop)
}

// silo is a member that has not started yet.
func (w *world) silo(member int) *silo.Runner {
	m := w.job.Members[member]
	source := silo.Source{Name: "fashion", Contribution: m.Contribution, Engine: train.CPU(1, "")}
	return &silo.Runner{
		Address: w.address, TLS: w.authority.client(w.t, m.Name), Folder: w.t.TempDir(), Prepare: source.Prepare,
		Software: "test", Pace: quick,
	}
}

// extra is a silo that has no data and trains nothing, for tests that are about another one.
func (w *world) extra(member int) *silo.Runner {
	r := w.silo(member)
	r.Prepare = func(context.Context, silo.Terms) (*silo.Prepared, error) {
		return &silo.Prepared{Trainer: nudge{}, Contribution: 100, Data: 500}, nil
	}
	return r
}

// nudge changes a model a little.
type nudge struct{}

func (nudge) Train(_ context.Context, task federated.Task) (federated.Update, error) {
	changed := task.Global.Clone()
	changed.Flat[0]++
	return federated.Update{Round: task.Round, Member: task.Member, Weights: changed, Loss: 1}, nil
}

// weights are a model's as a file.
func weights(t testing.TB, w *model.Weights) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := model.WriteSafetensors(&b, w, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// expect waits for the coordinator's result and compares it with that of one process.
func (w *world) expect() *federated.Result {
	w.t.Helper()
	networked := <-w.result
	if networked.err != nil {
		w.t.Fatal(networked.err)
	}
	alone, err := train.Run(w.t.Context(), w.job)
	if err != nil {
		w.t.Fatal(err)
	}
	if !bytes.Equal(weights(w.t, networked.result.Weights), weights(w.t, alone.Weights)) {
		w.t.Error("the silos' model differs from that of one process")
	}
	if networked.result.Accuracy != alone.Accuracy {
		w.t.Errorf("accuracy %v with silos, %v in one process", networked.result.Accuracy, alone.Accuracy)
	}
	return networked.result
}

func member(name string, data, contribution int, noise float64) train.Member {
	return train.Member{Name: name, Holding: dataset.Holding{Data: data, Contribution: contribution, Noise: dataset.Noise{Rate: noise}}}
}

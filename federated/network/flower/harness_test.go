package flower_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/flower"
	"grange/federated/network/identity"
	"grange/federated/network/listen"
	"grange/federated/network/objects"
	"grange/federated/network/store"
	"grange/internal/stream"
	"grange/model"
	"grange/train/cpu"
)

var fashion = sync.OnceValues(func() (*dataset.Dataset, error) {
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		return nil, err
	}
	size := data.Test.Shape.Channels * data.Test.Shape.Height * data.Test.Shape.Width
	data.Test.Labels, data.Test.Pixels = data.Test.Labels[:1000], data.Test.Pixels[:1000*size]
	return data, nil
})

// holding is how many images each member has.
const holding = 300

// world is a federation with a coordinator's real parts: its record, its files, its authority and its port.
type world struct {
	names     []string
	folder    string
	config    network.Config
	trainer   *cpu.Trainer
	shards    []dataset.Shard
	authority *identity.Authority
	registrar *identity.Registrar
	store     *store.Store
	address   string // of the last server, to be taken again

	noting sync.Mutex
	noted  []network.Note
}

func newWorld(t testing.TB, architecture string, rounds int, names ...string) *world {
	t.Helper()
	data, err := fashion()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{names: names, folder: t.TempDir()}
	holdings := make([]dataset.Holding, len(names))
	for i := range names {
		holdings[i] = dataset.Holding{Data: holding, Contribution: holding}
	}
	if w.shards, err = (dataset.Split{}).Shards(data, holdings, 7); err != nil {
		t.Fatal(err)
	}
	spec, err := model.New(architecture, model.Shape(data.Shape()), len(data.Classes))
	if err != nil {
		t.Fatal(err)
	}
	if w.trainer, err = cpu.New(cpu.Config{Spec: spec, Data: data, Shards: w.shards}); err != nil {
		t.Fatal(err)
	}
	if w.authority, err = identity.CreateAuthority(filepath.Join(w.folder, "identity"), []string{"127.0.0.1", "localhost"}, time.Now); err != nil {
		t.Fatal(err)
	}
	if w.store, err = store.Create(t.Context(), w.folder); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	w.registrar = &identity.Registrar{Authority: w.authority, Ledger: w.store}
	files, err := objects.Open(filepath.Join(w.folder, "files"))
	if err != nil {
		t.Fatal(err)
	}
	w.config = network.Config{
		RunInfo: network.RunInfo{Name: "four", Members: names, Rounds: rounds, Identity: map[string]string{"test": t.Name()}},
		Local:   federated.Local{Epochs: 2, Batch: 32, Rate: 0.05}, Seed: 7, Spec: spec,
		Initial:   model.Init(spec, stream.New(7, "initial weights")),
		Evaluator: w.trainer, Kernel: w.trainer.Kernel(), Record: w.store, Objects: files,
		Observe: func(note network.Note) {
			w.noting.Lock()
			defer w.noting.Unlock()
			w.noted = append(w.noted, note)
		},
	}
	return w
}

// serving is a coordinator at work.
type serving struct {
	*world
	federation *network.Federation
	server     *flower.Server
	address    string
	stop       func()

	result chan outcome
}

type outcome struct {
	result *federated.Result
	err    error
}

// serve starts a coordinator. Options that every coordinator has are filled in.
func (w *world) serve(t testing.TB, options flower.Options) *serving {
	t.Helper()
	federation, err := network.Open(t.Context(), w.config)
	if err != nil {
		t.Fatal(err)
	}
	options.Data = make([]int, len(w.names))
	for i := range options.Data {
		options.Data[i] = holding
	}
	options.Keys, options.Folder = w.registrar, filepath.Join(w.folder, "pieces")
	server, err := flower.New(federation, options)
	if err != nil {
		t.Fatal(err)
	}
	if w.address == "" {
		w.address = "127.0.0.1:0"
	}
	inner, err := net.Listen("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.address = inner.Addr().String()
	listener := listen.New(inner, listen.Config{TLS: w.authority.Config(), Plain: options.Plaintext()})
	calls := grpc.NewServer(append(flower.ServerOptions(w.config.Spec, options), grpc.Creds(listen.Credentials()))...)
	server.Register(calls)
	mux := http.NewServeMux()
	if handler := server.Handler(); handler != nil {
		mux.Handle("/v1/fleet/", handler)
	}
	pages := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	ctx, cancel := context.WithCancel(context.Background())
	s := &serving{world: w, federation: federation, server: server, address: inner.Addr().String(), result: make(chan outcome, 1)}
	var group sync.WaitGroup
	group.Go(func() { _ = listener.Serve() })
	group.Go(func() { _ = calls.Serve(listener.GRPC()) })
	group.Go(func() { _ = pages.Serve(listener.HTTP()) })
	group.Go(func() {
		result, err := federation.Run(ctx)
		s.result <- outcome{result, err}
	})
	s.stop = sync.OnceFunc(func() {
		cancel()
		_ = listener.Close()
		calls.Stop()
		_ = pages.Close()
		server.Close()
		group.Wait()
	})
	t.Cleanup(s.stop)
	return s
}

// wait returns the result of the run.
func (s *serving) wait(t testing.TB, patience time.Duration) *federated.Result {
	t.Helper()
	select {
	case o := <-s.result:
		if o.err != nil {
			t.Fatal(o.err)
		}
		return o.result
	case <-time.After(patience):
		t.Fatalf("no result after %v: %+v", patience, s.federation.Status())
		return nil
	}
}

// silos has members take part as the Go silos do, in this process.
func (s *serving) silos(t testing.TB, members ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	for _, name := range members {
		member, err := s.federation.Member(name)
		if err != nil {
			t.Fatal(err)
		}
		err = s.federation.Declare(ctx, network.Declaration{Member: member, Contribution: holding, Data: holding, Transport: "grange"})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			defer s.federation.Connect(member)()
			for {
				next, err := s.federation.Next(ctx, member)
				if err != nil || next.Done {
					return
				}
				update, err := s.trainer.Train(ctx, next.Task)
				if err != nil {
					return
				}
				digest, err := s.config.Objects.Put(func(out io.Writer) error { return model.WriteSafetensors(out, update.Weights, nil) })
				if err != nil {
					t.Error(err)
					return
				}
				err = s.federation.Deliver(ctx, network.Delivery{Round: next.Task.Round, Member: member, Update: digest, Examples: holding, Loss: update.Loss})
				if err != nil && ctx.Err() == nil && !errors.Is(err, network.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
}

// notes are the texts of the notes of a kind about a member.
func (s *serving) notes(t testing.TB, kind network.Kind, member string) []string {
	t.Helper()
	index, err := s.federation.Member(member)
	if err != nil {
		t.Fatal(err)
	}
	s.noting.Lock()
	defer s.noting.Unlock()
	var texts []string
	for _, note := range s.noted {
		if note.Kind == kind && note.Member == index {
			texts = append(texts, note.Text)
		}
	}
	return texts
}

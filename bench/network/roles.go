package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/identity"
	"grange/federated/network/listen"
	"grange/federated/network/objects"
	"grange/federated/network/silo"
	"grange/federated/network/store"
	"grange/model"
)

func memberFolder(folder string, member int) string {
	return filepath.Join(folder, "silos", strconv.Itoa(member))
}

// coordinate is the coordinator's process.
func coordinate(ctx context.Context, in io.Reader, out io.Writer) error {
	var s setup
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
	// What a coordinator holds is few and large: collecting the rest often costs nothing.
	debug.SetGCPercent(25)
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return err
	}
	record, err := store.Create(ctx, s.Folder)
	if err != nil {
		return err
	}
	defer record.Close()
	authority, err := identity.CreateAuthority(s.Folder, []string{"127.0.0.1"}, time.Now)
	if err != nil {
		return err
	}
	registrar := &identity.Registrar{Authority: authority, Ledger: record}
	names := make([]string, s.Members)
	holdings := make([]dataset.Holding, s.Members)
	for i := range names {
		names[i] = fmt.Sprintf("silo%d", i)
		holdings[i] = dataset.Holding{Data: 10, Contribution: 10}
		if err := enrol(ctx, registrar, names[i], memberFolder(s.Folder, i)); err != nil {
			return err
		}
	}
	watcher := &watcher{}
	federation, err := open(ctx, s, names, record, watcher)
	if err != nil {
		return err
	}
	classes := strings.Split("0123456789", "")
	moments := dataset.Moments{Mean: make([]float64, s.Shape.Channels), Deviation: make([]float64, s.Shape.Channels)}
	for c := range moments.Mean {
		moments.Mean[c], moments.Deviation[c] = 0.5, 0.25
	}
	service, err := silo.NewServer(silo.ServerConfig{
		Federation: federation, Holdings: holdings,
		Data:     silo.Description{Name: "fashion", Shape: dataset.Shape(s.Shape), Classes: classes, Moments: moments},
		Identify: func(ctx context.Context) (string, error) { return identify(ctx, registrar) },
	})
	if err != nil {
		return err
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	listener := listen.New(inner, listen.Config{TLS: authority.Config()})
	server := grpc.NewServer(append(silo.ServerOptions(silo.Pace{}), grpc.Creds(listen.Credentials()))...)
	service.Register(server)
	ended := make(chan error, 2)
	go func() { ended <- listener.Serve() }()
	go func() { ended <- server.Serve(listener.GRPC()) }()
	fmt.Fprintln(out, inner.Addr())
	stop, err := profile(s.Profile)
	if err != nil {
		return err
	}
	if _, err := federation.Run(ctx); err != nil {
		return err
	}
	stop()
	watcher.measured.Peak, err = memory("VmHWM")
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(watcher.measured); err != nil {
		return err
	}
	server.GracefulStop() // the silos are told that the run is over
	return errors.Join(listener.Close(), <-ended, <-ended)
}

// open begins a federation in which nothing is trained.
func open(ctx context.Context, s setup, names []string, record *store.Store, w *watcher) (*network.Federation, error) {
	spec, err := model.New(s.Model, s.Shape, 10)
	if err != nil {
		return nil, err
	}
	files, err := objects.Open(s.Folder)
	if err != nil {
		return nil, err
	}
	return network.Open(ctx, network.Config{
		RunInfo: network.RunInfo{Name: "bench", Members: names, Rounds: s.Rounds, Identity: map[string]string{"bench": s.Folder}},
		Spec:    spec, Initial: model.Init(spec, rand.New(rand.NewPCG(1, 2))), Evaluator: nothing{}, Record: record, Objects: files,
		Observe: w.note,
	})
}

// enrol lets a silo in and makes its folder.
func enrol(ctx context.Context, registrar *identity.Registrar, name, folder string) error {
	token, _, err := registrar.Invite(ctx, name, time.Hour)
	if err != nil {
		return err
	}
	request, err := identity.Request(folder)
	if err != nil {
		return err
	}
	_, certificates, err := registrar.Enrol(ctx, token.Text(), request)
	if err != nil {
		return err
	}
	_, err = token.Accept(folder, certificates)
	return err
}

func identify(ctx context.Context, registrar *identity.Registrar) (string, error) {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			return registrar.Member(ctx, info.State)
		}
	}
	return "", errors.New("not TLS")
}

// nothing scores no model.
type nothing struct{}

func (nothing) Evaluate(context.Context, *model.Weights) (federated.Score, error) {
	return federated.Score{}, nil
}

// watcher measures rounds by the notes about them.
type watcher struct {
	measured  measured
	began     time.Time
	processor float64
}

func (w *watcher) note(note network.Note) {
	switch note.Kind {
	case network.Refused, network.Stale, network.Late, network.Failed:
		w.measured.Failures++
	case network.RoundBegun, network.RunEnded:
		now, used := time.Now(), processor()
		if !w.began.IsZero() {
			w.measured.Seconds = append(w.measured.Seconds, now.Sub(w.began).Seconds())
			w.measured.Processor = append(w.measured.Processor, used-w.processor)
			if resident, err := memory("VmRSS"); err == nil {
				w.measured.Resident = append(w.measured.Resident, resident)
			}
		}
		w.began, w.processor = now, used
	}
}

// takePart is a silo's process.
func takePart(ctx context.Context, in io.Reader, out io.Writer) error {
	var p place
	if err := json.NewDecoder(in).Decode(&p); err != nil {
		return err
	}
	card, err := identity.LoadCard(p.Folder)
	if err != nil {
		return err
	}
	stop, err := profile(p.Profile)
	if err != nil {
		return err
	}
	runner := &silo.Runner{
		Address: p.Address, TLS: card.Config(), Folder: p.Folder,
		Prepare: func(context.Context, silo.Terms) (*silo.Prepared, error) {
			return &silo.Prepared{Trainer: echo{}, Contribution: 10, Data: 10}, nil
		},
	}
	if err := runner.Run(ctx); err != nil {
		return err
	}
	stop()
	_, err = fmt.Fprintln(out, processor())
	return err
}

// echo trains nothing: it sends back the model with one weight changed, as one that did not change would be refused.
type echo struct{}

func (echo) Train(_ context.Context, task federated.Task) (federated.Update, error) {
	weights := task.Global.Clone()
	weights.Flat[task.Member] += 1
	return federated.Update{Round: task.Round, Member: task.Member, Weights: weights, Loss: 1}, nil
}

// processor is the processor time of this process in seconds.
func processor() float64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}

// memory is a figure from /proc in bytes.
func memory(what string) (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, what+":"); found {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n * 1024, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", what)
}

// profile writes a processor profile, if a file is named, until stop is called.
func profile(name string) (stop func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
	}, nil
}

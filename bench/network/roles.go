package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/coordinator"
	"grange/federated/network/identity"
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
	authority, err := identity.CreateAuthority(coordinator.IdentityFolder(s.Folder), []string{"127.0.0.1"}, time.Now)
	if err != nil {
		return err
	}
	registrar := &identity.Registrar{Authority: authority, Ledger: record}
	names := make([]string, s.Members)
	for i := range names {
		names[i] = fmt.Sprintf("silo%d", i)
		if err := enrol(ctx, registrar, names[i], memberFolder(s.Folder, i)); err != nil {
			return err
		}
	}
	if err := record.Close(); err != nil {
		return err
	}
	watcher := &watcher{}
	config, err := describe(s, names)
	if err != nil {
		return err
	}
	config.Federation.Observe = watcher.note
	c, err := coordinator.Open(ctx, config)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, c.Addr())
	stop, err := profile(s.Profile)
	if err != nil {
		return err
	}
	if _, err := c.Run(ctx); err != nil {
		return err
	}
	stop()
	if watcher.measured.Peak, err = memory("VmHWM"); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(watcher.measured); err != nil {
		return err
	}
	if late := c.Linger(ctx); late != nil {
		return fmt.Errorf("%v were not told of the end", late)
	}
	return c.Close()
}

// describe is a federation in which nothing is trained.
func describe(s setup, names []string) (coordinator.Config, error) {
	spec, err := model.New(s.Model, s.Shape, 10)
	if err != nil {
		return coordinator.Config{}, err
	}
	config := coordinator.Config{
		Folder: s.Folder, Address: "127.0.0.1:0",
		Federation: network.Config{
			RunInfo: network.RunInfo{Name: "bench", Members: names, Rounds: s.Rounds, Identity: map[string]string{"bench": s.Folder}},
			Spec:    spec, Initial: model.Init(spec, rand.New(rand.NewPCG(1, 2))), Evaluator: nothing{},
		},
		Silos: silo.ServerConfig{
			Data:     silo.Description{Name: "fashion", Shape: dataset.Shape(s.Shape), Classes: strings.Split("0123456789", "")},
			Holdings: slices.Repeat([]dataset.Holding{{Data: 10, Contribution: 10}}, len(names)),
		},
	}
	config.Silos.Data.Moments = dataset.Moments{
		Mean: slices.Repeat([]float64{0.5}, s.Shape.Channels), Deviation: slices.Repeat([]float64{0.25}, s.Shape.Channels),
	}
	return config, nil
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

// echo trains nothing: it sends back the model with one weight changed, as one that did not change would be refused. It
// does so in place, as Flower's client sends back what it got; a silo has the model to itself.
type echo struct{}

func (echo) Train(_ context.Context, task federated.Task) (federated.Update, error) {
	weights := task.Global
	weights.Flat[task.Member]++
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

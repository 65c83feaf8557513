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
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"

	"grange/federated/network"
	"grange/federated/network/flower"
	"grange/federated/network/identity"
	"grange/federated/network/listen"
	"grange/federated/network/objects"
	"grange/federated/network/store"
	"grange/model"
)

// trainable is an architecture without its statistics, which Flower's benchmark does not have either.
func trainable(spec model.Spec) model.Spec {
	index, offset := map[int]int{model.None: model.None}, 0
	var tensors []model.Tensor
	for i, tensor := range spec.Tensors {
		if tensor.Role != model.Statistic {
			index[i] = len(tensors)
			tensor.Offset = offset
			offset += tensor.Size
			tensors = append(tensors, tensor)
		}
	}
	layers := make([]model.Layer, len(spec.Layers))
	for i, layer := range spec.Layers {
		layer.Weight, layer.Bias, layer.Mean, layer.Variance = index[layer.Weight], index[layer.Bias], model.None, model.None
		layers[i] = layer
	}
	spec.Tensors, spec.Layers = tensors, layers
	return spec
}

// serveFlower is the process of a coordinator for clients of Flower's, which come without TLS.
func serveFlower(ctx context.Context, in io.Reader, out io.Writer) error {
	var s setup
	if err := json.NewDecoder(in).Decode(&s); err != nil {
		return err
	}
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
	files, err := objects.Open(s.Folder)
	if err != nil {
		return err
	}
	spec, err := model.New(s.Model, s.Shape, 10)
	if err != nil {
		return err
	}
	spec = trainable(spec)
	initial, random := model.NewWeights(spec), rand.New(rand.NewPCG(1, 2))
	for i := range initial.Flat {
		initial.Flat[i] = float32(random.NormFloat64())
	}
	var o flower.Options
	names := make([]string, s.Members)
	for i := range names {
		names[i] = fmt.Sprintf("client%d", i)
		o.Legacy, o.Data = append(o.Legacy, flower.Seat{Member: names[i]}), append(o.Data, 10)
	}
	watcher := &watcher{}
	federation, err := network.Open(ctx, network.Config{
		RunInfo: network.RunInfo{Name: "bench", Members: names, Rounds: s.Rounds, Identity: map[string]string{"bench": s.Folder}},
		Spec:    spec, Initial: initial, Evaluator: nothing{}, Record: record, Objects: files,
		Observe: watcher.note,
	})
	if err != nil {
		return err
	}
	service, err := flower.New(federation, o)
	if err != nil {
		return err
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	listener := listen.New(inner, listen.Config{TLS: authority.Config(), Plain: o.Plaintext()})
	server := grpc.NewServer(append(flower.ServerOptions(spec, o), grpc.Creds(listen.Credentials()))...)
	service.Register(server)
	ended := make(chan error, 2)
	go func() { ended <- listener.Serve() }()
	go func() { ended <- server.Serve(listener.GRPC()) }()
	_, port, err := net.SplitHostPort(inner.Addr().String())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, port)
	stop, err := profile(s.Profile)
	if err != nil {
		return err
	}
	if _, err := federation.Run(ctx); err != nil {
		return err
	}
	stop()
	if watcher.measured.Peak, err = memory("VmHWM"); err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(watcher.measured); err != nil {
		return err
	}
	server.GracefulStop() // the clients are told that the run is over
	return errors.Join(listener.Close(), <-ended, <-ended)
}

// hosted compares Grange's and Flower's server, both with Flower's clients.
func hosted(ctx context.Context, out io.Writer, o options, folder string, theirs *measured) error {
	spec, err := model.New("resnet18", resnet, 10)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nFive clients of Flower's, unchanged, no TLS: %d tensors, %.1f MB; %d rounds, of which the first does not count\n",
		len(trainable(spec).Tensors), float64(4*spec.Parameters())/1e6, o.rounds)
	ours, err := guests(ctx, o, folder, spec, 5)
	if err != nil {
		return err
	}
	if theirs == nil {
		if theirs, err = flowersOwn(ctx, o, spec, 5); err != nil {
			return err
		}
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "server\tseconds a round\tworst\tserver CPU s\tclients CPU s\tserver peak MB\t")
	ours.row(table, "Grange")
	theirs.row(table, "Flower "+theirs.Version)
	if err := table.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "time: %.2f of Flower's (below 1); server memory: 1/%.1f of Flower's\n",
		median(ours.Seconds[1:])/median(theirs.Seconds[1:]), float64(theirs.Peak)/float64(ours.Peak))
	return err
}

// guests runs Flower's own clients, unchanged, on a coordinator of Grange.
func guests(ctx context.Context, o options, folder string, spec model.Spec, clients int) (*measured, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := setup{Folder: filepath.Join(folder, "guests"), Model: spec.Name, Shape: spec.Input, Members: clients, Rounds: o.rounds}
	if o.profile != "" {
		s.Profile = o.profile + ".flower"
	}
	coordinator, err := start(ctx, "flower", s)
	if err != nil {
		return nil, err
	}
	line, err := coordinator.line()
	if err != nil {
		return nil, fmt.Errorf("the coordinator ended early: %w", err)
	}
	port, err := strconv.Atoi(line[:len(line)-1])
	if err != nil {
		return nil, err
	}
	running := make([]*process, clients)
	for i := range running {
		if running[i], err = o.flowerProcess(ctx, "client", strconv.Itoa(port)); err != nil {
			return nil, err
		}
	}
	var m measured
	if err := coordinator.document(&m); err != nil {
		return nil, fmt.Errorf("the coordinator: %w", err)
	}
	if m.Failures > 0 {
		return nil, fmt.Errorf("%d updates of Flower's clients did not count", m.Failures)
	}
	return &m, m.addClients(running)
}

// flowerProcess starts Flower's side in a role.
func (o options) flowerProcess(ctx context.Context, arguments ...string) (*process, error) {
	command := exec.CommandContext(ctx, o.python, append([]string{"-W", "ignore", o.script}, arguments...)...)
	return launch(command, "", "FLWR_TELEMETRY_ENABLED=0", "GRPC_VERBOSITY=NONE")
}

// addClients waits for Flower's clients and adds up what they used.
func (m *measured) addClients(running []*process) error {
	for _, client := range running {
		var used struct {
			Processor float64 `json:"processor_seconds"`
		}
		if err := client.document(&used); err != nil {
			return fmt.Errorf("flower's client: %w", err)
		}
		m.Silos += used.Processor
	}
	return nil
}

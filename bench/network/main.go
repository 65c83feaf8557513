// Command network measures rounds of federations without training: five silos with a model of ResNet-18's size beside
// Flower's own server with its own clients, and a hundred silos with a model of 1 MB. Every silo is a process, all on this
// machine; Grange's connections are TLS 1.3 with certificates, Flower's are not encrypted.
//
//	go run ./bench/network
//	go run ./bench/network -part five -python ""     without Flower
//	go run ./bench/network -part flower              Flower's clients on Grange and on Flower's server
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"grange/model"
)

// options are the command's flags.
type options struct {
	part, python, script, profile string
	rounds                        int
}

// roleVariable tells a process that this command started what it is: a coordinator or a silo.
const roleVariable = "GRANGE_BENCH_ROLE"

func main() {
	ctx := context.Background()
	var err error
	switch os.Getenv(roleVariable) {
	case "coordinator":
		err = coordinate(ctx, os.Stdin, os.Stdout)
	case "flower":
		err = serveFlower(ctx, os.Stdin, os.Stdout)
	case "silo":
		err = takePart(ctx, os.Stdin, os.Stdout)
	default:
		var o options
		flag.StringVar(&o.part, "part", "all", "five, flower, hundred or all")
		flag.StringVar(&o.python, "python", filepath.Join("bench", ".venv", "bin", "python"), "the Python that has flwr; empty: no Flower")
		flag.StringVar(&o.script, "script", filepath.Join("bench", "peers", "flower_round.py"), "Flower's side")
		flag.IntVar(&o.rounds, "rounds", 10, "rounds of the five, the first of which does not count")
		flag.StringVar(&o.profile, "profile", "", "write processor profiles of the coordinator and the first silo to files of this name")
		flag.Parse()
		err = run(ctx, os.Stdout, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "network bench:", err)
		os.Exit(1)
	}
}

// setup is what a coordinator is told on its standard input.
type setup struct {
	Folder  string      `json:"folder"`
	Model   string      `json:"model"`
	Shape   model.Shape `json:"shape"`
	Members int         `json:"members"`
	Rounds  int         `json:"rounds"`
	Profile string      `json:"profile,omitempty"`
}

// place is what a silo is told.
type place struct {
	Folder  string `json:"folder"`
	Address string `json:"address"`
	Profile string `json:"profile,omitempty"`
}

// measured is what a coordinator, Grange's or Flower's, reports at its end.
type measured struct {
	Version string `json:"version"`
	// Seconds and Processor are the time and the coordinator's processor time of each round.
	Seconds   []float64 `json:"seconds"`
	Processor []float64 `json:"processor_seconds"`
	Peak      int64     `json:"peak_bytes"`
	// Resident is the memory in use after each round; Failures is how many updates did not count.
	Resident []int64 `json:"resident_bytes"`
	Failures int     `json:"failures"`
	// Silos is the processor time of all silos.
	Silos float64 `json:"silos_processor_seconds"`
}

func run(ctx context.Context, out io.Writer, o options) error {
	folder, err := os.MkdirTemp("", "grange-bench")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d processors, %s\n", runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	var theirs *measured
	if o.part == "all" || o.part == "five" {
		theirs, err = five(ctx, out, o, folder)
	}
	if err == nil && o.python != "" && (o.part == "all" || o.part == "flower") {
		err = hosted(ctx, out, o, folder, theirs)
	}
	if err == nil && (o.part == "all" || o.part == "hundred") {
		err = hundred(ctx, out, folder)
	}
	return errors.Join(err, os.RemoveAll(folder))
}

// resnet is the model of the five.
var resnet = model.Shape{Channels: 3, Height: 32, Width: 32}

// five compares with Flower, and returns how Flower did.
func five(ctx context.Context, out io.Writer, o options, folder string) (*measured, error) {
	spec, err := model.New("resnet18", resnet, 10)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "\nFive silos, %s: %d tensors, %.1f MB; %d rounds, of which the first does not count\n", spec.Name,
		len(spec.Tensors), float64(4*spec.Size())/1e6, o.rounds)
	ours, err := grange(ctx, setup{
		Folder: filepath.Join(folder, "five"), Model: spec.Name, Shape: resnet, Members: 5, Rounds: o.rounds, Profile: o.profile,
	})
	if err != nil {
		return nil, err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tseconds a round\tworst\tserver CPU s\tsilos CPU s\tserver peak MB\t")
	ours.row(table, "Grange, TLS 1.3")
	if o.python == "" {
		return nil, table.Flush()
	}
	theirs, err := flowersOwn(ctx, o, spec, 5)
	if err != nil {
		return nil, err
	}
	theirs.row(table, "Flower "+theirs.Version+", no TLS")
	if err := table.Flush(); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "time: %.2f of Flower's (at most 0.33); server memory: 1/%.1f of Flower's (at most 1/8)\n",
		median(ours.Seconds[1:])/median(theirs.Seconds[1:]), float64(theirs.Peak)/float64(ours.Peak))
	return theirs, nil
}

func (m *measured) row(out io.Writer, name string) {
	rounds := m.Seconds[1:]
	fmt.Fprintf(out, "%s\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\t\n", name, median(rounds), slices.Max(rounds), median(m.Processor[1:]),
		m.Silos/float64(len(m.Seconds)), float64(m.Peak)/1e6)
}

// hundred looks for failures and for memory that grows.
func hundred(ctx context.Context, out io.Writer, folder string) error {
	shape := model.Shape{Channels: 1, Height: 32, Width: 32}
	spec, err := model.New("mlp", shape, 10)
	if err != nil {
		return err
	}
	const rounds = 100
	fmt.Fprintf(out, "\n100 silos, %s: %.2f MB; %d rounds\n", spec.Name, float64(4*spec.Size())/1e6, rounds)
	m, err := grange(ctx, setup{Folder: filepath.Join(folder, "hundred"), Model: spec.Name, Shape: shape, Members: 100, Rounds: rounds})
	if err != nil {
		return err
	}
	quarter := len(m.Resident) / 4
	early, late := m.Resident[quarter:2*quarter], m.Resident[3*quarter:]
	fmt.Fprintf(out, "%d updates missing or refused; %.3f s a round (median), %.3f at worst; coordinator's memory: "+
		"%.0f MB in rounds %d to %d, %.0f MB in rounds %d to %d, %.0f MB at most\n", m.Failures, median(m.Seconds), slices.Max(m.Seconds),
		mean(early)/1e6, quarter+1, 2*quarter, mean(late)/1e6, 3*quarter+1, len(m.Resident), float64(m.Peak)/1e6)
	if m.Failures > 0 {
		return fmt.Errorf("%d updates did not count", m.Failures)
	}
	if mean(late) > 1.1*mean(early) {
		return errors.New("memory grows")
	}
	return nil
}

func mean(values []int64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += float64(v)
	}
	return sum / float64(len(values))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// grange runs a coordinator and its silos, each in a process of its own.
func grange(ctx context.Context, s setup) (*measured, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	coordinator, err := start(ctx, "coordinator", s)
	if err != nil {
		return nil, err
	}
	address, err := coordinator.line()
	if err != nil {
		return nil, err
	}
	silos := make([]*process, s.Members)
	for i := range silos {
		p := place{Folder: memberFolder(s.Folder, i), Address: strings.TrimSpace(address)}
		if i == 0 && s.Profile != "" {
			p.Profile = s.Profile + ".silo"
		}
		if silos[i], err = start(ctx, "silo", p); err != nil {
			return nil, err
		}
	}
	var m measured
	text, err := coordinator.line()
	if err == nil {
		err = json.Unmarshal([]byte(text), &m)
	}
	if err != nil {
		return nil, fmt.Errorf("the coordinator ended early: %w", err)
	}
	for _, silo := range silos {
		text, err := silo.line()
		if err != nil {
			return nil, fmt.Errorf("a silo ended early: %w", err)
		}
		used, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, err
		}
		m.Silos += used
		if err := silo.command.Wait(); err != nil {
			return nil, err
		}
	}
	return &m, coordinator.command.Wait()
}

// process is one that this command started.
type process struct {
	command *exec.Cmd
	out     *bufio.Reader
}

func (p *process) line() (string, error) { return p.out.ReadString('\n') }

// start starts this program again in a role.
func start(ctx context.Context, role string, input any) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(input)
	if err != nil {
		return nil, err
	}
	return launch(exec.CommandContext(ctx, self), string(text), roleVariable+"="+role)
}

func launch(command *exec.Cmd, input string, environment ...string) (*process, error) {
	command.Env = append(os.Environ(), environment...)
	command.Stdin, command.Stderr = strings.NewReader(input), os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &process{command, bufio.NewReader(out)}, command.Start()
}

// flowersOwn runs Flower's own server and clients. It gets the tensors that are trained only, as PyTorch has them.
func flowersOwn(ctx context.Context, o options, spec model.Spec, clients int) (*measured, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var shapes [][]int
	for _, tensor := range spec.Tensors {
		if tensor.Role != model.Statistic {
			shapes = append(shapes, tensor.Shape)
		}
	}
	text, err := json.Marshal(shapes)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	server, err := o.flowerProcess(ctx, "server", port, strconv.Itoa(clients), strconv.Itoa(o.rounds), string(text))
	if err != nil {
		return nil, err
	}
	running := make([]*process, clients)
	for i := range running {
		if running[i], err = o.flowerProcess(ctx, "client", port); err != nil {
			return nil, err
		}
	}
	var m measured
	if err := server.document(&m); err != nil {
		return nil, fmt.Errorf("flower's server: %w", err)
	}
	return &m, m.addClients(running)
}

// document reads the last line that a process prints, and waits for its end.
func (p *process) document(v any) error {
	last := ""
	for {
		line, err := p.line()
		if strings.HasPrefix(line, "{") {
			last = line
		}
		if err != nil {
			break
		}
	}
	return errors.Join(p.command.Wait(), json.Unmarshal([]byte(last), v))
}

func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

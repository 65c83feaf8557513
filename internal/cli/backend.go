package cli

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"grange/train/xla"
	"grange/train/xla/program"
)

// deviceFlags are the flags of every command that trains.
type deviceFlags struct {
	backend   string
	plugin    string
	precision string
	processes int
}

func (d *deviceFlags) register(f *pflag.FlagSet) {
	f.StringVar(&d.backend, "backend", "", "what to train on: cpu, or xla:cuda for an NVIDIA card (default cpu)")
	f.StringVar(&d.plugin, "plugin", "", "the card's XLA plugin (default: $"+xla.PluginVariable+", or found among Python's packages)")
	f.StringVar(&d.precision, "precision", "bf16", "of products on the card: bf16 or f32; weights are always f32")
	f.IntVar(&d.processes, "processes", 5, "members that train side by side on the card; does not change the result")
}

// fromFile says of the flags that a scenario is asked where the command line is silent.
func (d *deviceFlags) fromFile(f *pflag.FlagSet) {
	f.Lookup("backend").Usage = "what to train on: cpu, or xla:cuda for an NVIDIA card (default: the file's, or cpu)"
}

// engine is what a backend trains with, nil for the CPU. The flag goes before what the file says.
func (a *app) engine(d deviceFlags, file string) (string, *xla.Engine, error) {
	backend := d.backend
	if backend == "" {
		backend = file
	}
	switch backend {
	case "", "cpu":
		return "cpu", nil, nil
	case "xla:cuda":
	default:
		try := "set training.backend to cpu, or to xla:cuda for an NVIDIA card"
		if d.backend != "" {
			try = "--backend xla:cuda for an NVIDIA card, or --backend cpu"
		}
		return "", nil, &usageError{problem: fmt.Sprintf("the backend is %s, and this program trains with cpu and xla:cuda only", backend), try: try}
	}
	if d.processes < 1 {
		return "", nil, &usageError{fmt.Sprintf("--processes is %d, want a whole number ≥ 1", d.processes), "leave --processes out"}
	}
	precision := program.Precision(d.precision)
	if precision != program.BFloat16 && precision != program.Float32 {
		return "", nil, &usageError{fmt.Sprintf("--precision is %q, want bf16 or f32", d.precision), "leave --precision out"}
	}
	engine := &xla.Engine{Config: xla.Config{
		Plugin: d.plugin, Precision: precision, Workers: d.processes,
		Log: slog.New(slog.NewTextHandler(a.env.Stderr, nil)),
	}}
	a.ending.add(engine.Close)
	return backend, engine, nil
}

// cellsAtOnce is how many cells share the card: the members of one train while the models of the other are averaged.
const cellsAtOnce = 2

// deviceHint is what to do about an error of the card, or "".
func deviceHint(err error) string {
	switch {
	case errors.Is(err, xla.ErrUnsupported):
		return "--backend cpu, or a build with cgo for Linux: CGO_ENABLED=1 go build ./cmd/grange"
	case errors.Is(err, xla.ErrNoPlugin):
		return "pip install 'jax[cuda13]', or --plugin FILE; --backend cpu needs neither"
	case errors.Is(err, xla.ErrMemory):
		return "fewer --processes, or end what else uses the card; what was finished is kept"
	case errors.Is(err, xla.ErrWorker):
		return "nvidia-smi shows whether the card is there and free; --backend cpu needs none; what was finished is kept"
	}
	return ""
}

// xlaWorker is the command that the program starts itself with, once for each member on the card.
func (a *app) xlaWorker() *cobra.Command {
	return &cobra.Command{
		Use:    xla.WorkerCommand,
		Short:  "Train on the card for the program that started this one",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: a.command(func(*cobra.Command, []string) error {
			return xla.Serve(a.env.Stdin, a.env.Stdout)
		}),
	}
}

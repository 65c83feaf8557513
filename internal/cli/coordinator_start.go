package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/coordinator"
	"grange/federated/network/identity"
	"grange/federated/network/silo"
	"grange/federated/network/store"
	"grange/lab/updates"
	"grange/nn"
	"grange/scenario"
	"grange/train"
)

type startFlags struct {
	listen string
	// train are those that start has in common with grange train.
	train  trainFlags
	flower flowerFlags
}

func (a *app) coordinatorStart() *cobra.Command {
	var flags startFlags
	cmd := &cobra.Command{
		Use:   "start DIR FILE",
		Short: "Wait for the members, run the rounds, and print the result",
		Long: `Start listens on one port, waits until every member of the scenario has declared what it contributes,
and runs the rounds. A round waits for everybody, or as the scenario's section federation says. The
accuracy is that on the clean test data of the scenario's data set, which the coordinator has.

It can be stopped and killed at any moment: the same command goes on where it was, and members come
back by themselves. The result is that of grange train with the same contributions, to the byte.

Over https the port also serves /healthz, /metrics for Prometheus, and /status.`,
		Example: "  grange coordinator start coop examples/clinics.yaml --listen 127.0.0.1:8443",
		Args:    arguments("a folder", "a scenario file"),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			err := coordinatorError(a.runCoordinatorStart(cmd.Context(), args[0], args[1], flags), args[0])
			if hinted := (*hintError)(nil); errors.As(err, &hinted) {
				return err
			}
			return trainError(err, flags.train)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&flags.listen, "listen", ":"+defaultPort, "address and port to listen on")
	flags.flower.register(f)
	t := &flags.train
	t.contributions = "all" // the most that members may declare of what the scenario deals them
	f.BoolVar(&t.json, "json", false, "print one JSON document, as grange train does")
	f.StringVar(&t.save, "save", "", "write the trained model to this safetensors file")
	f.StringVar(&t.updates, "keep-updates", "", "keep what every member uploads in this folder, for grange value")
	f.StringVar(&t.plot, "plot", "", "draw the accuracy per round to this .svg, .png or .pdf file")
	f.Var(&t.seed, "seed", "seed of all chance (default: the file's, or 1)")
	f.IntVar(&t.workers, "workers", 0, "processors that score the model; does not change the result (default: all)")
	f.StringVar(&t.data, "data", "", "folder with data sets that are not built in (default: $GRANGE_DATA, or the user's cache)")
	f.StringVar(&t.kernel, "kernel", "", "how to score the model: "+strings.Join(nn.Kernels(), ", ")+" (default: the fastest)")
	return cmd
}

func (a *app) runCoordinatorStart(ctx context.Context, folder, file string, flags startFlags) error {
	for _, out := range []struct{ flag, path string }{{"save", flags.train.save}, {"plot", flags.train.plot}} {
		if err := writable(out.flag, out.path); err != nil {
			return err
		}
	}
	if err := checkModelFile(flags.train.save); err != nil {
		return err
	}
	if _, err := chartFormat(flags.train.plot); err != nil {
		return err
	}
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("%w in %s", store.ErrMissing, folder)
	}
	s, job, federation, err := a.federation(ctx, file, flags.train)
	if err != nil {
		return err
	}
	if a.env.Getenv("GOGC") == "" {
		// What a coordinator holds is a few large models: collecting the rest often costs nothing.
		debug.SetGCPercent(25)
	}
	kept := keptIn(folder)
	a.kept.Store(&kept)
	log := slog.New(slog.NewTextHandler(a.env.Stderr, nil))
	var c *coordinator.Coordinator
	if flags.train.updates != "" {
		federation.Keep, err = keepUpdates(s, flags.train.updates, job, func() network.Status { return c.Status() })
		if err != nil {
			return err
		}
	}
	config := coordinator.Config{
		Folder: folder, Address: flags.listen, Federation: federation, Log: log,
		Silos: silo.ServerConfig{Data: silo.Describe(job.Data), Split: job.Split, Holdings: job.Holdings()},
	}
	if err := flags.flower.apply(&config, job); err != nil {
		return err
	}
	if c, err = coordinator.Open(ctx, config); err != nil {
		return err
	}
	defer c.Close()
	if err := logStart(ctx, log, c, folder); err != nil {
		return err
	}
	trained, err := c.Run(ctx)
	if err != nil {
		return err
	}
	used, err := c.Used(ctx)
	if err != nil {
		return err
	}
	job = declared(job, c.Status())
	if err := a.printTraining(ctx, s, job, usedUp(job.Result(trained), used), flags.train); err != nil {
		return err
	}
	if late := c.Linger(ctx); late != nil {
		log.Warn("members that may not know of the end; start again to tell them", "members", strings.Join(late, ", "))
	}
	return c.Close()
}

// federation reads a scenario and describes it to a federation.
func (a *app) federation(ctx context.Context, file string, flags trainFlags) (*scenario.Scenario, train.Job, network.Config, error) {
	var job train.Job
	var config network.Config
	s, err := scenario.Load(file)
	if err != nil {
		return nil, job, config, err
	}
	for _, member := range s.Members {
		if err := identity.CheckName(member.Name); err != nil {
			return nil, job, config, err
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, job, config, fmt.Errorf("reading the scenario: %w", err)
	}
	data, err := dataset.Open(ctx, s.Training.Dataset, dataset.Options{Directory: a.dataDirectory(flags.data, s.Training.Data)})
	if err != nil {
		return nil, job, config, err
	}
	if job, err = trainingJob(s, data, flags); err != nil {
		return nil, job, config, err
	}
	if config, err = train.Federate(ctx, job); err != nil {
		return nil, job, config, err
	}
	config.Name, config.Scenario = s.Name, text
	config.Policy = network.Policy{Deadline: s.Federation.Deadline, Minimum: s.Federation.Minimum}
	config.Now = a.env.Now
	return s, job, config, nil
}

// declared is a job with what the members have declared: nothing, for those who have not.
func declared(job train.Job, status network.Status) train.Job {
	job.Members = slices.Clone(job.Members)
	for i := range job.Members {
		job.Members[i].Contribution = 0
	}
	for i, member := range status.Members {
		if d := member.Declaration; d != nil {
			job.Members[i].Contribution, job.Members[i].Data = d.Contribution, d.Data
		}
	}
	return job
}

// usedUp is a result with the data points that members used, beside those they declared where these are others.
func usedUp(result *train.Result, used []int) *train.Result {
	if !slices.Equal(result.Contributions, used) {
		result.Declared, result.Contributions = result.Contributions, used
	}
	return result
}

// keepUpdates returns what saves every round's updates to a folder, with what the members have declared until then. That
// the folder is there and not another training's is found out now, before anybody trains.
func keepUpdates(s *scenario.Scenario, folder string, job train.Job, status func() network.Status) (func(*federated.Aggregate) error, error) {
	describe := func(status network.Status) (updates.Manifest, error) {
		m, err := manifest(s, declared(job, status))
		m.Declared = true
		return m, err
	}
	m, err := describe(network.Status{})
	if err != nil {
		return nil, err
	}
	if err := updates.Check(folder, m); err != nil {
		return nil, err
	}
	return func(round *federated.Aggregate) error {
		m, err := describe(status())
		if err != nil {
			return err
		}
		writer, err := updates.Create(folder, m)
		if err != nil {
			return err
		}
		return writer.Save(round)
	}, nil
}

// logStart says where the coordinator is and whom it waits for, and who waits in vain.
func logStart(ctx context.Context, log *slog.Logger, c *coordinator.Coordinator, folder string) error {
	status := c.Status()
	var names, missing []string
	for _, member := range status.Members {
		names = append(names, member.Name)
		if member.Declaration == nil {
			missing = append(missing, member.Name)
		}
	}
	log.Info("listening", "address", c.Addr().String(), "run", status.Name, "round", status.Round, "of", status.Rounds)
	if missing != nil {
		log.Info("waiting for members", "members", strings.Join(missing, ", "))
	}
	outsiders, err := c.Outsiders(ctx)
	for _, admission := range outsiders {
		o := newOutsider(admission, names)
		log.Warn(o.text(), "try", o.try(folder))
	}
	return err
}

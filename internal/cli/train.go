package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"grange/dataset"
	"grange/federated"
	"grange/federated/checkpoint"
	"grange/lab/updates"
	"grange/model"
	"grange/nn"
	"grange/report/chart"
	"grange/scenario"
	"grange/train"
)

type trainFlags struct {
	contributions string
	json          bool
	save          string
	updates       string
	resume        string
	plot          string
	seed          seed
	workers       int
	data          string
	kernel        string
	proceed       bool
	device        deviceFlags
}

func (a *app) train() *cobra.Command {
	var flags trainFlags
	cmd := &cobra.Command{
		Use:   "train FILE",
		Short: "Train the model on what each member contributes, by federated averaging",
		Long: `Train deals the data set to the members, gives each its wrong labels, and trains one model in rounds:
every member trains the global model on its contribution, and the server averages what they send.
The accuracy is that on clean test data. The result depends on the seed and on the kernel, not on the
number of workers.

With --resume DIR the state after every round is kept in DIR; a run that was stopped goes on from
there and ends with the same bytes as one that was not.`,
		Example: "  grange train examples/clinics.yaml --contributions 200,200,200,2000,2000",
		Args:    oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return trainError(a.runTrain(cmd.Context(), args[0], flags), flags)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&flags.contributions, "contributions", "all", "data points each member trains on: a list s1,s2,… in file order, or all")
	f.BoolVar(&flags.json, "json", false, "print one JSON document")
	f.StringVar(&flags.save, "save", "", "write the trained model to this safetensors file")
	f.StringVar(&flags.updates, "save-updates", "", "keep what every member uploads in this folder, for grange value")
	f.StringVar(&flags.resume, "resume", "", "keep the state after every round in this folder, and go on from what it holds")
	f.StringVar(&flags.plot, "plot", "", "draw the accuracy per round to this .svg, .png or .pdf file")
	f.Var(&flags.seed, "seed", "seed of all chance (default: the file's, or 1)")
	f.IntVar(&flags.workers, "workers", 0, "members that train at once; does not change the result (default: one per core)")
	f.StringVar(&flags.data, "data", "", "folder with data sets that are not built in (default: $GRANGE_DATA, or the user's cache)")
	f.StringVar(&flags.kernel, "kernel", "", "how to compute: "+strings.Join(nn.Kernels(), ", ")+" (default: the fastest)")
	flags.device.register(f)
	flags.device.fromFile(f)
	f.BoolVar(&flags.proceed, "proceed", false, "go on without a member that fails in a round, instead of stopping")
	return cmd
}

func (a *app) runTrain(ctx context.Context, file string, flags trainFlags) error {
	for _, out := range []struct{ flag, path string }{{"save", flags.save}, {"plot", flags.plot}} {
		if err := writable(out.flag, out.path); err != nil {
			return err
		}
	}
	if err := checkModelFile(flags.save); err != nil {
		return err
	}
	if _, err := chartFormat(flags.plot); err != nil {
		return err
	}
	s, err := scenario.Load(file)
	if err != nil {
		return err
	}
	_, engine, err := a.engine(flags.device, s.Training.Backend)
	if err != nil {
		return err
	}
	data, err := dataset.Open(ctx, s.Training.Dataset, dataset.Options{Directory: a.dataDirectory(flags.data, s.Training.Data)})
	if err != nil {
		return err
	}
	job, err := trainingJob(s, data, flags)
	if err != nil {
		return err
	}
	if engine != nil {
		job.Engine = engine
	}
	bar := a.progress("rounds", job.Settings.Rounds)
	defer bar.stop()
	save, saved, ctx := a.updateSaver(ctx, s, job, flags.updates)
	job.Observe = func(o federated.Observation) {
		bar.step()
		save(o.Aggregate)
	}
	job.Resumed = func(rounds []federated.Round) {
		for range rounds {
			bar.step()
		}
	}
	if err := saved(); err != nil {
		return err
	}
	result, err := train.Run(ctx, job)
	bar.stop()
	if failed := saved(); failed != nil {
		return failed
	}
	if err != nil {
		return err
	}
	return a.printTraining(ctx, s, job, result, flags)
}

// printTraining writes the files that were asked for and prints the result.
func (a *app) printTraining(ctx context.Context, s *scenario.Scenario, job train.Job, result *train.Result, flags trainFlags) error {
	if err := a.saveTraining(ctx, s.Name, result, flags); err != nil {
		return err
	}
	if flags.json {
		return a.printJSON(ctx, result)
	}
	return a.print(ctx, []byte(a.trainingText(s, job, result, flags)))
}

// startOf is how a scenario wants weights to be drawn.
func startOf(t scenario.Training) model.Start {
	if t.Start == "pytorch" {
		return model.StartPyTorch
	}
	return model.StartHe
}

// trainingJob is what a scenario asks to be trained at some contributions.
func trainingJob(s *scenario.Scenario, data *dataset.Dataset, flags trainFlags) (train.Job, error) {
	t := s.Training
	job := train.Job{
		Data:        data,
		Model:       t.Model,
		Start:       startOf(t),
		Settings:    federated.Settings{Rounds: t.Rounds, GlobalRate: t.GlobalRate},
		Local:       federated.Local{Epochs: t.Epochs, Batch: t.Batch, Rate: t.Rate, Momentum: t.Momentum, Decay: t.WeightDecay, Proximal: t.Proximal},
		Seed:        flags.seed.or(t.Seed),
		Workers:     flags.workers,
		Kernel:      flags.kernel,
		Checkpoints: flags.resume,
	}
	if flags.proceed {
		job.Settings.OnFailure = federated.Proceed
	}
	owned := make([]int, len(s.Members))
	for n, m := range s.Members {
		owned[n] = int(m.Data)
	}
	switch t.Split.Kind {
	case "dirichlet":
		job.Split = dataset.Split{Method: dataset.Dirichlet, Concentration: t.Split.Alpha}
	case "shares":
		var err error
		if owned, err = dataset.Sizes(data.Train.Len(), t.Split.Shares); err != nil {
			return job, err
		}
	}
	contributions, err := parseContributions(flags.contributions, s, owned)
	if err != nil {
		return job, err
	}
	for n, m := range s.Members {
		noise := dataset.Noise{Rate: m.Noise}
		if m.Transition != nil {
			noise = dataset.Noise{Transition: m.Transition}
		}
		job.Members = append(job.Members, train.Member{
			Name:    m.Name,
			Holding: dataset.Holding{Data: owned[n], Contribution: contributions[n], Noise: noise},
		})
	}
	return job, nil
}

// parseContributions reads s1,s2,… or all.
func parseContributions(text string, s *scenario.Scenario, owned []int) ([]int, error) {
	if text == "all" {
		return owned, nil
	}
	wrong := func(format string, args ...any) error {
		return &usageError{
			problem: "--contributions " + fmt.Sprintf(format, args...),
			try:     "give one whole number per member, in the order of the file, separated by commas; or all",
		}
	}
	words := strings.Split(text, ",")
	if len(words) != len(owned) {
		return nil, wrong("has %d numbers, want %d, one per member", len(words), len(owned))
	}
	contributions := make([]int, len(words))
	for n, word := range words {
		x, err := strconv.Atoi(strings.TrimSpace(word))
		if err != nil {
			return nil, wrong("has %q, want whole numbers", word)
		}
		if x < 0 || x > owned[n] {
			return nil, wrong("gives %s %d points, want 0 to %d, as many as it has", s.Members[n].Name, x, owned[n])
		}
		contributions[n] = x
	}
	return contributions, nil
}

func (a *app) saveTraining(ctx context.Context, name string, result *train.Result, flags trainFlags) error {
	if flags.save != "" {
		var b bytes.Buffer
		metadata := map[string]string{
			"scenario": name, "dataset": result.Dataset, "model": result.Model,
			"seed": fmt.Sprint(result.Seed), "rounds": fmt.Sprint(len(result.Rounds)), "kernel": result.Kernel,
			"accuracy": strconv.FormatFloat(result.Accuracy, 'g', -1, 64),
		}
		if err := model.WriteSafetensors(&b, result.Weights, metadata); err != nil {
			return err
		}
		if err := a.save(ctx, flags.save, b.Bytes()); err != nil {
			return err
		}
	}
	if flags.plot == "" {
		return nil
	}
	return a.saveChart(ctx, flags.plot, trainingChart(name, result))
}

// trainingChart draws accuracy and losses over the rounds.
func trainingChart(name string, result *train.Result) chart.Chart {
	accuracy := chart.Line{Name: "test accuracy", Color: chart.Series(1), Marks: len(result.Rounds) <= 30}
	test := chart.Line{Name: "test loss", Color: chart.Series(2), Marks: accuracy.Marks}
	training := chart.Line{Name: "training loss", Color: chart.Series(3), Marks: accuracy.Marks}
	for _, r := range result.Rounds {
		x := float64(r.Round)
		accuracy.Points = append(accuracy.Points, chart.XY{X: x, Y: r.Accuracy, Low: r.Accuracy, High: r.Accuracy})
		test.Points = append(test.Points, chart.XY{X: x, Y: r.Loss, Low: r.Loss, High: r.Loss})
		training.Points = append(training.Points, chart.XY{X: x, Y: r.Training, Low: r.Training, High: r.Training})
	}
	rounds := chart.Axis{Label: "round"}
	return chart.Chart{
		ID: "training", Title: name + ": " + result.Model + " on " + result.Dataset,
		Panels: []chart.Panel{
			{Title: "Accuracy of the global model", X: rounds, Y: chart.Axis{Label: "accuracy on clean test data", Percent: true}, Lines: []chart.Line{accuracy}},
			{Title: "Loss", X: rounds, Y: chart.Axis{Label: "cross-entropy", FromZero: true}, Lines: []chart.Line{test, training}},
		},
	}
}

// trainingText is what a person reads.
func (a *app) trainingText(s *scenario.Scenario, job train.Job, result *train.Result, flags trainFlags) string {
	var b strings.Builder
	total := 0
	for _, x := range result.Contributions {
		total += x
	}
	fmt.Fprintf(&b, "%s: %s on %s, %s of %s images, %d rounds of %d epochs, seed %d, kernel %s\n\n",
		s.Name, result.Model, result.Dataset, whole(int64(total)), whole(int64(job.Data.Train.Len())), len(result.Rounds), job.Local.Epochs, result.Seed, result.Kernel)
	b.WriteString(a.trainingMembers(job, result))
	b.WriteByte('\n')
	rounds := &table{}
	rounds.add(right("round").in(bold), right("accuracy").in(bold), right("test loss").in(bold), right("training loss").in(bold))
	rounds.rule()
	for _, r := range result.Rounds {
		rounds.add(right(fmt.Sprint(r.Round)), right(fmt.Sprintf("%.2f%%", 100*r.Accuracy)), right(fmt.Sprintf("%.4f", r.Loss)), right(fmt.Sprintf("%.4f", r.Training)))
	}
	b.WriteString(rounds.render(a.colour()))
	fmt.Fprintf(&b, "\nAccuracy on clean test data: %.2f%%\n", 100*result.Accuracy)
	for _, w := range result.Warnings {
		fmt.Fprintf(&b, "Note: %s\n", w)
	}
	for _, file := range []struct{ what, path string }{{"Model", flags.save}, {"Picture", flags.plot}, {"Updates", flags.updates}} {
		if file.path != "" {
			fmt.Fprintf(&b, "%s: %s\n", file.what, file.path)
		}
	}
	return b.String()
}

// trainingMembers is the table of who trained on how much.
func (a *app) trainingMembers(job train.Job, result *train.Result) string {
	t := &table{}
	first := []cell{left("member").in(bold), right("contributes").in(bold), right("of").in(bold), right("wrong labels").in(bold)}
	if result.Declared != nil {
		first = slices.Insert(first, 1, right("used").in(bold))
		first[2] = right("declared").in(bold)
	}
	t.add(first...)
	t.rule()
	for n, m := range job.Members {
		wrong := percent(m.Noise.Rate)
		if m.Noise.Transition != nil {
			wrong = "by matrix"
		}
		row := []cell{left(m.Name), right(whole(int64(result.Contributions[n]))), right(whole(int64(m.Data))), right(wrong)}
		if result.Declared != nil {
			row = slices.Insert(row, 2, right(whole(int64(result.Declared[n]))))
		}
		t.add(row...)
	}
	return t.render(a.colour())
}

// trainError adds what to do to the errors of data sets and checkpoints.
func trainError(err error, flags trainFlags) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		if flags.resume != "" {
			return hint(exitFailed, "run it again: it goes on after the last finished round in "+flags.resume)
		}
		return hint(exitFailed, "run it again; with --resume DIR it would go on where it stopped")
	case deviceHint(err) != "":
		return hint(exitFailed, deviceHint(err))
	case errors.Is(err, checkpoint.ErrOther):
		return hint(exitUsage, "give --resume another folder, or run the scenario that "+flags.resume+" belongs to")
	case errors.Is(err, checkpoint.ErrDamaged), errors.Is(err, checkpoint.ErrVersion):
		return hint(exitFailed, "give --resume another folder to start afresh; nothing in "+flags.resume+" was changed")
	case errors.Is(err, checkpoint.ErrWrite):
		return hint(exitFailed, "free some space in "+flags.resume+" and run it again: it goes on after the last saved round")
	case errors.Is(err, updates.ErrOther):
		return hint(exitUsage, "give --save-updates another folder: nothing in "+flags.updates+" was changed")
	case errors.Is(err, updates.ErrWrite):
		return hint(exitFailed, "free some space, or give --save-updates another folder")
	case errors.Is(err, train.ErrJob), errors.Is(err, federated.ErrSettings), errors.Is(err, nn.ErrKernel):
		return hint(exitUsage, "grange train --help")
	case errors.Is(err, federated.ErrNobody):
		return hint(exitUsage, "give at least one member a contribution above 0")
	case errors.Is(err, federated.ErrNotFinite):
		return hint(exitFailed, "lower training.rate: the model diverged")
	case errors.Is(err, federated.ErrTraining):
		return hint(exitFailed, "look into that member, or go on without it: --proceed")
	}
	return dataError(err)
}

// checkModelFile refuses names that promise another format than safetensors.
func checkModelFile(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".pt", ".pth", ".pkl", ".onnx", ".h5", ".keras", ".npz":
		return &usageError{fmt.Sprintf("--save %s: models are saved as safetensors only", path), "name a file that ends in .safetensors; docs/models.md says how to read it in PyTorch"}
	}
	return nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"grange/curve"
	"grange/dataset"
	"grange/federated"
	"grange/game"
	"grange/lab"
	"grange/mechanism"
	"grange/report/story"
	"grange/scenario"
)

// labFlags are the flags of every command that works with cells.
type labFlags struct {
	results string
	workers int
	memory  int64
	retrain bool
	json    bool
	seed    seed
	data    string
	device  deviceFlags
}

// registerIdle registers the flags for a command that trains nothing: those about training are taken and not shown.
func (l *labFlags) registerIdle(f *pflag.FlagSet) {
	l.register(f)
	f.Lookup("workers").Usage = "replicates at once; does not change any result"
	for _, name := range []string{"memory", "retrain", "backend", "plugin", "precision", "processes"} {
		f.Lookup(name).Hidden = true
	}
}

func (l *labFlags) register(f *pflag.FlagSet) {
	f.StringVar(&l.results, "results", "results", "folder in which training runs are kept and found again")
	f.IntVar(&l.workers, "workers", runtime.GOMAXPROCS(0), "training runs at once; does not change any result")
	f.Int64Var(&l.memory, "memory", 0, "MiB that all training runs at once may use (default: no limit)")
	f.BoolVar(&l.retrain, "retrain", false, "train damaged cells anew instead of stopping")
	f.StringVar(&l.data, "data", "", "folder with data sets that are not built in")
	f.BoolVar(&l.json, "json", false, "print one JSON document")
	f.Var(&l.seed, "seed", "seed of the first run (default: the file's, or 1)")
	l.device.register(f)
}

// planFlags are the flags of the measuring grid.
type planFlags struct {
	fractions []float64
	noise     []float64
	mixed     bool
	repeats   int
	form      string
}

func (p *planFlags) register(f *pflag.FlagSet) {
	f.Var(numbers{&p.fractions}, "fractions", "parts of everyone's data to measure at, clean, or none (default 0.01,0.025,0.05,0.1,0.2,…,1)")
	f.Var(numbers{&p.noise}, "noise", "wrong-label rates to measure at, with all data, or none (default 0,0.1,…,0.5)")
	f.BoolVar(&p.mixed, "mixed", true, "also measure points with part of the data and wrong labels")
	f.Var(runCount{&p.repeats}, "repeats", "runs of every point, with different seeds (default: the file's)")
	f.StringVar(&p.form, "form", "", "curve to use: loglinear, power or exponential (default: the one AICc prefers)")
}

func (p *planFlags) check(command string) error {
	try := "grange " + command + " --help"
	for _, x := range p.fractions {
		if !(x > 0 && x <= 1) {
			return &usageError{fmt.Sprintf("--fractions has %v, want numbers in (0, 1]", x), try}
		}
	}
	for _, x := range p.noise {
		if !(x >= 0 && x < 1) {
			return &usageError{fmt.Sprintf("--noise has %v, want numbers in [0, 1)", x), try}
		}
	}
	if p.form != "" {
		var known []string
		for _, form := range curve.Forms() {
			if string(form) == p.form {
				return nil
			}
			known = append(known, string(form))
		}
		return &usageError{fmt.Sprintf("--form is %q, want %s", p.form, strings.Join(known, ", ")), try}
	}
	return nil
}

// bench is a laboratory ready to work on one scenario.
type bench struct {
	scenario *scenario.Scenario
	study    *lab.Study
	runner   *lab.Runner
	seed     uint64
}

// openBench reads the scenario and the results folder. The data set is read
// only when something is trained.
func (a *app) openBench(ctx context.Context, file string, l labFlags, p planFlags) (*bench, error) {
	s, err := scenario.Load(file)
	if err != nil {
		return nil, err
	}
	b := &bench{scenario: s, seed: l.seed.or(s.Training.Seed)}
	t := s.Training
	if t.Split.Kind == "shares" {
		return nil, &usageError{"training.split of kind shares cannot be measured: members own what their data says", "leave training.split out of " + file}
	}
	training := lab.Training{
		Dataset: t.Dataset, Model: t.Model, Start: string(startOf(t)), Rounds: t.Rounds, Epochs: t.Epochs, Batch: t.Batch, Rate: t.Rate,
		GlobalRate: t.GlobalRate, Momentum: t.Momentum, WeightDecay: t.WeightDecay, Proximal: t.Proximal,
	}
	if t.Split.Kind == "dirichlet" {
		training.Split = lab.Split{Kind: t.Split.Kind, Alpha: t.Split.Alpha}
	}
	directory := l.data
	if directory == "" {
		directory = t.Data
	}
	data := a.lazyData(t.Dataset, directory)
	classes := 10
	if strings.HasPrefix(t.Dataset, "folder:") {
		set, err := data(ctx)
		if err != nil {
			return nil, err
		}
		training.Dataset, training.Fingerprint = "folder", set.Fingerprint()[:16]
		classes = len(set.Classes)
	}
	b.study = &lab.Study{
		Name: s.Name, Form: curve.Form(p.form), Workers: l.workers,
		Plan: lab.Plan{
			Training: training, Untrained: 1 / float64(classes), Seed: b.seed,
			Fractions: p.fractions, Noise: p.noise, Repeats: t.Repeats,
		},
		Rules: lab.Rules{Settings: s.Settings},
	}
	if p.repeats > 0 {
		b.study.Plan.Repeats = p.repeats
	}
	if !p.mixed {
		b.study.Plan.Mixed = []lab.Mixed{}
	}
	for _, m := range s.Members {
		b.study.Plan.Capacities = append(b.study.Plan.Capacities, m.Data)
	}
	if b.runner, err = a.runner(l, t.Backend, data); err != nil {
		return nil, err
	}
	return b, nil
}

// playable adds the game to the study.
func (b *bench) playable() error {
	// The accuracy is fitted; any stands in for it until then.
	s := *b.scenario
	s.Accuracy = &scenario.Accuracy{Form: "exponential"}
	g, err := s.Game()
	if err != nil {
		return err
	}
	b.study.Template = g
	for _, name := range s.Mechanisms {
		m, err := mechanism.ByName(name)
		if err != nil {
			return err
		}
		b.study.Rules.Mechanisms = append(b.study.Rules.Mechanisms, m)
	}
	return nil
}

// lazyData reads a data set once, when it is first wanted.
func (a *app) lazyData(name, directory string) func(context.Context) (*dataset.Dataset, error) {
	var once sync.Once
	var set *dataset.Dataset
	var err error
	return func(ctx context.Context) (*dataset.Dataset, error) {
		once.Do(func() {
			set, err = dataset.Open(ctx, name, dataset.Options{Directory: a.dataDirectory(directory)})
		})
		return set, err
	}
}

// runner opens the results folder and makes what trains into it.
func (a *app) runner(l labFlags, backend string, data func(context.Context) (*dataset.Dataset, error)) (*lab.Runner, error) {
	backend, engine, err := a.engine(l.device, backend)
	if err != nil {
		return nil, err
	}
	if l.workers < 1 {
		return nil, &usageError{fmt.Sprintf("--workers is %d, want a whole number ≥ 1", l.workers), "leave --workers out"}
	}
	if engine != nil {
		l.workers = min(l.workers, cellsAtOnce)
	}
	store, err := lab.Open(l.results, version(), a.env.Now)
	if err != nil {
		return nil, labError(err, l.results)
	}
	kept := "run it again: it goes on where it stopped, with every finished cell in " + l.results
	a.kept.Store(&kept)
	return &lab.Runner{
		Store:    store,
		Workers:  l.workers,
		Memory:   l.memory << 20,
		Retrain:  l.retrain,
		Observer: &watcher{app: a},
		// Images are shared between runs; each has its own copy of the model
		// for every member, and workspace.
		Footprint: func(c lab.Cell) int64 { return modelBytes[c.Model] * int64(len(c.Contributions)+4) },
		Train: func(ctx context.Context, c lab.Cell) (lab.Outcome, error) {
			set, err := data(ctx)
			if err != nil {
				return lab.Outcome{}, err
			}
			if engine != nil {
				return lab.With(backend, engine, set, a.env.Now)(ctx, c)
			}
			return lab.CPU(set, 1, a.env.Now)(ctx, c)
		},
	}, nil
}

// modelBytes is what one copy of a model and its gradients needs, roughly.
var modelBytes = map[string]int64{"softmax": 1 << 20, "mlp": 4 << 20, "cnn": 24 << 20, "resnet18": 400 << 20}

// labError adds what to do to the errors of a results folder.
func labError(err error, results string) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	switch {
	case err == nil:
		return nil
	case errors.Is(err, lab.ErrSetAside):
		return hint(exitFailed, "the same command with --retrain trains them anew")
	case errors.Is(err, lab.ErrNewer):
		return hint(exitFailed, "use the newer version, or another folder: --results DIR")
	case errors.Is(err, lab.ErrDiskFull):
		return hint(exitFailed, "free some space and run it again; every finished cell in "+results+" is kept")
	case errors.Is(err, lab.ErrMissing):
		return hint(exitFailed, "grange measure trains what is missing")
	case errors.Is(err, curve.ErrTooFewPoints):
		return hint(exitFailed, "measure more points: grange measure --help")
	case deviceHint(err) != "":
		return hint(exitFailed, deviceHint(err))
	case errors.Is(err, federated.ErrNotFinite):
		return hint(exitFailed, "lower training.rate: the model diverged; every finished cell in "+results+" is kept")
	case errors.Is(err, dataset.ErrSplit), errors.Is(err, lab.ErrCell):
		return hint(exitUsage, "lower the members' data in the scenario, or choose a larger data set")
	}
	return dataError(err)
}

// watcher shows how training comes along: a line that changes on a terminal,
// one line per stage elsewhere.
type watcher struct {
	app  *app
	last string
}

// Observe shows the state of a stage.
func (w *watcher) Observe(p lab.Progress) {
	todo := p.Total - p.Present
	if todo == 0 {
		return
	}
	if !isTerminal(w.app.env.Stderr) || w.app.env.Getenv("TERM") == "dumb" {
		if p.Stage != w.last {
			w.last = p.Stage
			fmt.Fprintf(w.app.env.Stderr, "%s: %d runs to train, %d found\n", p.Stage, todo, p.Present)
		}
		return
	}
	left := ""
	if p.Remaining > 0 && p.Done < p.Total {
		left = " · " + p.Remaining.Round(time.Second).String() + " left"
	}
	const width = 24
	filled := width * (p.Done - p.Present) / todo
	fmt.Fprintf(w.app.env.Stderr, "\r\x1b[K%s %s%s %d of %d%s", p.Stage, strings.Repeat("━", filled), strings.Repeat("─", width-filled), p.Done-p.Present, todo, left)
	if p.Done == p.Total {
		fmt.Fprint(w.app.env.Stderr, "\r\x1b[K")
	}
}

// saveReport writes the files of a report into a folder.
func (a *app) saveReport(ctx context.Context, dir string, report *story.Report) error {
	files, err := report.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		to := filepath.Join(dir, filepath.FromSlash(file.Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return &hintError{err: fmt.Errorf("cannot write the report: %w", err), code: exitFailed, try: "another folder: --report DIR; what was trained is kept"}
		}
		if err := a.save(ctx, to, file.Data); err != nil {
			return err
		}
	}
	return nil
}

// reportable complains about a folder for the report before anything is trained.
func reportable(dir string) error {
	if info, err := os.Stat(dir); dir != "" && err == nil && !info.IsDir() {
		return &usageError{problem: fmt.Sprintf("--report %s is a file, want a folder for the page and its figures and tables", dir), try: "--report " + strings.TrimSuffix(dir, filepath.Ext(dir)) + "-report"}
	}
	return nil
}

// reportFolder is where a report goes unless told otherwise.
func reportFolder(flag, results, name string) string {
	if flag != "" {
		return flag
	}
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, name)
	return path.Join(filepath.ToSlash(results), "report-"+strings.Trim(slug, "-"))
}

// accuracySection is a fit as a section of a scenario.
func accuracySection(fit *curve.Fit) *scenario.Accuracy {
	out := &scenario.Accuracy{Form: string(fit.Form), Gamma: fit.Gamma.Value}
	switch c := fit.Clean.(type) {
	case curve.LogLinear:
		out.Alpha = c.Alpha
	case curve.Power:
		out.A, out.B, out.C, out.D = c.A, c.B, c.C, c.D
	case curve.Exponential:
		out.A, out.B, out.C = c.A, c.B, c.C
	}
	return out
}

// stableResults complains when some rule has no equilibrium to show.
func stableResults(equilibria []lab.Equilibrium) error {
	var outcomes []*outcome
	for _, e := range equilibria {
		outcomes = append(outcomes, &outcome{Result: e.Result})
	}
	return unproven(outcomes)
}

func totalOf(s game.Profile) int64 {
	var total int64
	for _, x := range s {
		total += x
	}
	return total
}

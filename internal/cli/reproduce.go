package cli

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"grange/curve"
	"grange/lab"
	"grange/report/story"
)

type reproduceFlags struct {
	scale, report, form string
	existing            bool
}

func (a *app) reproduce() *cobra.Command {
	var l labFlags
	var r reproduceFlags
	cmd := &cobra.Command{
		Use:   "reproduce",
		Short: "The paper again: every figure, every observation with a verdict",
		Long: `Reproduce does the experiments of “Incentivizing Data Contribution in Cross-Silo Federated Learning”
again, from real training: accuracy against data and wrong labels (Figures 1, 2), contributions at
equilibrium as quality and privacy vary (Figures 3, 4), the models trained there (Figure 5), and the
convergence of Algorithm 1. It judges Observations 1–5 and Theorems 1–3 by numbers, and maps where over
the profit scale β1 and the noise cost γ each observation holds.

--scale quick trains the built-in Fashion-MNIST on a CPU in minutes. --scale paper is CIFAR-10 and
ResNet-18, 50 rounds, five runs each; with --existing it works with the cells that are there and says
which are missing.`,
		Example: `  grange reproduce
  grange reproduce --scale paper --existing --results results`,
		Args: cobra.NoArgs,
		RunE: a.command(func(cmd *cobra.Command, _ []string) error {
			return labError(a.runReproduce(cmd.Context(), l, r), l.results)
		}),
	}
	l.register(cmd.Flags())
	f := cmd.Flags()
	f.StringVar(&r.scale, "scale", "quick", "quick (built-in data, CPU) or paper (CIFAR-10, ResNet-18)")
	f.StringVar(&r.report, "report", "", "folder for the report (default: results/report-SCALE)")
	f.StringVar(&r.form, "form", "loglinear", "curve to use: loglinear (the paper's), power, exponential, or best (by AICc)")
	f.BoolVar(&r.existing, "existing", false, "train nothing: use the cells that exist and list those that are missing")
	return cmd
}

func (a *app) runReproduce(ctx context.Context, l labFlags, r reproduceFlags) error {
	var scale lab.Scale
	switch r.scale {
	case "quick":
		scale = lab.QuickScale()
	case "paper":
		scale = lab.PaperScale()
	default:
		return &usageError{fmt.Sprintf("--scale is %q, want quick or paper", r.scale), "grange reproduce --scale quick"}
	}
	p := planFlags{form: r.form}
	if r.form == "best" {
		p.form = ""
	}
	if err := p.check("reproduce"); err != nil {
		return err
	}
	if err := reportable(r.report); err != nil {
		return err
	}
	seed := l.seed.or(1)
	runner, err := a.runner(l, "cpu", a.lazyData(scale.Training.Dataset, l.data))
	if err != nil {
		return err
	}
	study := &lab.Study{Name: "the paper, " + scale.Name + " scale", Plan: lab.Plan{Seed: seed}, Form: curve.Form(p.form), Workers: l.workers, Partial: r.existing}
	found, err := lab.Reproduce(ctx, scale, study, runner)
	if err != nil {
		if r.existing && len(study.Missing) > 0 {
			return &hintError{err: fmt.Errorf("%d of the runs wanted are missing: %w", len(study.Missing), err), code: exitFailed,
				try: "grange reproduce --scale " + r.scale + " trains them"}
		}
		return err
	}
	dir := reportFolder(r.report, l.results, r.scale)
	origin := story.Origin{Version: version(), Command: fmt.Sprintf("grange reproduce --scale %s --form %s --seed %d", r.scale, r.form, seed), Folder: l.results, Seed: seed}
	report := story.Reproduction(found, origin)
	if err := a.saveReport(ctx, dir, report); err != nil {
		return err
	}
	if l.json {
		return a.printJSON(ctx, report.Findings)
	}
	return a.print(ctx, []byte(verdictText(found, dir, a.colour())))
}

func verdictText(r *lab.Reproduction, dir string, colour bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The paper at %s scale: %s curve, R² %.3f, %s, β1 %s\n\n", r.Scale.Name, r.Study.Fit.Form, r.Study.Fit.R2,
		gammaText(r.Study), money(r.Scale.Beta))
	styles := map[lab.Finding]style{lab.Holds: green, lab.Partly: yellow, lab.Fails: red}
	width := len(lab.Partly)
	for _, v := range r.Verdicts {
		width = max(width, len(v.Finding))
	}
	for _, v := range r.Verdicts {
		fmt.Fprintf(&b, "%s  %s  %s\n", paint(v.Claim, bold, colour), paint(fmt.Sprintf("%-*s", width, v.Finding), styles[v.Finding], colour), v.States)
		for _, because := range v.Because {
			b.WriteString(paint(strings.Repeat(" ", width+6)+because, faint, colour) + "\n")
		}
	}
	for _, w := range r.Study.Fit.Warnings {
		b.WriteString(paint("doubt: ", yellow, colour) + w + "\n")
	}
	if n := len(r.Study.Missing); n > 0 {
		fmt.Fprintf(&b, "%s%d runs are missing; their keys are in the report\n", paint("doubt: ", yellow, colour), n)
	}
	fmt.Fprintf(&b, "\nReport: %s\n", path.Join(dir, "report.html"))
	return b.String()
}

// gammaText writes what a wrong label costs.
func gammaText(s *lab.Study) string {
	if !s.KnowsGamma() {
		return "γ not measured"
	}
	return fmt.Sprintf("γ %.3f ± %.3f", s.Fit.Gamma.Value, s.Fit.Gamma.StandardError)
}

package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"grange/curve"
	"grange/lab"
)

type fitFlags struct {
	out       string
	bootstrap int
}

func (a *app) fit() *cobra.Command {
	var l labFlags
	var p planFlags
	var f fitFlags
	cmd := &cobra.Command{
		Use:   "fit FILE",
		Short: "Fit the accuracy curve to what measure measured",
		Long: `Fit puts a curve through the measured accuracies: loglinear (the paper's), power and exponential,
each kept increasing and concave, with the untrained model as a point at S = 0, and γ, what a wrong label
costs, together with it. It prints the accuracy section that solve reads. Nothing is trained.`,
		Example: "  grange fit examples/sheds.yaml --out accuracy.yaml",
		Args:    oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return labError(a.runFit(cmd.Context(), args[0], l, p, f), l.results)
		}),
	}
	l.registerIdle(cmd.Flags())
	p.register(cmd.Flags())
	cmd.Flags().StringVar(&f.out, "out", "", "also write the accuracy section to this file")
	cmd.Flags().IntVar(&f.bootstrap, "bootstrap", 200, "replicates for the intervals; 0 for none")
	return cmd
}

func (a *app) runFit(ctx context.Context, file string, l labFlags, p planFlags, f fitFlags) error {
	if err := p.check("fit"); err != nil {
		return err
	}
	if err := writable("out", f.out); err != nil {
		return err
	}
	l.device.backend = "cpu" // which nothing is trained on
	b, err := a.openBench(ctx, file, l, p)
	if err != nil {
		return err
	}
	s := b.study
	s.Partial = true
	if err := s.Measure(ctx, b.runner); err != nil {
		return err
	}
	if len(s.Points) == 0 {
		return fmt.Errorf("%w: none of the %d runs of %s in %s", lab.ErrMissing, len(s.Missing), file, l.results)
	}
	if err := s.FitCurve(); err != nil {
		return err
	}
	if f.bootstrap > 0 {
		if err := s.Doubt(f.bootstrap, rand.New(rand.NewPCG(b.seed, 0x666974))); err != nil {
			return err
		}
	}
	section := accuracySection(s.Fit).YAML()
	if f.out != "" {
		if err := a.save(ctx, f.out, []byte(section)); err != nil {
			return err
		}
	}
	if l.json {
		return a.printJSON(ctx, fitsJSON(s, section))
	}
	return a.print(ctx, []byte(fitText(s, section, a.colour())))
}

func fitText(s *lab.Study, section string, colour bool) string {
	var b strings.Builder
	fit := s.Fit
	fmt.Fprintf(&b, "%s: %s fitted to %d runs, R² %.4f, typical miss %.2f points\n\n", s.Name, fit.Form, len(fit.Points)-1, fit.R2, 100*fit.RMSE)
	t := &table{}
	t.add(left("parameter").in(bold), right("value").in(bold), right("± s.e.").in(bold), right("90% interval").in(bold), left("").in(bold))
	t.rule()
	for i, e := range append(slices.Clone(fit.Parameters), fit.Gamma) {
		value, se, interval, why := significant4(e.Value), significant4(e.StandardError), "", e.Fixed
		var in *curve.Interval
		if s.Spread != nil {
			in = &s.Spread.Gamma
			if i < len(fit.Parameters) {
				in = &s.Spread.Parameters[i]
			}
		}
		switch {
		case i == len(fit.Parameters) && !s.KnowsGamma():
			value, se = "–", "not measured"
		case e.Fixed != "":
			se = "fixed"
		case in == nil:
		case e.Pinned(*in):
			se, why = "pinned", curve.PinReason
		default:
			interval = significant4(in.Low) + " … " + significant4(in.High)
		}
		t.add(left(e.Name), right(value), right(se), right(interval), left(why).in(faint))
	}
	b.WriteString(t.render(colour) + "\n")
	t = &table{}
	t.add(left("form").in(bold), right("R²").in(bold), right("miss").in(bold), right("AICc").in(bold), right("γ").in(bold))
	t.rule()
	for _, f := range s.Fits {
		name := left(string(f.Form))
		if f == fit {
			name = name.in(bold)
		}
		t.add(name, right(fmt.Sprintf("%.4f", f.R2)), right(fmt.Sprintf("%.2f", 100*f.RMSE)), right(fmt.Sprintf("%.1f", f.AICc)), right(significant4(f.Gamma.Value)))
	}
	b.WriteString(t.render(colour) + "\n")
	if g := s.Surrogate; g != nil {
		fmt.Fprintf(&b, "Mixed points, predicted by a fit that has not seen them: off by %.2f points on average, %.2f at most.\n", 100*g.RMSE, 100*max(g.Worst, -g.Worst))
	}
	for _, w := range fit.Warnings {
		b.WriteString(paint("doubt: ", yellow, colour) + w + "\n")
	}
	if n := len(s.Missing); n > 0 {
		fmt.Fprintf(&b, "%s%d of the runs asked for are missing; grange measure trains them\n", paint("doubt: ", yellow, colour), n)
	}
	b.WriteString("\nAdd this line to the scenario, and grange solve plays on the curve:\n\n" + section)
	return b.String()
}

func significant4(x float64) string { return fmt.Sprintf("%.4g", x) }

type fittedJSON struct {
	Form       curve.Form       `json:"form"`
	Used       bool             `json:"used"`
	Parameters []curve.Estimate `json:"parameters"`
	Gamma      curve.Estimate   `json:"gamma"`
	R2         float64          `json:"r2"`
	RMSE       float64          `json:"rmse"`
	AIC        float64          `json:"aic"`
	AICc       *float64         `json:"aicc"`
	LackOfFit  *float64         `json:"lack_of_fit_p"`
	Warnings   []string         `json:"warnings"`
}

type fitJSON struct {
	Scenario  string           `json:"scenario"`
	Points    int              `json:"points"`
	Missing   int              `json:"missing"`
	Fits      []fittedJSON     `json:"fits"`
	Intervals []curve.Interval `json:"parameter_intervals,omitempty"`
	Gamma     *curve.Interval  `json:"gamma_interval,omitempty"`
	Surrogate *lab.Surrogate   `json:"surrogate,omitempty"`
	Section   string           `json:"accuracy_section"`
}

func fitsJSON(s *lab.Study, section string) fitJSON {
	out := fitJSON{Scenario: s.Name, Points: len(s.Fit.Points), Missing: len(s.Missing), Surrogate: s.Surrogate, Section: section}
	for _, f := range s.Fits {
		warnings := f.Warnings
		if warnings == nil {
			warnings = []string{}
		}
		out.Fits = append(out.Fits, fittedJSON{Form: f.Form, Used: f == s.Fit, Parameters: f.Parameters, Gamma: f.Gamma, R2: f.R2, RMSE: f.RMSE,
			AIC: f.AIC, AICc: finite(f.AICc), LackOfFit: finite(f.LackOfFit), Warnings: warnings})
	}
	if s.Spread != nil {
		out.Intervals, out.Gamma = s.Spread.Parameters, &s.Spread.Gamma
	}
	return out
}

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

type runFlags struct {
	report    string
	bootstrap int
}

func (a *app) run() *cobra.Command {
	var l labFlags
	var p planFlags
	var r runFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "From data to decision: measure, fit, solve, train at every equilibrium, report",
		Long: `Run does the whole job for one scenario. It measures how accuracy grows with data and suffers from
wrong labels by training models, fits a curve, tests the assumptions, solves the game under every
profit-sharing rule, trains a model at each equilibrium, and writes a report a board can read, with all
figures and tables beside it.

What was trained is kept: run again, and only the report is made anew.

Exit code 3: under some rule the members do not settle.`,
		Example: "  grange run examples/sheds.yaml",
		Args:    oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return labError(a.runRun(cmd.Context(), args[0], l, p, r), l.results)
		}),
	}
	l.register(cmd.Flags())
	l.device.fromFile(cmd.Flags())
	p.register(cmd.Flags())
	cmd.Flags().StringVar(&r.report, "report", "", "folder for the report (default: results/report-NAME)")
	cmd.Flags().IntVar(&r.bootstrap, "bootstrap", 200, "replicates for the intervals; 0 for none")
	return cmd
}

func (a *app) runRun(ctx context.Context, file string, l labFlags, p planFlags, r runFlags) error {
	if err := p.check("run"); err != nil {
		return err
	}
	if err := reportable(r.report); err != nil {
		return err
	}
	b, err := a.openBench(ctx, file, l, p)
	if err != nil {
		return err
	}
	if err := b.playable(); err != nil {
		return err
	}
	s := b.study
	s.Replicates = r.bootstrap
	if r.bootstrap <= 0 {
		s.Replicates = -1
	}
	if err := s.Run(ctx, b.runner); err != nil {
		return err
	}
	dir := reportFolder(r.report, l.results, s.Name)
	origin := story.Origin{Version: version(), Command: fmt.Sprintf("grange run %s --seed %d", file, b.seed), Folder: l.results, Seed: b.seed}
	if err := a.saveReport(ctx, dir, story.Study(s, origin)); err != nil {
		return err
	}
	if l.json {
		err = a.printJSON(ctx, runJSON(b, dir))
	} else {
		err = a.print(ctx, []byte(runText(s, dir, a.colour())))
	}
	if err != nil {
		return err
	}
	return stableResults(s.Equilibria)
}

func runText(s *lab.Study, dir string, colour bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s curve, R² %.3f, %s\n\n", s.Name, s.Fit.Form, s.Fit.R2, gammaText(s))
	t := &table{}
	head := []cell{left("").in(bold)}
	for _, e := range s.Equilibria {
		head = append(head, right(e.Mechanism).in(bold))
	}
	t.add(head...)
	t.rule()
	row := func(name string, value func(e *lab.Equilibrium) string) {
		cells := []cell{left(name)}
		for i := range s.Equilibria {
			cells = append(cells, right(value(&s.Equilibria[i])))
		}
		t.add(cells...)
	}
	for n, m := range s.Game.Members {
		if n == 25 {
			t.add(left(fmt.Sprintf("… and %d more members", len(s.Game.Members)-n)))
			break
		}
		row(m.Name, func(e *lab.Equilibrium) string { return whole(e.Contributions[n]) })
	}
	t.rule()
	row("data in all", func(e *lab.Equilibrium) string { return whole(totalOf(e.Contributions)) })
	row("accuracy, trained", func(e *lab.Equilibrium) string {
		if len(e.Records) == 0 {
			return "–"
		}
		return percent(e.Trained)
	})
	row("accuracy, predicted", func(e *lab.Equilibrium) string { return percent(e.Accuracy) })
	row("  90% interval", func(e *lab.Equilibrium) string {
		if e.AccuracyInterval == nil {
			return "–"
		}
		return fmt.Sprintf("%.1f–%.1f%%", 100*e.AccuracyInterval.Low, 100*e.AccuracyInterval.High)
	})
	row("profit", func(e *lab.Equilibrium) string { return money(e.Profit) })
	row("welfare", func(e *lab.Equilibrium) string { return money(e.Welfare) })
	b.WriteString(t.render(colour))
	for _, w := range s.Fit.Warnings {
		b.WriteString("\n" + paint("doubt: ", yellow, colour) + w)
	}
	if len(s.Fit.Warnings) > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nReport: %s\n", path.Join(dir, "report.html"))
	return b.String()
}

type runResultJSON struct {
	Scenario   string        `json:"scenario"`
	Seed       uint64        `json:"seed"`
	Fit        fitJSON       `json:"fit"`
	Equilibria []trainedJSON `json:"equilibria"`
	Report     string        `json:"report"`
}

type trainedJSON struct {
	outcomeJSON
	Trained       *float64         `json:"accuracy_trained"`
	TrainedError  float64          `json:"accuracy_trained_standard_error"`
	Interval      *curve.Interval  `json:"accuracy_interval,omitempty"`
	Contributions []curve.Interval `json:"contribution_intervals,omitempty"`
	Cells         []string         `json:"cells"`
}

func runJSON(b *bench, dir string) runResultJSON {
	s := b.study
	out := runResultJSON{Scenario: s.Name, Seed: b.seed, Fit: fitsJSON(s, accuracySection(s.Fit).YAML()), Report: path.Join(dir, "report.html")}
	view := &solution{scenario: b.scenario, game: s.Game}
	for i := range s.Equilibria {
		e := &s.Equilibria[i]
		o := &outcome{Result: e.Result}
		for n := range s.Game.Members {
			if freeRides(s.Game, e.Result, n) {
				o.freeRiders = append(o.freeRiders, n)
			}
			if e.Payoffs[n] < s.Game.Members[n].Outside {
				o.unwilling = append(o.unwilling, n)
			}
		}
		t := trainedJSON{outcomeJSON: view.outcomeJSON(o), TrainedError: e.TrainedError, Interval: e.AccuracyInterval, Contributions: e.ContributionIntervals, Cells: []string{}}
		t.Path = nil
		if len(e.Records) > 0 {
			t.Trained = &e.Trained
		}
		for _, r := range e.Records {
			t.Cells = append(t.Cells, r.Key)
		}
		out.Equilibria = append(out.Equilibria, t)
	}
	return out
}

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"grange/lab"
)

func (a *app) measure() *cobra.Command {
	var l labFlags
	var p planFlags
	cmd := &cobra.Command{
		Use:   "measure FILE",
		Short: "Train models on parts of the data and with wrong labels, and note how good they are",
		Long: `Measure trains the scenario's model at a grid of contributions with clean labels, at a grid of
wrong-label rates with all data, and at a few points with both. Every training run is kept as a small
file in the results folder and never repeated: a run that was stopped goes on, two runs may share a
folder, and results of several machines merge by copying files.`,
		Example: "  grange measure examples/sheds.yaml",
		Args:    oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return labError(a.runMeasure(cmd.Context(), args[0], l, p), l.results)
		}),
	}
	l.register(cmd.Flags())
	l.device.fromFile(cmd.Flags())
	p.register(cmd.Flags())
	_ = cmd.Flags().MarkHidden("form")
	return cmd
}

func (a *app) runMeasure(ctx context.Context, file string, l labFlags, p planFlags) error {
	if err := p.check("measure"); err != nil {
		return err
	}
	b, err := a.openBench(ctx, file, l, p)
	if err != nil {
		return err
	}
	if err := b.study.Measure(ctx, b.runner); err != nil {
		return err
	}
	if l.json {
		return a.printJSON(ctx, measurementsJSON(b))
	}
	t := &table{}
	t.add(left("points").in(bold), right("part of data").in(bold), right("wrong labels").in(bold), right("S").in(bold), right("R").in(bold),
		right("runs").in(bold), right("accuracy").in(bold), right("± s.e.").in(bold))
	t.rule()
	last := lab.Kind("")
	for _, m := range b.study.Points {
		if last != "" && m.Kind != last {
			t.add()
		}
		last = m.Kind
		se := "–"
		if len(m.Records) > 1 {
			se = fmt.Sprintf("%.2f%%", 100*m.StandardError)
		}
		t.add(left(string(m.Kind)), right(percent(m.Fraction)), right(percent(m.Noise)), right(whole(m.Total)),
			right(fmt.Sprintf("%.3f", m.WrongShare)), right(fmt.Sprint(len(m.Records))), right(fmt.Sprintf("%.2f%%", 100*m.Mean)), right(se))
	}
	text := fmt.Sprintf("%s: %s on %s, seed %d\n\n%s\nCells are in %s. Next: grange fit %s\n",
		b.scenario.Name, b.study.Plan.Training.Model, b.study.Plan.Training.Dataset, b.seed, t.render(a.colour()), l.results, file)
	return a.print(ctx, []byte(text))
}

type measuredJSON struct {
	Kind          lab.Kind `json:"kind"`
	Fraction      float64  `json:"fraction"`
	Noise         float64  `json:"noise"`
	Total         int64    `json:"total"`
	WrongShare    float64  `json:"wrong_share"`
	Runs          int      `json:"runs"`
	Accuracy      float64  `json:"accuracy"`
	StandardError float64  `json:"standard_error"`
	Cells         []string `json:"cells"`
}

type measureJSON struct {
	Scenario string         `json:"scenario"`
	Dataset  string         `json:"dataset"`
	Model    string         `json:"model"`
	Seed     uint64         `json:"seed"`
	Points   []measuredJSON `json:"points"`
}

func measurementsJSON(b *bench) measureJSON {
	out := measureJSON{Scenario: b.scenario.Name, Dataset: b.study.Plan.Training.Dataset, Model: b.study.Plan.Training.Model, Seed: b.seed}
	for _, m := range b.study.Points {
		point := measuredJSON{Kind: m.Kind, Fraction: m.Fraction, Noise: m.Noise, Total: m.Total, WrongShare: m.WrongShare,
			Runs: len(m.Records), Accuracy: m.Mean, StandardError: m.StandardError}
		for _, r := range m.Records {
			point.Cells = append(point.Cells, r.Key)
		}
		out.Points = append(out.Points, point)
	}
	return out
}

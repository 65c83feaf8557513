package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"grange/game"
	"grange/scenario"
	"grange/theory"
)

type checkFlags struct {
	json       bool
	mechanisms []string
	points     int
	seed       uint64
}

func (a *app) check() *cobra.Command {
	var flags checkFlags
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Read the file strictly and test which of the paper's theorems apply",
		Long: `Check reads a scenario strictly, then tests Assumptions 1 to 4 of the paper at many profiles between the
minimum and everything, and says which theorems follow under each mechanism. Where an assumption
fails it shows the worst counterexample met; one that held everywhere is evidence, not proof.

Assumption 2 is tested in the form its proof needs, with the chain-rule factors that the paper leaves
out. An assumption that fails does not make check fail: solve finds equilibria without them.`,
		Example: "  grange check examples/hospitals.yaml",
		Args:    oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return a.runCheck(cmd.Context(), args[0], flags)
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&flags.json, "json", false, "print one JSON document (docs/json.md)")
	f.StringSliceVar(&flags.mechanisms, "mechanism", nil, "check only these, such as LP,SV (default: those of the file)")
	f.IntVar(&flags.points, "points", 2000, "how many points to test")
	f.Uint64Var(&flags.seed, "seed", 1, "seed of the random profiles")
	return cmd
}

func (a *app) runCheck(ctx context.Context, path string, flags checkFlags) error {
	if flags.points < 1 {
		return &usageError{problem: fmt.Sprintf("--points is %d, want a whole number ≥ 1", flags.points), try: "grange check --help"}
	}
	s, err := scenario.Load(path)
	if err != nil {
		return err
	}
	g, err := s.Game()
	if err != nil {
		return err
	}
	mechanisms, err := chooseMechanisms(s, flags.mechanisms)
	if err != nil {
		return err
	}
	report, err := theory.Check(ctx, g, mechanisms, theory.Settings{Points: flags.points, Seed: flags.seed})
	if err != nil {
		return err
	}
	if flags.json {
		return a.printJSON(ctx, checkOf(s, g, report))
	}
	return a.print(ctx, []byte(checkText(s, g, report, a.colour())))
}

type checkJSON struct {
	Scenario    string           `json:"scenario"`
	Members     []string         `json:"members"`
	Assumptions []assumptionJSON `json:"assumptions"`
	Theorems    []theoremJSON    `json:"theorems"`
}

type assumptionJSON struct {
	Number         int                 `json:"number"`
	Statement      string              `json:"statement"`
	Mechanism      string              `json:"mechanism,omitempty"`
	Holds          bool                `json:"holds"`
	Tested         int                 `json:"tested"`
	Violations     int                 `json:"violations"`
	Counterexample *counterexampleJSON `json:"counterexample,omitempty"`
}

type counterexampleJSON struct {
	Contributions game.Profile `json:"contributions"`
	Member        string       `json:"member"`
	Quantity      string       `json:"quantity"`
	Value         *float64     `json:"value,omitempty"`
}

type theoremJSON struct {
	Number    int    `json:"number"`
	Statement string `json:"statement"`
	Mechanism string `json:"mechanism"`
	Applies   bool   `json:"applies"`
	Failed    []int  `json:"failed_assumptions"`
}

func checkOf(s *scenario.Scenario, g *game.Game, report *theory.Report) checkJSON {
	out := checkJSON{Scenario: s.Name}
	for _, m := range g.Members {
		out.Members = append(out.Members, m.Name)
	}
	for _, x := range report.Assumptions {
		j := assumptionJSON{Number: x.Number, Statement: x.Statement, Mechanism: x.Mechanism,
			Holds: x.Holds, Tested: x.Tested, Violations: x.Violations}
		if c := x.Counterexample; c != nil {
			j.Counterexample = &counterexampleJSON{Contributions: c.Profile, Member: g.Members[c.Member].Name, Quantity: c.Quantity, Value: finite(c.Value)}
		}
		out.Assumptions = append(out.Assumptions, j)
	}
	for _, x := range report.Theorems {
		failed := x.Failed
		if failed == nil {
			failed = []int{}
		}
		out.Theorems = append(out.Theorems, theoremJSON{x.Number, x.Statement, x.Mechanism, x.Applies, failed})
	}
	return out
}

func checkText(s *scenario.Scenario, g *game.Game, report *theory.Report, colour bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the file is valid, %s\n", paint(s.Name, bold, colour), count(len(g.Members), "member"))
	number := 0
	for _, x := range report.Assumptions {
		if x.Number != number {
			number = x.Number
			fmt.Fprintf(&b, "\nAssumption %d: %s\n", x.Number, x.Statement)
		}
		label := x.Mechanism
		if label == "" {
			label = "any"
		}
		verdict := paint(fmt.Sprintf("holds at all %s points", whole(int64(x.Tested))), green, colour)
		if !x.Holds {
			verdict = paint(fmt.Sprintf("fails at %s of %s points", whole(int64(x.Violations)), whole(int64(x.Tested))), red, colour)
		}
		fmt.Fprintf(&b, "  %-4s %s\n", label, verdict)
		if c := x.Counterexample; c != nil {
			fmt.Fprintf(&b, "       worst: %s = %s for %s at %s\n", c.Quantity, significant(c.Value), g.Members[c.Member].Name, shortProfile(c.Profile))
		}
	}
	number = 0
	for _, x := range report.Theorems {
		if x.Number != number {
			number = x.Number
			fmt.Fprintf(&b, "\nTheorem %d: %s\n", x.Number, x.Statement)
		}
		verdict := paint("applies", green, colour)
		if !x.Applies {
			verdict = paint("not guaranteed", yellow, colour) + fmt.Sprintf(", because of %s", failedText(x.Failed))
		}
		fmt.Fprintf(&b, "  %-4s %s\n", x.Mechanism, verdict)
	}
	return b.String()
}

func failedText(numbers []int) string {
	noun := "Assumption"
	if len(numbers) > 1 {
		noun += "s"
	}
	return noun + " " + strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")
}

// shortProfile prints a profile, the middle of a long one left out.
func shortProfile(p game.Profile) string {
	var parts []string
	for n, x := range p {
		if len(p) > 12 && n >= 5 && n < len(p)-5 {
			if n == 5 {
				parts = append(parts, "…")
			}
			continue
		}
		parts = append(parts, fmt.Sprint(x))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

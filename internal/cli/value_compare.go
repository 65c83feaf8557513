package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grange/game"
	"grange/report/story"
	"grange/valuation"
)

// judgement is how a method did against the truth.
type judgement struct {
	Method      string    `json:"method"`
	Evaluations int       `json:"evaluations"`
	Error       float64   `json:"index_error"`      // root mean square, of the indices
	Share       float64   `json:"share_error"`      // the largest, of the shares
	MeanShare   float64   `json:"mean_share_error"` // the mean, of the shares
	Ranks       float64   `json:"rank_agreement"`   // Kendall's τ: 1 for the same order, −1 for the opposite
	Indices     []float64 `json:"indices"`
	Shares      []float64 `json:"shares"`
}

// comparisonJSON is the document of value --compare --json.
type comparisonJSON struct {
	Scenario string      `json:"scenario"`
	Source   string      `json:"source"`
	Truth    string      `json:"truth"`
	Members  []string    `json:"members"`
	Indices  []float64   `json:"indices"` // the truth's
	Shares   []float64   `json:"shares"`
	Methods  []judgement `json:"methods"`
	LeftOut  []leftOut   `json:"left_out,omitempty"`
}

// leftOut is a method that cannot be compared.
type leftOut struct {
	Method string `json:"method"`
	Why    string `json:"why"`
}

// otherQuestions are answered by these methods: they are no estimates of the
// Shapley value.
var otherQuestions = []string{"banzhaf", "beta", "least-core", "nucleolus"}

// compareMethods values the subject by every method and prints how they did.
func (a *app) compareMethods(ctx context.Context, of *subject, negative game.Negative, path string, flags valueFlags) error {
	v := &story.Values{Scenario: of.scenario, Members: of.members, Truth: "the exact values", Rebuilt: of.source == "updates", Raw: negative == game.Raw}
	c := comparisonJSON{Scenario: of.scenario, Source: of.source, Truth: "exact", Members: of.members}
	if flags.truth != "" {
		d, err := readTruth(flags.truth, of.members)
		if err != nil {
			return err
		}
		c.Truth, v.Indices = flags.truth, d.Indices
		v.Truth = "the values by " + d.Method + " in " + filepath.Base(flags.truth)
		if d.Source == "retrained" {
			v.Truth = "the " + d.Method + " values with every coalition retrained"
		}
	} else {
		r, err := of.by(ctx, "exact")
		if err != nil {
			return err
		}
		v.Indices = r.Values
		if v.Rebuilt {
			v.Truth = "the exact values of the rebuilt final models"
		}
	}
	var err error
	if v.Shares, err = game.SoundShares(v.Indices, negative); err != nil {
		return fmt.Errorf("%s: %w", c.Truth, err)
	}
	for _, method := range of.methods {
		if slices.Contains(otherQuestions, method) {
			continue
		}
		r, err := of.by(ctx, method)
		if errors.Is(err, valuation.ErrTooLarge) || errors.Is(err, errFew) {
			c.LeftOut = append(c.LeftOut, leftOut{method, err.Error()})
			continue
		}
		if err != nil {
			return err
		}
		shares, err := game.SoundShares(r.Values, negative)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		v.Add(method, methodWords[method], r, shares)
	}
	v.AddEqual()
	c.Indices, c.Shares = v.Indices, v.Shares
	for _, m := range v.Methods {
		c.Methods = append(c.Methods, judgement{
			Method: m.Name, Evaluations: m.Result.Evaluations, Error: m.Judged.Error, Share: m.Judged.Share,
			MeanShare: m.Judged.Shares, Ranks: m.Judged.Ranks, Indices: m.Result.Values, Shares: m.Shares,
		})
	}
	if flags.report != "" {
		page, err := story.Comparison(v, story.Origin{Version: version(), Command: comparisonCommand(path, of.seed, flags), Seed: of.seed}).Render()
		if err != nil {
			return err
		}
		if err := a.save(ctx, flags.report, page); err != nil {
			return err
		}
	}
	if flags.json {
		return a.printJSON(ctx, c)
	}
	return a.print(ctx, []byte(a.comparisonText(c, flags.report)))
}

// comparisonCommand is what makes the same comparison again.
func comparisonCommand(path string, seed uint64, flags valueFlags) string {
	command := "grange value " + filepath.Base(path) + " --compare"
	if flags.retrain {
		command += " --retrain"
	}
	for _, f := range []struct {
		name  string
		value any
	}{
		{"truth", filepath.Base(flags.truth)}, {"negative", flags.negative}, {"contributions", flags.contributions}, {"repeats", flags.repeats},
		{"limit", flags.limit}, {"evaluations", flags.evaluations}, {"stop-error", flags.stopError}, {"stop-ranks", flags.stopRanks},
	} {
		if flags.given(f.name) {
			command += fmt.Sprintf(" --%s %v", f.name, f.value)
		}
	}
	return command + fmt.Sprintf(" --seed %d", seed)
}

// methodWords say in a few words what a method does.
var methodWords = map[string]string{
	"gtg":          "guided, truncated orders in every round",
	"gtg-adjusted": "regression-adjusted sampling in every round",
	"multi-round":  "all coalitions of every round",
	"one-round":    "all coalitions, steps added up",
	"exact":        "all coalitions",
	"loo":          "one member left out at a time",
	"permutation":  "random orders",
	"antithetic":   "random orders and their reverses",
	"truncated":    "random orders, cut short",
	"stratified":   "coalitions by size, where they vary most",
	"owen":         "multilinear extension",
	"kernel":       "least squares, paired",
	"svarm":        "every worth counts for everyone",
	"adjusted":     "regression-adjusted sampling",
}

// readTruth reads an earlier valuation of the same members.
func readTruth(path string, members []string) (*valueJSON, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &usageError{problem: fmt.Sprintf("--truth %s cannot be read", path), try: "grange value FILE --retrain --json > " + path}
	}
	var d valueJSON
	if err := json.Unmarshal(text, &d); err != nil || !slices.Equal(d.Members, members) || len(d.Indices) != len(members) {
		return nil, &usageError{problem: fmt.Sprintf("--truth %s is not a valuation of %s", path, strings.Join(members, ", ")), try: "grange value FILE --retrain --json > " + path}
	}
	if d.Status == "failed" || d.Status == "running" || d.Status == "" {
		return nil, &usageError{problem: fmt.Sprintf("--truth %s is only a part of a valuation: %s", path, cmp.Or(d.Reason, "it has no status")), try: "finish it: grange value FILE --retrain --json > " + path}
	}
	return &d, nil
}

func (a *app) comparisonText(c comparisonJSON, report string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: every method against %s\n\n", c.Scenario, c.Truth)
	t := &table{}
	t.add(left("method").in(bold), right("models").in(bold), right("index error").in(bold), right("largest share error").in(bold), right("mean share error").in(bold), right("rank agreement").in(bold))
	t.rule()
	for _, j := range c.Methods {
		t.add(left(j.Method), right(whole(int64(j.Evaluations))), right(fmt.Sprintf("%.4f", j.Error)), right(percent2(j.Share)), right(percent2(j.MeanShare)), right(fmt.Sprintf("%.2f", j.Ranks)))
	}
	b.WriteString(t.render(a.colour()))
	for _, l := range c.LeftOut {
		fmt.Fprintf(&b, "Left out: %s: %s\n", l.Method, l.Why)
	}
	b.WriteString("\nIndex error: root mean square over members. Rank agreement: Kendall's tau, 1 for the same order.\n")
	if report != "" {
		fmt.Fprintf(&b, "Report: %s\n", report)
	}
	return b.String()
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"grange/game"
	"grange/valuation"
)

// judgement is how a method did against the truth.
type judgement struct {
	Method      string  `json:"method"`
	Evaluations int     `json:"evaluations"`
	Error       float64 `json:"index_error"`    // root mean square, of the indices
	Share       float64 `json:"share_error"`    // the largest, of the shares
	Ranks       float64 `json:"rank_agreement"` // Kendall's τ: 1 for the same order, −1 for the opposite
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
}

// compareMethods values the subject by every method and prints how they did.
func (a *app) compareMethods(ctx context.Context, of *subject, negative game.Negative, flags valueFlags) error {
	c := comparisonJSON{Scenario: of.scenario, Source: of.source, Truth: "exact", Members: of.members}
	if flags.truth != "" {
		found, err := readTruth(flags.truth, of.members)
		if err != nil {
			return err
		}
		c.Truth, c.Indices = flags.truth, found
	} else {
		r, err := of.by(ctx, "exact")
		if err != nil {
			return err
		}
		c.Indices = r.Values
	}
	c.Shares = game.Shares(c.Indices, negative)
	for _, method := range of.methods {
		if method == "banzhaf" || method == "nucleolus" { // they answer another question
			continue
		}
		r, err := of.by(ctx, method)
		if errors.Is(err, valuation.ErrTooLarge) {
			continue
		}
		if err != nil {
			return err
		}
		c.Methods = append(c.Methods, judge(method, r, r.Shares(negative), c))
	}
	if flags.json {
		return a.printJSON(ctx, c)
	}
	return a.print(ctx, []byte(a.comparisonText(c)))
}

func judge(method string, r *valuation.Result, shares []float64, truth comparisonJSON) judgement {
	j := judgement{Method: method, Evaluations: r.Evaluations}
	agree, pairs := 0.0, 0.0
	for n, v := range r.Values {
		j.Error += (v - truth.Indices[n]) * (v - truth.Indices[n]) / float64(len(r.Values))
		j.Share = max(j.Share, math.Abs(shares[n]-truth.Shares[n]))
		for m := range n {
			pairs++
			agree += sign(v-r.Values[m]) * sign(truth.Indices[n]-truth.Indices[m])
		}
	}
	j.Error = math.Sqrt(j.Error)
	if pairs > 0 {
		j.Ranks = agree / pairs
	}
	return j
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}

// readTruth reads the indices of an earlier valuation of the same members.
func readTruth(path string, members []string) ([]float64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, &usageError{problem: fmt.Sprintf("--truth %s cannot be read", path), try: "grange value FILE --retrain --json > " + path}
	}
	var d valueJSON
	if err := json.Unmarshal(text, &d); err != nil || !slices.Equal(d.Members, members) || len(d.Indices) != len(members) {
		return nil, &usageError{problem: fmt.Sprintf("--truth %s is not a valuation of %s", path, strings.Join(members, ", ")), try: "grange value FILE --retrain --json > " + path}
	}
	return d.Indices, nil
}

func (a *app) comparisonText(c comparisonJSON) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: every method against %s\n\n", c.Scenario, c.Truth)
	t := &table{}
	t.add(left("method").in(bold), right("models").in(bold), right("index error").in(bold), right("largest share error").in(bold), right("rank agreement").in(bold))
	t.rule()
	for _, j := range c.Methods {
		t.add(left(j.Method), right(whole(int64(j.Evaluations))), right(fmt.Sprintf("%.4f", j.Error)), right(percent2(j.Share)), right(fmt.Sprintf("%.2f", j.Ranks)))
	}
	b.WriteString(t.render(a.colour()))
	b.WriteString("\nIndex error: root mean square over members. Rank agreement: Kendall's tau, 1 for the same order.\n")
	return b.String()
}

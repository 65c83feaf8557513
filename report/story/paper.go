package story

import (
	"fmt"
	"slices"
	"strings"

	"grange/lab"
	"grange/report/html"
	"grange/report/table"
)

// Reproduction tells what became of the paper's claims.
func Reproduction(p *lab.Reproduction, origin Origin) *Report {
	r := &Report{}
	s := p.Study
	counts := map[lab.Finding]int{}
	for _, v := range p.Verdicts {
		counts[v.Finding]++
	}
	known := s.KnowsGamma()
	harm := html.Fact{Label: "A wrong label costs", Value: fmt.Sprintf("γ = %.2f", s.Fit.Gamma.Value), Note: fmt.Sprintf("± %.2f; R² of the curve %.3f", s.Fit.Gamma.StandardError, s.Fit.R2)}
	note := fmt.Sprintf("%d partly, %d not", counts[lab.Partly], counts[lab.Fails])
	if n := counts[lab.Unknown]; n > 0 {
		note += fmt.Sprintf(", %d cannot be judged", n)
	}
	if !known {
		harm = html.Fact{Label: "A wrong label costs", Value: "not measured", Note: "no run with wrong labels is there"}
	}
	r.Page = html.Document{
		Title:    "The paper, done again",
		Subtitle: fmt.Sprintf("Huang, Ke, Kamhoua, Mohapatra, Liu: “Incentivizing Data Contribution in Cross-Silo Federated Learning”, at %s scale.", p.Scale.Name),
		Facts: []html.Fact{
			{Label: "Claims that hold", Value: fmt.Sprintf("%d of %d", counts[lab.Holds], len(p.Verdicts)), Note: note},
			{Label: "Models trained", Value: fmt.Sprint(len(allRecords(s, p.Settings))), Note: s.Plan.Training.Dataset + ", " + s.Plan.Training.Model},
			{Label: "Games solved", Value: fmt.Sprint(len(p.Settings) * len(p.Settings[0].Equilibria)), Note: "each with a certificate: no member gains by giving any other amount"},
			harm,
		},
		Footer: footer(origin),
	}
	verdicts := html.Section{ID: "verdicts", Title: "The verdicts", Blocks: append(r.verdicts(p), r.paperDoubts(p)...)}
	last := func() []html.Section {
		return []html.Section{
			{ID: "sure", Title: "How sure this is", Blocks: r.certainty(s)},
			{ID: "provenance", Title: "Where the numbers come from", Blocks: r.provenance(s, allRecords(s, p.Settings), origin)},
		}
	}
	r.Tables = append(r.Tables, measurementTable(s), roundTable(s.Points), fitTable(s), verdictTable(p))
	r.Findings = findings(p, origin)
	if !known {
		// Games without γ would be the games of members whose wrong labels do no harm: not the paper's.
		r.Page.Facts = slices.Delete(r.Page.Facts, 2, 3)
		r.Page.Sections = append([]html.Section{verdicts,
			{ID: "accuracy", Title: "Accuracy: Figure 1", Blocks: []html.Block{r.figure(figure1(s))}}}, last()...)
		return r
	}
	r.Tables = append(r.Tables, settingTable(p), regionTable(p.Region), ownTable(p), theoremTable(s))
	r.Page.Sections = []html.Section{
		verdicts,
		{ID: "accuracy", Title: "Accuracy: Figures 1 and 2", Blocks: []html.Block{r.figure(figure1(s)), r.figure(figure2(s))}},
		{ID: "quality", Title: "Data quality: Figure 3", Blocks: []html.Block{
			text("Members 1 to 3 have the share of wrong labels on the axis, members 4 and 5 have none; all have privacy sensitivity 0.4. What they contribute at equilibrium:"),
			r.figure(contributionFigure(p, lab.Quality)),
		}},
		{ID: "privacy", Title: "Privacy: Figure 4", Blocks: []html.Block{
			text("All members have a tenth of their labels wrong. The privacy sensitivity of members 1 to 3 is on the axis, members 4 and 5 have 0.3."),
			r.figure(contributionFigure(p, lab.Privacy)),
		}},
		{ID: "models", Title: "The models that come of it: Figure 5", Blocks: []html.Block{r.figure(figure5(p)), {Table: accuracyTable(p)}}},
		{ID: "algorithm", Title: "How members get there: Algorithm 1", Blocks: []html.Block{r.figure(convergence(p)), r.figure(ownChart(p))}},
		{ID: "region", Title: "Where the claims hold", Blocks: []html.Block{
			text("The paper does not give the profit scale β1. Here it is %s, the same 0.3 per data point the members own as in the example on CIFAR-10; that is a choice, and γ is an estimate. So each claim was judged again on a grid around them. The framed square is the setting used on the rest of this page.", whole(p.Scale.Beta)),
			r.figure(regionChart(p.Region)),
		}},
	}
	r.Page.Sections = append(r.Page.Sections, last()...)
	return r
}

func findingMark(f lab.Finding) html.Mark {
	switch f {
	case lab.Holds:
		return html.Good
	case lab.Partly:
		return html.Middle
	case lab.Fails:
		return html.Bad
	}
	return html.Plain
}

func (r *Report) verdicts(p *lab.Reproduction) []html.Block {
	var claims []html.Claim
	for _, v := range p.Verdicts {
		claims = append(claims, html.Claim{
			Name: v.Claim, States: v.States, Finding: string(v.Finding), Mark: findingMark(v.Finding), Because: compact(v.Because),
		})
	}
	return []html.Block{
		text("The rules share the profit: %s.", ruleKey(p.Settings[0].Equilibria)),
		{Claims: claims},
		text("Holds: in every case tested (for O5, which says “tends to”, in nine of ten). Fails: in most cases of every part. Steps count when both ends are equilibria, and may go against a claim by one data point, the tolerance of Algorithm 1."),
	}
}

// compact joins parts that say the same of every rule.
func compact(parts []string) []string {
	var out []string
	type group struct {
		head  string
		items []string
	}
	var groups []group
	for _, text := range parts {
		head, rest, ok := strings.Cut(text, ", ")
		if !ok || !slices.Contains([]string{"privacy", "data", "noise"}, head) {
			out = append(out, text)
			continue
		}
		i := slices.IndexFunc(groups, func(g group) bool { return g.head == head })
		if i < 0 {
			groups = append(groups, group{head: head})
			i = len(groups) - 1
		}
		groups[i].items = append(groups[i].items, strings.Replace(rest, ":", "", 1))
	}
	for _, g := range groups {
		out = append(out, "own "+g.head+" varied alone: "+strings.Join(g.items, ", "))
	}
	return out
}

func (r *Report) paperDoubts(p *lab.Reproduction) []html.Block {
	var blocks []html.Block
	if !p.Study.KnowsGamma() {
		blocks = append(blocks, html.Block{Warning: "No run with wrong labels is there, so γ, what a wrong label costs, has not been measured. Figures 2 to 5, the theorems and the map of where the claims hold rest on it, and are left out."})
	}
	if n := len(p.Study.Missing); n > 0 {
		blocks = append(blocks, html.Block{Warning: fmt.Sprintf("%s have not been trained; what hangs on them is left out. Their keys are at the end of this page.", counted(n, "cell"))})
	}
	return blocks
}

// settingTable has one row per game, rule and member.
func settingTable(p *lab.Reproduction) *table.Table {
	t := &table.Table{Name: "equilibria", Columns: []table.Column{
		{Name: "sweep", Kind: table.Text}, {Name: "value", Kind: table.Number}, {Name: "mechanism", Kind: table.Text}, {Name: "member", Kind: table.Text},
		{Name: "noise", Kind: table.Number}, {Name: "privacy", Kind: table.Number}, {Name: "contribution", Kind: table.Integer},
		{Name: "share", Kind: table.Number}, {Name: "payoff", Kind: table.Number},
		{Name: "accuracy_predicted", Kind: table.Number}, {Name: "accuracy_trained", Kind: table.Number}, {Name: "runs", Kind: table.Integer},
		{Name: "iterations", Kind: table.Integer}, {Name: "status", Kind: table.Text}, {Name: "certified", Kind: table.Boolean},
	}}
	for _, s := range p.Settings {
		for _, e := range s.Equilibria {
			for n, m := range s.Game.Members {
				var trained any
				if len(e.Records) > 0 {
					trained = e.Trained
				}
				t.Add(string(s.Sweep), s.Value, e.Mechanism, m.Name, m.Noise, m.Privacy, e.Contributions[n], e.Shares[n], e.Payoffs[n],
					e.Accuracy, trained, len(e.Records), e.Iterations, string(e.Status), e.Certificate.Certified)
			}
		}
	}
	return t
}

func verdictTable(p *lab.Reproduction) *table.Table {
	t := &table.Table{Name: "verdicts", Columns: []table.Column{
		{Name: "claim", Kind: table.Text}, {Name: "states", Kind: table.Text}, {Name: "finding", Kind: table.Text}, {Name: "because", Kind: table.Text},
	}}
	for _, v := range p.Verdicts {
		for _, b := range v.Because {
			t.Add(v.Claim, v.States, string(v.Finding), b)
		}
	}
	return t
}

func regionTable(region *lab.Region) *table.Table {
	t := &table.Table{Name: "region", Columns: []table.Column{
		{Name: "claim", Kind: table.Text}, {Name: "beta1", Kind: table.Number}, {Name: "gamma", Kind: table.Number},
		{Name: "finding", Kind: table.Text}, {Name: "games_that_cycle", Kind: table.Integer},
	}}
	for _, claim := range lab.RegionClaims {
		for row, gamma := range region.Gammas {
			for column, beta := range region.Betas {
				t.Add(claim, beta, gamma, string(region.Findings[claim][row][column]), region.Cycles[row][column])
			}
		}
	}
	return t
}

func ownTable(p *lab.Reproduction) *table.Table {
	t := &table.Table{Name: "own_effects", Columns: []table.Column{
		{Name: "mechanism", Kind: table.Text}, {Name: "parameter", Kind: table.Text}, {Name: "value", Kind: table.Number},
		{Name: "contribution", Kind: table.Integer}, {Name: "status", Kind: table.Text},
	}}
	for _, e := range p.Own {
		for i, v := range e.Values {
			t.Add(e.Mechanism, e.Parameter, v, e.Contributions[i], string(e.Status[i]))
		}
	}
	return t
}

// Findings is observations.json.
type Findings struct {
	Scale    string        `json:"scale"`
	Version  string        `json:"version"`
	Seed     uint64        `json:"seed"`
	Beta     float64       `json:"beta1"`
	Gamma    *float64      `json:"gamma,omitempty"` // absent when not measured
	Form     string        `json:"form"`
	R2       float64       `json:"r2"`
	Cells    int           `json:"cells"`
	Missing  int           `json:"missing"`
	Verdicts []lab.Verdict `json:"verdicts"`
}

func findings(p *lab.Reproduction, origin Origin) Findings {
	out := Findings{
		Scale: p.Scale.Name, Version: origin.Version, Seed: origin.Seed, Beta: p.Scale.Beta,
		Form: string(p.Study.Fit.Form), R2: p.Study.Fit.R2,
		Cells: len(allRecords(p.Study, p.Settings)), Missing: len(p.Study.Missing), Verdicts: p.Verdicts,
	}
	if p.Study.KnowsGamma() {
		out.Gamma = &p.Study.Fit.Gamma.Value
	}
	return out
}

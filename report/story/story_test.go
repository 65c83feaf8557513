package story

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"grange/curve"
	"grange/game"
	"grange/lab"
)

// formula stands for training: the shape of accuracies without the work.
func formula(_ context.Context, c lab.Cell) (lab.Outcome, error) {
	final := 0.88 - 0.78*math.Pow(1+float64(c.Total())/40, -0.5) - 0.4*c.WrongShare() + 0.003*math.Sin(float64(c.Total())+float64(c.Seed))
	o := lab.Outcome{Accuracy: final, Backend: "formula"}
	for r := range c.Rounds {
		o.Rounds = append(o.Rounds, lab.Round{Round: r + 1, Accuracy: final * (1 - 0.3/float64(r+1)), Loss: 1})
	}
	return o, nil
}

func newRunner(t *testing.T) *lab.Runner {
	t.Helper()
	store, err := lab.Open(t.TempDir(), "test", func() time.Time { return time.Unix(0, 0) })
	if err != nil {
		t.Fatal(err)
	}
	return &lab.Runner{Store: store, Train: formula, Workers: 2}
}

var origin = Origin{Version: "v1", Command: "grange run x.yaml", Folder: "results", Seed: 1}

func studyReport(t *testing.T) *Report {
	t.Helper()
	g := &game.Game{Profit: game.PowerProfit{Slope: 3000, Exponent: 2}, Cost: game.PowerCost{}, Minimum: 1}
	s := &lab.Study{Name: "five <clinics>", Replicates: 20, Template: g, Plan: lab.Plan{
		Training: lab.Training{Dataset: "fashion", Model: "mlp", Rounds: 4, Epochs: 1, Batch: 64, Rate: 0.1, GlobalRate: 1}, Untrained: 0.1, Seed: 1,
	}}
	for n, name := range []string{"ash", "birch", "cedar"} {
		g.Members = append(g.Members, game.Member{Name: name, Capacity: 1000, Noise: 0.1 * float64(n), Privacy: 0.4})
		s.Plan.Capacities = append(s.Plan.Capacities, 1000)
	}
	if err := s.Run(t.Context(), newRunner(t)); err != nil {
		t.Fatal(err)
	}
	return Study(s, origin)
}

func reproduction(t *testing.T) *lab.Reproduction {
	t.Helper()
	scale := lab.QuickScale()
	scale.Training.Rounds = 4
	scale.BetaFactors, scale.GammaFactors = []float64{1}, []float64{1}
	s := &lab.Study{Plan: lab.Plan{Seed: 1}, Form: curve.FormPower, Replicates: 4}
	p, err := lab.Reproduce(t.Context(), scale, s, newRunner(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func names(files []File) string {
	var out []string
	for _, f := range files {
		out = append(out, f.Name)
	}
	return strings.Join(out, " ")
}

func TestStudyReport(t *testing.T) {
	files, err := studyReport(t).Files()
	if err != nil {
		t.Fatal(err)
	}
	page := string(files[0].Data)
	for _, want := range []string{"Five &lt;clinics&gt;", "ash", "LOO", "certified", "The answer", "Who gains and who loses", "grange run x.yaml", "90% interval"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, bad := range []string{"NaN", "Inf", "%!", "http"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, want := range []string{"figures/members.png", "figures/accuracy.pdf", "tables/equilibria.csv", "tables/rounds.parquet"} {
		if !strings.Contains(names(files), want) {
			t.Errorf("no %s among %s", want, names(files))
		}
	}
}

func TestReproductionReport(t *testing.T) {
	p := reproduction(t)
	first, err := Reproduction(p, origin).Files()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Reproduction(p, origin).Files()
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range first {
		if !bytes.Equal(f.Data, second[i].Data) {
			t.Errorf("%s differs when written again", f.Name)
		}
	}
	for _, want := range []string{"figures/figure-1.svg", "figures/figure-2.svg", "figures/figure-3.svg", "figures/figure-4.svg", "figures/figure-5.svg",
		"figures/convergence.svg", "figures/region.svg", "tables/verdicts.csv", "observations.json"} {
		if !strings.Contains(names(first), want) {
			t.Errorf("no %s among %s", want, names(first))
		}
	}
	var found Findings
	if err := json.Unmarshal(first[len(first)-1].Data, &found); err != nil {
		t.Fatal(err)
	}
	if len(found.Verdicts) != 9 || found.Scale != "quick" || found.Missing != 0 {
		t.Errorf("findings %+v", found)
	}
	page := string(first[0].Data)
	for _, claim := range []string{">O1<", ">O5<", ">T1<", ">T3<", ">A1<", "steps along which", "ε, share of wrong labels", "4a to 4d are the bars at μ", "framed square"} {
		if !strings.Contains(page, claim) {
			t.Errorf("the page lacks %q", claim)
		}
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{whole(1234567), "1\u202f234\u202f567"}, {whole(-0.4), "−0.4"}, {whole(0.01), "0"}, {whole(3), "3"}, {signed(12), "+12"},
		{list([]string{"a"}), "a"}, {list([]string{"a", "b", "c"}), "a, b and c"}, {list(nil), ""},
		{verb(nil, "gains", "gain"), "nobody gains"}, {verb([]string{"a", "b"}, "gains", "gain"), "a and b gain"},
		{titled("élan"), "Élan"}, {titled(""), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

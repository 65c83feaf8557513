package lab

import (
	"context"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/curve"
)

// cifar is a trainer for the tests: the curve measured on CIFAR-10 instead of a
// model, with some scatter and overfitting.
func cifar(_ context.Context, c Cell) (Outcome, error) {
	truth := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}}
	scatter := 0.002 * math.Sin(float64(c.Total())+17*float64(c.Seed)+100*c.WrongShare())
	final := truth.At(float64(c.Total())) - 0.92*c.WrongShare() + scatter
	o := Outcome{Accuracy: final, Backend: "formula"}
	for r := range c.Rounds {
		x := float64(r+1) / float64(c.Rounds)
		o.Rounds = append(o.Rounds, Round{Round: r + 1, Accuracy: final * (1 + 1.2*c.WrongShare()*4*x*(1-x)) * min(1, 0.5+2*x), Loss: 1})
	}
	return o, nil
}

func smallPaper(t *testing.T, dir string, workers int) (*Reproduction, error) {
	t.Helper()
	scale := PaperScale()
	scale.Training.Rounds = 10
	scale.BetaFactors, scale.GammaFactors = []float64{1, 2}, []float64{0.5, 1}
	study := &Study{Plan: Plan{Seed: 1}, Form: curve.FormLogLinear, Replicates: 20, Workers: workers}
	return Reproduce(t.Context(), scale, study, &Runner{Store: open(t, dir), Train: cifar, Workers: workers})
}

func TestReproduceOnTheMeasuredCurve(t *testing.T) {
	r, err := smallPaper(t, t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if g := r.Study.Fit.Gamma; math.Abs(g.Value-0.92) > 3*g.StandardError {
		t.Errorf("γ = %g ± %g, want 0.92", g.Value, g.StandardError)
	}
	if s := r.Study.Surrogate; s == nil || s.RMSE > 0.01 {
		t.Errorf("the surrogate holds exactly here, and was found to miss: %+v", s)
	}
	if len(r.Settings) != 11 || len(r.Settings[0].Equilibria) != 4 {
		t.Fatalf("%d settings", len(r.Settings))
	}
	for _, s := range r.Settings {
		for _, e := range s.Equilibria {
			if len(e.Records) != r.Scale.EquilibriumRepeats || math.Abs(e.Trained-e.Accuracy) > 0.02 {
				t.Errorf("%s %s %.1f: trained %g, predicted %g", e.Mechanism, s.Sweep, s.Value, e.Trained, e.Accuracy)
			}
		}
	}
	for _, v := range r.Verdicts {
		t.Logf("%s %s", v.Claim, v.Finding)
		for _, b := range v.Because {
			t.Logf("    %s", b)
		}
		if v.Finding == Unknown {
			t.Errorf("%s was not judged", v.Claim)
		}
	}
	loo := of(r.Settings, Quality)[0].Under("LOO")
	idle := 0
	for _, x := range loo.Contributions {
		if x <= 1 {
			idle++
		}
	}
	if idle != 3 {
		t.Errorf("LOO with clean labels leaves %d members idle (%v), want the paper's three", idle, loo.Contributions)
	}
	for i, e := range r.Study.Equilibria {
		for n, in := range e.ContributionIntervals {
			if in.Low > in.High {
				t.Errorf("equilibrium %d, member %d: interval %+v", i, n, in)
			}
		}
	}
}

func TestReproduceIsTheSameForAnyWorkers(t *testing.T) {
	var verdicts [][]Verdict
	for _, workers := range []int{1, 3} {
		r, err := smallPaper(t, t.TempDir(), workers)
		if err != nil {
			t.Fatal(err)
		}
		verdicts = append(verdicts, r.Verdicts)
	}
	if diff := cmp.Diff(verdicts[0], verdicts[1]); diff != "" {
		t.Error(diff)
	}
}

func TestPartialUsesWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	full, err := smallPaper(t, dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	scale := full.Scale
	study := &Study{Plan: Plan{Seed: 1}, Form: curve.FormLogLinear, Replicates: -1, Partial: true}
	r, err := Reproduce(t.Context(), scale, study, &Runner{Store: open(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Study.Missing) != 0 {
		t.Errorf("%d cells missing, want none", len(r.Study.Missing))
	}
	scale.Repeats = 7 // two more than there are
	study = &Study{Plan: Plan{Seed: 1}, Form: curve.FormLogLinear, Replicates: -1, Partial: true}
	r, err = Reproduce(t.Context(), scale, study, &Runner{Store: open(t, dir)})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Study.Missing) == 0 {
		t.Error("no cell is missing, want two repeats of every point")
	}
}

func TestConcludeCombines(t *testing.T) {
	good, bad, mixed := part{held: 4, of: 4}, part{held: 0, of: 4}, part{held: 3, of: 4}
	for _, c := range []struct {
		parts []part
		want  Finding
	}{
		{[]part{good, good}, Holds}, {[]part{bad, bad}, Fails}, {[]part{good, bad}, Partly},
		{[]part{mixed}, Partly}, {[]part{{}}, Unknown}, {nil, Unknown},
	} {
		if got := combine(c.parts...); got != c.want {
			t.Errorf("%+v: %s, want %s", c.parts, got, c.want)
		}
	}
}

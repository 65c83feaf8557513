package curve

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// example is the curve of the specification, measured on CIFAR-10.
var example = LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}}

const exampleGamma = 0.92

// design is the paper's grid, measured repeats times.
func design(repeats int) []Point {
	var points []Point
	for range repeats {
		for k := 1; k <= 10; k++ {
			points = append(points, Point{Total: 5000 * float64(k)})
		}
		for k := 1; k <= 5; k++ {
			points = append(points, Point{Total: 50000, WrongShare: 0.1 * float64(k)})
		}
		points = append(points, Point{Total: 20000, WrongShare: 0.2}, Point{Total: 10000, WrongShare: 0.4})
	}
	return append(points, Point{Total: 0})
}

func measureAt(points []Point, clean interface{ At(float64) float64 }, sigma float64, rng *rand.Rand) []Point {
	out := make([]Point, len(points))
	for i, p := range points {
		p.Accuracy = clean.At(p.Total) - exampleGamma*p.WrongShare
		if p.Total > 0 {
			p.Accuracy += sigma * rng.NormFloat64()
		}
		out[i] = p
	}
	return out
}

func TestFitRecoversExactCurves(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for form, truth := range map[Form]interface{ At(float64) float64 }{
		FormLogLinear:   example,
		FormPower:       Power{A: 0.95, B: 4, C: 120, D: 0.33},
		FormExponential: Exponential{A: 0.86, B: 0.76, C: 9e-5},
	} {
		points := measureAt(design(1), truth, 0, rng)
		fits, err := Fitter{}.FitAll(points)
		if err != nil {
			t.Fatal(err)
		}
		fit := fits[0]
		if fit.Form != form {
			t.Errorf("%s data: chose %s", form, fit.Form)
		}
		if fit.RMSE > 1e-6 || math.Abs(fit.Gamma.Value-exampleGamma) > 1e-5 {
			t.Errorf("%s: RMSE %g, γ %g", form, fit.RMSE, fit.Gamma.Value)
		}
		for s := 0.0; s <= 50000; s += 2500 {
			if math.Abs(fit.Clean.At(s)-truth.At(s)) > 1e-5 {
				t.Errorf("%s: at %g fitted %g, want %g", form, s, fit.Clean.At(s), truth.At(s))
			}
		}
	}
}

// TestFitStandardErrors checks on many synthetic measurements that the stated
// standard errors are the spread one sees: the share of estimates within two
// of them is that of a t distribution, and the fit is not biased.
func TestFitStandardErrors(t *testing.T) {
	const trials, sigma = 200, 0.004
	truth := append(example.Alpha[:], exampleGamma)
	inside := make([]int, len(truth))
	mean := make([]float64, len(truth))
	stated := make([]float64, len(truth))
	for k := range trials {
		points := measureAt(design(2), example, sigma, rand.New(rand.NewPCG(7, uint64(k))))
		fit, err := Fitter{}.Fit(FormLogLinear, points)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range append(append([]Estimate{}, fit.Parameters...), fit.Gamma) {
			if math.Abs(e.Value-truth[i]) <= 2*e.StandardError || e.Fixed != "" {
				inside[i]++
			}
			mean[i] += e.Value / trials
			stated[i] += e.StandardError / trials
		}
	}
	for i := range truth {
		if share := float64(inside[i]) / trials; share < 0.90 {
			t.Errorf("parameter %d: within two standard errors in %.2f of trials", i, share)
		}
		if i != 2 && math.Abs(mean[i]-truth[i]) > 0.5*stated[i] {
			t.Errorf("parameter %d: mean %g, want %g ± %g", i, mean[i], truth[i], stated[i])
		}
	}
}

func TestFitObeysAssumption1(t *testing.T) {
	// Data that fall at the end and are convex at the start: the fit may not.
	points := []Point{{Total: 0, Accuracy: 0.1}}
	for k := 1; k <= 10; k++ {
		x := float64(k) / 10
		points = append(points, Point{Total: 1000 * float64(k), Accuracy: 0.1 + x*x - 0.9*x*x*x*x})
	}
	fits, err := Fitter{}.FitAll(points)
	if err != nil {
		t.Fatal(err)
	}
	for _, fit := range fits {
		slope := math.Inf(1)
		for s := 0.0; s < 10000; s += 100 {
			next := fit.Clean.At(s+100) - fit.Clean.At(s)
			if next < -1e-9 || next > slope+1e-9 {
				t.Errorf("%s: not increasing and concave at %g: step %g after %g", fit.Form, s, next, slope)
				break
			}
			slope = next
		}
		if len(fit.Warnings) == 0 {
			t.Errorf("%s: a poor fit without a warning (R² %g)", fit.Form, fit.R2)
		}
	}
}

func TestFitWarnsWhenNotIdentified(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var points []Point
	for k := range 12 { // a narrow range far from the bend
		s := 40000 + 100*float64(k)
		points = append(points, Point{Total: s, Accuracy: example.At(s) + 0.005*rng.NormFloat64()})
	}
	fit, err := Fitter{}.Fit(FormLogLinear, points)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(fit.Warnings, "; "); !strings.Contains(text, "poor fit") && !strings.Contains(text, "identified") && !strings.Contains(text, "edge") {
		t.Errorf("warnings: %q", text)
	}
	if fit.Gamma.Fixed == "" {
		t.Error("γ estimated from clean points only")
	}
}

func TestFitErrors(t *testing.T) {
	if _, err := (Fitter{}).Fit("spline", design(1)); !errors.Is(err, ErrForm) {
		t.Errorf("unknown form: %v", err)
	}
	few := []Point{{Total: 0}, {Total: 1, Accuracy: 0.2}, {Total: 2, Accuracy: 0.3}}
	if _, err := (Fitter{}).FitAll(few); !errors.Is(err, ErrTooFewPoints) {
		t.Errorf("three points: %v", err)
	}
	bad := design(1)
	bad[2].Accuracy = math.NaN()
	if _, err := (Fitter{}).FitAll(bad); err == nil {
		t.Error("NaN accepted")
	}
}

func TestLackOfFitIsUniformWhenTheFormIsRight(t *testing.T) {
	const trials = 100
	low := 0
	for k := range trials {
		points := measureAt(design(3), example, 0.01, rand.New(rand.NewPCG(11, uint64(k))))
		fit, err := Fitter{}.Fit(FormLogLinear, points)
		if err != nil {
			t.Fatal(err)
		}
		if fit.LackOfFit < 0.1 {
			low++
		}
	}
	if low > 20 { // binomial(100, 0.1): mean 10, standard deviation 3
		t.Errorf("p < 0.1 in %d of %d fits of the right form", low, trials)
	}
}

// TestBootstrapCoverage measures how often the 90% intervals hold the truth.
func TestBootstrapCoverage(t *testing.T) {
	const trials = 30
	gamma, answer := 0, 0
	for k := range trials {
		points := measureAt(design(2), example, 0.005, rand.New(rand.NewPCG(5, uint64(k))))
		b := Bootstrap{Form: FormLogLinear, Replicates: 40}
		spread, err := b.Run(points, rand.New(rand.NewPCG(6, uint64(k))), func(f *Fit) ([]float64, error) {
			return []float64{f.At(25000, 0.2)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if spread.Gamma.Low <= exampleGamma && exampleGamma <= spread.Gamma.High {
			gamma++
		}
		truth := example.At(25000) - exampleGamma*0.2
		if spread.Answers[0].Low <= truth && truth <= spread.Answers[0].High {
			answer++
		}
	}
	t.Logf("coverage of 90%% intervals in %d trials: γ %d, accuracy %d", trials, gamma, answer)
	if gamma < trials*7/10 || answer < trials*7/10 {
		t.Errorf("coverage of 90%% intervals in %d trials: γ %d, accuracy %d", trials, gamma, answer)
	}
}

func TestBootstrapSameForAnyWorkers(t *testing.T) {
	points := measureAt(design(1), example, 0.005, rand.New(rand.NewPCG(5, 5)))
	var spreads []*Spread
	for _, workers := range []int{1, 4} {
		b := Bootstrap{Form: FormLogLinear, Replicates: 20, Workers: workers}
		spread, err := b.Run(points, rand.New(rand.NewPCG(1, 2)), nil)
		if err != nil {
			t.Fatal(err)
		}
		spreads = append(spreads, spread)
	}
	if spreads[0].Gamma != spreads[1].Gamma || spreads[0].Parameters[0] != spreads[1].Parameters[0] {
		t.Errorf("workers change the result: %+v, %+v", spreads[0], spreads[1])
	}
}

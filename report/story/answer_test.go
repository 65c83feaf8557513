package story

import (
	"strings"
	"testing"

	"grange/curve"
	"grange/equilibrium"
	"grange/game"
	"grange/lab"
)

// closeRace is three members under three rules, trained runs times each, measured
// with a scatter of about one point.
func closeRace(runs int) *lab.Study {
	fit := &curve.Fit{Gamma: curve.Estimate{Name: "gamma", Value: 0.3}, DegreesFree: 6}
	s := &lab.Study{Fit: fit, Points: []lab.Measurement{{Kind: lab.KindNoise, WrongShare: 0.1}}, Game: &game.Game{Minimum: 1}}
	for i, r := range []float64{0.01, -0.01, 0.01, -0.01, 0.01, -0.01} {
		fit.Points = append(fit.Points, curve.Point{Total: float64(100 * (i + 1))})
		fit.Residuals = append(fit.Residuals, r)
	}
	for _, name := range []string{"ash", "birch", "cedar"} {
		s.Game.Members = append(s.Game.Members, game.Member{Name: name, Capacity: 1000})
	}
	for _, e := range []struct {
		name               string
		trained, predicted float64
		payoffs            []float64
	}{{"EG", 0.60, 0.62, []float64{9, 9, 9}}, {"LP", 0.80, 0.79, []float64{5, 5, 5}}, {"LOO", 0.79, 0.81, []float64{-2, -1, 12}}} {
		result := &equilibrium.Result{Mechanism: e.name, Status: equilibrium.Converged}
		result.Contributions, result.Payoffs = game.Profile{1, 1, 500}, e.payoffs
		result.Accuracy, result.Welfare = e.predicted, e.payoffs[0]+e.payoffs[1]+e.payoffs[2]
		s.Equilibria = append(s.Equilibria, lab.Equilibrium{Result: result, Records: make([]*lab.Record, runs), Trained: e.trained})
	}
	return s
}

func TestAnswerOfSingleRuns(t *testing.T) {
	s := closeRace(1)
	best := bestRule(s.Equilibria)
	answer := strings.Join(append(verdict(s, best), luck(s, best)...), " ")
	for _, want := range []string{
		"LP gives the best model measured", "but LOO (79.0%) cannot be told apart from it", "The members earn most together under EG (27 against 15)",
		"Under LOO, 2 of 3 members end below what they have without taking part: ash (−2) and birch (−1).",
		"two models less than 4.2 points apart cannot be told apart", "--repeats 3 measures chance",
		"it puts LOO first, with 81.0% against 79.0%",
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("no %q in %s", want, answer)
		}
	}
	if got := facts(s); got[0].Value != "LP (proportional), LOO (leave one out)" || got[3].Value != "LP 2, LOO 2" {
		t.Errorf("cards %+v", got)
	}
}

// With repeats a point apart is enough when they agree well.
func TestAnswerOfRepeats(t *testing.T) {
	s := closeRace(3)
	for i := range s.Equilibria {
		s.Equilibria[i].TrainedError = 0.002
	}
	best := bestRule(s.Equilibria)
	answer := strings.Join(append(verdict(s, best), luck(s, best)...), " ")
	if !strings.HasPrefix(answer, "LP gives the best model: 80.0%") || strings.Contains(answer, "chance") {
		t.Error(answer)
	}
	if got := facts(s); got[0].Value != "LP (proportional)" || got[3].Value != "2 of 3" {
		t.Errorf("cards %+v", got)
	}
}

func TestFailing(t *testing.T) {
	if got := failing([]int{2}) + ", " + failing([]int{1, 2, 4}); got != "assumption 2 fails, assumptions 1, 2 and 4 fail" {
		t.Error(got)
	}
}

// Every figure and table beside the page is linked from it.
func TestPageLinksItsFiles(t *testing.T) {
	files, err := studyReport(t).Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files[1:] {
		if !strings.Contains(string(files[0].Data), `href="`+f.Name+`"`) {
			t.Errorf("no link to %s", f.Name)
		}
	}
	if !strings.Contains(names(files), "tables/theorems.csv") {
		t.Error("no file with the theorems")
	}
}

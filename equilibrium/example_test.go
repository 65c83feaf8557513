package equilibrium_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"grange/curve"
	"grange/equilibrium"
	"grange/game"
	"grange/mechanism"
)

// fiveHospitals is the paper's setting: three hospitals with 10% wrong labels,
// two with none.
func fiveHospitals() *game.Game {
	clean := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}}
	g := &game.Game{
		Accuracy: game.Accuracy{Clean: clean, Gamma: 0.92, Untrained: clean.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded},
		Profit:   game.PowerProfit{Slope: 15000, Exponent: 2},
		Cost:     game.PowerCost{Exponent: 1},
		Minimum:  1,
	}
	for n, noise := range []float64{0.1, 0.1, 0.1, 0, 0} {
		g.Members = append(g.Members, game.Member{Name: fmt.Sprint("hospital ", n+1), Capacity: 10000, Noise: noise, Privacy: 0.4})
	}
	return g
}

func ExampleSolve() {
	for _, m := range mechanism.All() {
		r, err := equilibrium.Solve(context.Background(), fiveHospitals(), m, equilibrium.Settings{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-3s %v accuracy %.3f, regret %g\n", r.Mechanism, r.Contributions, r.Accuracy, r.Certificate.Regret)
	}
	// Output:
	// EG  [1 1 1 1 29] accuracy 0.105, regret 0
	// LP  [1507 1508 1508 4513 4513] accuracy 0.648, regret 0
	// LOO [1 1 1 9078 9078] accuracy 0.719, regret 0
	// SV  [1262 1262 1262 2775 2775] accuracy 0.588, regret 0
}

// squareRoot pays for the square root of a contribution: a mechanism nobody
// here has heard of. Without a Deviate method every integer is tried.
type squareRoot struct{}

func (squareRoot) Name() string { return "square root" }

func (squareRoot) Indices(g *game.Game, s game.Profile) ([]float64, error) {
	indices := make([]float64, len(s))
	for n, x := range s {
		indices[n] = math.Sqrt(float64(x))
	}
	return indices, nil
}

func ExampleSolve_ownMechanism() {
	r, err := equilibrium.Solve(context.Background(), fiveHospitals(), squareRoot{}, equilibrium.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Contributions, r.Certificate.Method, r.Certificate.Certified)
	// Output: [716 716 716 1107 1107] enumeration true
}

func ExamplePlan() {
	best, err := equilibrium.Plan(context.Background(), fiveHospitals())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%v welfare %.1f, no profile has more than %.1f\n", best.Contributions, best.Welfare, best.Bound)
	// Output: [1 1 1 6381 1] welfare 2300.9, no profile has more than 2300.9
}

func ExampleExplore() {
	g := fiveHospitals()
	for n := range g.Members {
		g.Members[n].Noise = 0 // now nothing but the order of play tells them apart
	}
	found, err := equilibrium.Explore(context.Background(), g, mechanism.LOO{}, equilibrium.Settings{}, 20, 1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(found.Equilibria), "equilibria, best welfare", math.Round(found.Equilibria[0].Result.Welfare))
	// Output: 12 equilibria, best welfare 489
}

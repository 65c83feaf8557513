package valuation_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"grange/valuation"
)

// complaints returns v(S) − x(S) of all coalitions but ∅ and N, largest first.
func complaints(table valuation.Table, payment []float64) []float64 {
	var list []float64
	for c := 1; c < len(table)-1; c++ {
		complaint := table[c] - table[0]
		for n := range valuation.Coalition(c).Members() {
			complaint -= payment[n]
		}
		list = append(list, complaint)
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// Many worths alike make many corners of the linear programs coincide.
func TestNucleolusOfDegenerateGames(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 3 + int(seed%6)
		table := make(valuation.Table, 1<<n)
		for c := 1; c < len(table); c++ {
			table[c] = float64(random.IntN(3))
		}
		values, err := valuation.Nucleolus(table)
		if err != nil {
			t.Errorf("seed %d, %d members: %v", seed, n, err)
			continue
		}
		near(t, "sum", []float64{sum(values)}, []float64{table[len(table)-1]}, 1e-9)
	}
}

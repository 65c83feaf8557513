package main

import (
	"math"
	"math/rand/v2"

	"grange/curve"
	"grange/game"
	"grange/valuation"
	"grange/valuation/games"
)

// named is a game of 16 members as a table.
type named struct {
	name  string
	table valuation.Table
}

func tables() []named {
	votes := []int{40, 35, 30, 28, 22, 20, 18, 15, 12, 11, 10, 8, 6, 5, 3, 2}
	total := 0
	for _, v := range votes {
		total += v
	}
	return []named{
		{"airport", airport(16)},
		{"voting", games.Voting(votes, total/2+1).Table()},
		{"surrogate", surrogate(16)},
		{"trained", trained(16)},
	}
}

// airport has runway needs which grow like squares.
func airport(members int) valuation.Table {
	needs := make([]float64, members)
	for i := range needs {
		needs[i] = 1 + float64(i*i)/10
	}
	return games.Airport(needs).Table()
}

// surrogate is the accuracy clean(S) − γ·R of the example scenario, for members
// of different size and label noise.
func surrogate(members int) valuation.Table {
	clean := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363, 1, -2.07e-6, 0.0999}}
	a := game.Accuracy{Clean: clean, Gamma: 0.92, Untrained: clean.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded}
	table := make(valuation.Table, 1<<members)
	for c := range table {
		points, wrong := 0.0, 0.0
		for n := range valuation.Coalition(c).Members() {
			own := float64(200 + 150*((n*7)%members))
			points += own
			wrong += own * 0.05 * float64((n*5)%8)
		}
		table[c] = a.At(points, wrong)
	}
	return table
}

// trained is the test accuracy of a logistic regression that each coalition
// trains by stochastic gradient descent on its members' points, with an order
// of its own: neighbouring coalitions differ by chance as well.
func trained(members int) valuation.Table {
	const dimensions, points, tests = 8, 12, 400
	random := rand.New(rand.NewPCG(1, 2))
	type example struct {
		x     [dimensions]float64
		label float64
	}
	draw := func(noise float64) (e example) {
		score := 0.0
		for d := range e.x {
			e.x[d] = random.NormFloat64()
			score += e.x[d] * float64(d%3-1+d%2)
		}
		if score+random.NormFloat64() > 0 {
			e.label = 1
		}
		if random.Float64() < noise {
			e.label = 1 - e.label
		}
		return e
	}
	own := make([][]example, members)
	for n := range own {
		for range points * (1 + n%3) / 2 {
			own[n] = append(own[n], draw(0.06*float64(n%8)))
		}
	}
	var test []example
	for range tests {
		test = append(test, draw(0))
	}
	table := make(valuation.Table, 1<<members)
	for c := range table {
		var data []example
		for n := range valuation.Coalition(c).Members() {
			data = append(data, own[n]...)
		}
		order := rand.New(rand.NewPCG(3, uint64(c)))
		var w [dimensions]float64
		for range 2 {
			order.Shuffle(len(data), func(i, j int) { data[i], data[j] = data[j], data[i] })
			for _, e := range data {
				score := 0.0
				for d := range w {
					score += w[d] * e.x[d]
				}
				step := 0.2 * (e.label - 1/(1+math.Exp(-score)))
				for d := range w {
					w[d] += step * e.x[d]
				}
			}
		}
		right := 0
		for _, e := range test {
			score := 0.0
			for d := range w {
				score += w[d] * e.x[d]
			}
			if (score > 0) == (e.label > 0) {
				right++
			}
		}
		table[c] = float64(right) / tests
	}
	return table
}

package theory_test

import (
	"context"
	"fmt"
	"log"

	"grange/curve"
	"grange/game"
	"grange/mechanism"
	"grange/theory"
)

func ExampleCheck() {
	clean := curve.Exponential{A: 0.9, B: 0.8, C: 0.001}
	g := &game.Game{
		Members: []game.Member{
			{Name: "north", Capacity: 1000, Privacy: 0.1},
			{Name: "south", Capacity: 1000, Privacy: 0.2},
		},
		Accuracy: game.Accuracy{Clean: clean, Untrained: clean.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded},
		Profit:   game.LinearProfit{Slope: 1000},
		Cost:     game.PowerCost{},
		Minimum:  1,
	}
	report, err := theory.Check(context.Background(), g, []mechanism.Mechanism{mechanism.EG{}}, theory.Settings{})
	if err != nil {
		log.Fatal(err)
	}
	for _, theorem := range report.Theorems {
		fmt.Println(theorem)
	}
	// Output:
	// Theorem 1 applies under EG: a Nash equilibrium exists
	// Theorem 2 applies under EG: s* is non-increasing in the member's privacy sensitivity and non-decreasing in its data
	// Theorem 3 applies under EG: s* is non-increasing in the member's wrong-label rate
}

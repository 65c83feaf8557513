// Command generate writes examples/cooperative.yaml: 200 farms, vineyards and
// dairies with sizes, label quality and privacy concerns drawn from fixed
// distributions. Same program, same file.
//
//	go run ./examples/generate > examples/cooperative.yaml
package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
)

const members = 200

const header = `# A co-operative of 200 farms, vineyards, dairies and orchards.
#
# Their sensors and field notes train one model that forecasts yield and disease. A few estates own
# most of the records, the usual long tail owns the rest; small holdings label by eye and get more
# wrong; some members guard their books more than others.
#
# Written by a program; change that instead:
#
#   go run ./examples/generate > examples/cooperative.yaml
#   grange solve examples/cooperative.yaml
name: farm co-operative
members:
`

const footer = `accuracy: {form: loglinear, alpha: [0.0942, 0.0021, 1, 0, 0.12], gamma: 0.6, ceiling: 0.97}
profit:   {form: quadratic, beta: [400000, 0]}
`

var (
	first  = []string{"Ash", "Barley", "Birch", "Clover", "Elder", "Fern", "Hazel", "Heather", "Linden", "Maple", "Marsh", "Meadow", "Mill", "Oak", "Orchard", "Plum", "Quarry", "Reed", "Rowan", "Stone"}
	second = []string{"field Farm", "brook Dairy", "hill Vineyard", "croft Orchard", "dale Farm", "wick Dairy", "bank Vineyard", "mead Farm", "ham Orchard", "ley Farm"}
)

func main() {
	rng := rand.New(rand.NewPCG(2026, 200))
	out := []byte(header)
	// Every pair of names once, in a random order.
	order := rng.Perm(len(first) * len(second))
	for _, k := range order[:members] {
		name := first[k/len(second)] + second[k%len(second)]
		size := math.Exp(7.6 + 1.1*rng.NormFloat64()) // log-normal: median 2,000 records
		size = math.Round(math.Min(math.Max(size, 100), 60_000)/10) * 10
		// Small holdings label by eye.
		noise := math.Round(100*(0.02+0.16*rng.Float64()+0.10*math.Exp(-size/2000))) / 100
		privacy := math.Round(1000*(0.05+0.45*rng.Float64()*rng.Float64())) / 1000
		out = fmt.Appendf(out, "  - {name: %s, data: %.0f, noise: %g, privacy: %g}\n", name, size, noise, privacy)
	}
	out = append(out, footer...)
	if _, err := os.Stdout.Write(out); err != nil {
		os.Exit(1)
	}
}

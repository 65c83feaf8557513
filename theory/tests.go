package theory

import (
	"math"
	"slices"

	"grange/game"
	"grange/interval"
	"grange/mechanism"
)

// derivatives of a function of one contribution at a point.
type derivatives struct{ value, slope, second float64 }

// atPoint reads a jet taken at a single point.
func atPoint(j interval.Jet) derivatives { return derivatives{j.Value.Lo, j.Slope.Lo, j.Second.Lo} }

// differences approximates derivatives by central differences over the
// integers, for functions that have no enclosure.
func differences(f func(x int64) float64, x, least, most int64) derivatives {
	h := max(1, (most-least)/1000)
	h = min(h, max(1, (most-least)/2))
	x = min(max(x, least+h), most-h)
	a, b, c := f(x-h), f(x), f(x+h)
	step := float64(h)
	return derivatives{b, (c - a) / (2 * step), (c - 2*b + a) / (step * step)}
}

// accuracyRises tests Assumption 1 at a point.
func accuracyRises(g *game.Game, p point) (v violation, err error) {
	d := accuracyAt(g, p)
	x := float64(p.profile[p.member])
	scale := math.Abs(d.value) + 1
	v.worse("−∂A/∂s", -d.slope, scale/x)
	v.worse("∂²A/∂s²", d.second, scale/(x*x))
	if v.quantity == "−∂A/∂s" {
		v.quantity, v.value = "∂A/∂s", -v.value
	}
	return v, nil
}

// accuracyAt returns A and its derivatives in the member's contribution.
func accuracyAt(g *game.Game, p point) derivatives {
	x := p.profile[p.member]
	rest := game.NewState(g, p.profile).Without(p.member)
	noise := g.Members[p.member].Noise
	if g.Accuracy.Smooth() {
		reach := g.Accuracy.Reach(rest, noise, float64(x), float64(x))
		return atPoint(reach.Bound())
	}
	return differences(func(x int64) float64 {
		return g.Accuracy.At(rest.Total+float64(x), rest.Wrong+noise*float64(x))
	}, x, max(g.Minimum, 1), g.Members[p.member].Capacity)
}

// shareAt returns g_n and its derivatives in the member's contribution.
func shareAt(g *game.Game, m mechanism.Mechanism, p point) (derivatives, error) {
	x := p.profile[p.member]
	rest := game.NewState(g, p.profile).Without(p.member)
	deviation, err := mechanism.Deviate(m, g, p.profile, p.member, rest)
	if err != nil {
		return derivatives{}, err
	}
	if bounded, ok := deviation.(mechanism.BoundedDeviation); ok && g.Accuracy.Smooth() {
		if jet := bounded.Bound(x, x); jet != interval.Unknown {
			return atPoint(jet), nil
		}
	}
	return differences(deviation.Share, x, max(g.Minimum, 1), g.Members[p.member].Capacity), nil
}

// profitConcave tests the corrected Assumption 2 at a point.
func profitConcave(g *game.Game, m mechanism.Mechanism, p point) (v violation, err error) {
	share, err := shareAt(g, m, p)
	if err != nil {
		return v, err
	}
	a := accuracyAt(g, p)
	jet := interval.Jet{Value: interval.Point(a.value), Slope: interval.Point(a.slope), Second: interval.Point(a.second)}
	var profit derivatives
	if bounded, ok := g.Profit.(game.BoundedProfit); ok {
		profit = atPoint(bounded.Bound(jet))
	} else {
		const h = 1e-4
		lo, mid, hi := g.Profit.At(a.value-h), g.Profit.At(a.value), g.Profit.At(a.value+h)
		first, second := (hi-lo)/(2*h), (hi-2*mid+lo)/(h*h)
		profit = derivatives{mid, first * a.slope, second*a.slope*a.slope + first*a.second}
	}
	x := float64(p.profile[p.member])
	value := share.second*profit.value + 2*share.slope*profit.slope + share.value*profit.second
	v.worse("∂²(g·Π)/∂s²", value, (math.Abs(profit.value)*(math.Abs(share.value)+1e-3)+1e-9)/(x*x))
	return v, nil
}

// costConvex tests Assumption 3 at a point.
func costConvex(g *game.Game, p point) (v violation, err error) {
	m := g.Members[p.member]
	x := float64(p.profile[p.member])
	var d derivatives
	if bounded, ok := g.Cost.(game.BoundedCost); ok {
		d = atPoint(bounded.Bound(x, x))
	} else {
		d = differences(func(x int64) float64 { return g.Cost.At(float64(x)) }, p.profile[p.member], max(g.Minimum, 1), m.Capacity)
	}
	scale := math.Abs(d.value) + 1
	v.worse("−∂f/∂s", -d.slope, scale/x)
	v.worse("−∂²f/∂s²", -d.second, scale/(x*x))
	if v.quantity != "" {
		v.quantity, v.value = v.quantity[len("−"):], -v.value
	}
	return v, nil
}

// qualityPays tests Assumption 4 at a point, by central differences in ε_n of
// values and slopes.
func qualityPays(g *game.Game, m mechanism.Mechanism, p point) (v violation, err error) {
	const h = 1e-4
	noise := g.Members[p.member].Noise
	lo, hi := max(0, noise-h), min(noise+h, 1-1e-9)
	low, high := withNoise(g, p.member, lo), withNoise(g, p.member, hi)
	x := float64(p.profile[p.member])

	a0, a1 := accuracyAt(low, p), accuracyAt(high, p)
	// A difference of two numbers of size 1 over 2h is exact to about 1e-16/h.
	const blur = 1e-2
	v.worse("∂A/∂ε", (a1.value-a0.value)/(hi-lo), blur)
	v.worse("∂²A/∂s∂ε", (a1.slope-a0.slope)/(hi-lo), blur/x)
	g0, err := shareAt(low, m, p)
	if err != nil {
		return v, err
	}
	g1, err := shareAt(high, m, p)
	if err != nil {
		return v, err
	}
	v.worse("∂g/∂ε", (g1.value-g0.value)/(hi-lo), blur)
	v.worse("∂²g/∂s∂ε", (g1.slope-g0.slope)/(hi-lo), blur/x)
	return v, nil
}

// withNoise returns the game with another noise rate for one member.
func withNoise(g *game.Game, n int, noise float64) *game.Game {
	other := *g
	other.Members = slices.Clone(g.Members)
	other.Members[n].Noise = noise
	return &other
}

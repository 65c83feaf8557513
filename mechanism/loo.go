package mechanism

import (
	"grange/game"
	"grange/interval"
)

// LOO is leave-one-out: I_n = A(N) − A(N∖n), what the model loses without the
// member (eq. 3 of the paper).
type LOO struct{}

// Name returns "LOO".
func (LOO) Name() string { return "LOO" }

// Indices returns A(N) − A(N∖n).
func (LOO) Indices(g *game.Game, s game.Profile) ([]float64, error) {
	total, wrong := g.Totals(s)
	accuracy := g.Accuracy.At(float64(total), wrong)
	indices := make([]float64, len(s))
	for n, x := range s {
		if x == 0 {
			continue
		}
		without := wrong - g.Members[n].Noise*float64(x)
		if total == x {
			without = 0
		}
		indices[n] = accuracy - g.Accuracy.At(float64(total-x), without)
	}
	return indices, nil
}

// Deviate remembers who else holds data.
func (m LOO) Deviate(g *game.Game, s game.Profile, n int, rest game.Rest) (Deviation, error) {
	d := &leaveOneOut{game: g, rest: rest, noise: g.Members[n].Noise, equal: 1 / float64(len(s)), definition: newPlain(m, g, s, n)}
	for i, x := range s {
		if i == n || x == 0 {
			continue
		}
		d.others = append(d.others, holding{points: float64(x), noise: g.Members[i].Noise})
	}
	d.without = g.Accuracy.At(rest.Total, rest.Wrong)
	d.smooth = g.Accuracy.Smooth()
	return d, nil
}

// holding is what another member contributes.
type holding struct{ points, noise float64 }

// leaveOneOut follows one member's share under LOO.
type leaveOneOut struct {
	game       *game.Game
	others     []holding // those with data
	rest       game.Rest // sums over others
	noise      float64   // of the member that deviates
	without    float64   // A(N∖n), which its deviations do not change
	equal      float64
	smooth     bool
	definition *plain // answers where rounding decides
}

func (d *leaveOneOut) Share(x int64) float64 {
	accuracy := &d.game.Accuracy
	total, wrong := d.rest.Total+float64(x), d.rest.Wrong+d.noise*float64(x)
	whole := accuracy.At(total, wrong)
	own := 0.0
	if x != 0 {
		own = whole - d.without
	}
	shared := sharer{negative: d.game.Negative}
	shared.add(own)
	for _, h := range d.others {
		without := wrong - h.noise*h.points
		if total == h.points {
			without = 0
		}
		shared.add(whole - accuracy.At(total-h.points, without))
	}
	if indistinct(shared.sum, whole) {
		return d.definition.Share(x)
	}
	return shared.share(own, d.equal)
}

func (d *leaveOneOut) Bound(lo, hi int64) interval.Jet {
	if !d.smooth {
		return interval.Unknown
	}
	a, b := float64(lo), float64(hi)
	whole := d.game.Accuracy.Reach(d.rest, d.noise, a, b)
	accuracy := whole.Bound()
	own := accuracy.Shift(-d.without)
	clip := d.game.Negative == game.Clip
	if clip {
		own = own.PositivePart()
	}
	sum := own
	for _, h := range d.others {
		left := game.Rest{Total: d.rest.Total - h.points, Wrong: d.rest.Wrong - h.noise*h.points}
		without := d.game.Accuracy.Reach(left, d.noise, a, b)
		index := game.Gain(&whole, &without, h.points, h.noise)
		if clip {
			index = index.PositivePart()
		}
		sum = sum.Add(index)
	}
	if clip && sum.Value.Hi <= 0 { // all indices are clipped: an equal split
		return interval.Constant(d.equal)
	}
	if indistinct(sum.Value.Nearest(), accuracy.Value.Magnitude()) {
		return interval.Unknown
	}
	return own.Div(sum)
}

// sharer adds up indices as game.Shares does.
type sharer struct {
	negative game.Negative
	sum      float64
	nonzero  bool
}

func (s *sharer) add(index float64) {
	if s.negative == game.Clip && index < 0 {
		return
	}
	s.sum += index
	s.nonzero = s.nonzero || index != 0
}

func (s *sharer) share(own, equal float64) float64 {
	if !s.nonzero {
		return equal
	}
	if s.negative == game.Clip && own < 0 {
		return 0
	}
	return own / s.sum
}

package dataset

import (
	"fmt"
	"math"

	"grange/internal/stream"
)

// Noise makes labels wrong. The zero value leaves them as they are.
type Noise struct {
	// Rate is the probability ε_n with which each label is replaced by one of the other classes, all equally likely.
	Rate float64
	// Transition, if not nil, takes the place of Rate: row y holds the probabilities with which a label y becomes each
	// of the classes. Rows add up to 1.
	Transition [][]float64
}

// Validate checks rate and matrix for a number of classes.
func (n Noise) Validate(classes int) error {
	if !(n.Rate >= 0 && n.Rate <= 1) {
		return fmt.Errorf("%w: rate %v, expected 0 to 1", ErrNoise, n.Rate)
	}
	if n.Transition == nil {
		if n.Rate > 0 && classes < 2 {
			return fmt.Errorf("%w: rate %v with %d class, expected at least 2", ErrNoise, n.Rate, classes)
		}
		return nil
	}
	if n.Rate != 0 {
		return fmt.Errorf("%w: both a rate (%v) and a transition matrix, expected one", ErrNoise, n.Rate)
	}
	if len(n.Transition) != classes {
		return fmt.Errorf("%w: transition matrix of %d rows, expected %d, one per class", ErrNoise, len(n.Transition), classes)
	}
	for y, row := range n.Transition {
		if len(row) != classes {
			return fmt.Errorf("%w: row %d of the transition matrix has %d entries, expected %d", ErrNoise, y+1, len(row), classes)
		}
		total := 0.0
		for z, p := range row {
			if !(p >= 0 && p <= 1) {
				return fmt.Errorf("%w: entry %v in row %d, column %d of the transition matrix, expected 0 to 1",
					ErrNoise, p, y+1, z+1)
			}
			total += p
		}
		if math.Abs(total-1) > 1e-6 {
			return fmt.Errorf("%w: row %d of the transition matrix adds up to %v, expected 1", ErrNoise, y+1, total)
		}
	}
	return nil
}

// Share is the share of labels that are wrong on average (ε_n): the rate, or that of the transition matrix when all
// classes are equally frequent.
func (n Noise) Share() float64 {
	if n.Transition == nil {
		return n.Rate
	}
	wrong := 0.0
	for y, row := range n.Transition {
		for z, p := range row {
			if z != y {
				wrong += p
			}
		}
	}
	return wrong / float64(len(n.Transition))
}

// Labels returns the labels that a member's points have in its data: those of the training set, some of them replaced.
//
// Whether a point's label is replaced, and by what, is decided for that point alone, from the seed and the member. It
// does not depend on which other points there are, and with a rising Rate labels once wrong stay wrong in the same way.
func (n Noise) Labels(labels []uint8, points []int32, classes int, seed uint64, member int) ([]uint8, error) {
	if err := n.Validate(classes); err != nil {
		return nil, fmt.Errorf("member %d: %w", member+1, err)
	}
	noisy := make([]uint8, len(points))
	for i, point := range points {
		noisy[i] = labels[point]
	}
	if n.Rate == 0 && n.Transition == nil {
		return noisy, nil
	}
	// One pair of uniforms per point of the training set, whether the point is asked for or not.
	random := stream.New(seed, "dataset label noise", member)
	type pair struct{ whether, which float64 }
	pairs := make([]pair, len(labels))
	for i := range pairs {
		pairs[i] = pair{random.Float64(), random.Float64()}
	}
	for i, point := range points {
		if n.Transition == nil {
			if pairs[point].whether < n.Rate {
				noisy[i] = another(noisy[i], pairs[point].which, classes)
			}
			continue
		}
		noisy[i] = moved(noisy[i], pairs[point].whether, pairs[point].which, n.Transition[noisy[i]])
	}
	return noisy, nil
}

// another is one of the classes other than y: the one u, uniform in [0, 1), falls on, counted on from y.
func another(y uint8, u float64, classes int) uint8 {
	step := 1 + min(int(u*float64(classes-1)), classes-2)
	return uint8((int(y) + step) % classes)
}

// moved is what a label y becomes under a row of a transition matrix. Classes are counted on from y as in another, so
// that a matrix of equal entries beside its diagonal does what the rate does.
func moved(y uint8, whether, which float64, row []float64) uint8 {
	wrong := 0.0
	for z, p := range row {
		if z != int(y) {
			wrong += p
		}
	}
	if whether >= wrong || wrong == 0 {
		return y
	}
	u := which * wrong
	last := y
	for step := 1; step < len(row); step++ {
		z := (int(y) + step) % len(row)
		if row[z] == 0 {
			continue
		}
		last = uint8(z)
		if u -= row[z]; u < 0 {
			break
		}
	}
	return last
}

package dataset

import (
	"fmt"
	"math"
	"slices"

	"grange/internal/stream"
)

// Method is how a Split deals points.
type Method int

const (
	// Uniform deals the training points at random: every member's data looks alike.
	Uniform Method = iota
	// Dirichlet draws for every member how often each class occurs in its data, from a symmetric Dirichlet distribution:
	// the smaller Split.Concentration, the more the members' data differ.
	Dirichlet
)

// String is the name of the method.
func (m Method) String() string {
	switch m {
	case Uniform:
		return "uniform"
	case Dirichlet:
		return "dirichlet"
	}
	return fmt.Sprintf("method %d", int(m))
}

// Split says how training points are dealt to members. The zero value deals them uniformly at random.
type Split struct {
	// Method is how points are dealt. Default: Uniform.
	Method Method
	// Concentration is the parameter α of Dirichlet: above 0, and no default.
	Concentration float64
}

// Partition is who has which training points.
type Partition struct {
	// Points holds the indices of each member's points in the training set, in the order in which the member
	// contributes them.
	Points [][]int32
}

// Deal gives each member as many training points as sizes says (D_n), no point to two members. Sizes may add up to less
// than the training set; the rest is not used. What each member gets, and the order in which it contributes, depends on
// labels, sizes and seed only.
func (s Split) Deal(labels []uint8, classes int, sizes []int, seed uint64) (*Partition, error) {
	total := 0
	for member, size := range sizes {
		if size < 0 {
			return nil, fmt.Errorf("%w: member %d has %d data points, expected 0 or more", ErrSplit, member+1, size)
		}
		if total += size; total > len(labels) || total < 0 {
			return nil, fmt.Errorf("%w: the members have %d data points in all and the training set only %d; lower their "+
				"data, or choose a larger data set", ErrSplit, sum(sizes), len(labels))
		}
	}
	var points [][]int32
	switch s.Method {
	case Uniform:
		points = dealUniform(len(labels), sizes, seed)
	case Dirichlet:
		if !(s.Concentration > 0) || math.IsInf(s.Concentration, 0) {
			return nil, fmt.Errorf("%w: Dirichlet concentration is %v, expected a number above 0", ErrSplit, s.Concentration)
		}
		points = dealDirichlet(labels, classes, sizes, s.Concentration, seed)
	default:
		return nil, fmt.Errorf("%w: unknown %v, expected uniform or dirichlet", ErrSplit, s.Method)
	}
	for member, own := range points {
		random := stream.New(seed, "dataset order of contribution", member)
		slices.Sort(own)
		random.Shuffle(len(own), func(i, j int) { own[i], own[j] = own[j], own[i] })
	}
	return &Partition{Points: points}, nil
}

// sum adds up without overflow: what does not fit is the largest number.
func sum(sizes []int) int {
	total := 0
	for _, size := range sizes {
		if size > math.MaxInt-total {
			return math.MaxInt
		}
		total += size
	}
	return total
}

// Subset returns the points a member contributes: the first of its points in its order. So a larger contribution holds
// all points of a smaller one.
func (p *Partition) Subset(member, contribution int) ([]int32, error) {
	if member < 0 || member >= len(p.Points) {
		return nil, fmt.Errorf("%w: member %d of %d", ErrContribution, member+1, len(p.Points))
	}
	own := p.Points[member]
	if contribution < 0 || contribution > len(own) {
		return nil, fmt.Errorf("%w: member %d contributes %d points, expected 0 to %d, as many as it has",
			ErrContribution, member+1, contribution, len(own))
	}
	return own[:contribution:contribution], nil
}

// Sizes divides a number of points by shares, which must be at least 0 and add up to 1 at most; what they leave is used
// by nobody. Fractions of points are settled by largest remainder, so that shares of 1 in all use every point.
func Sizes(points int, shares []float64) ([]int, error) {
	total := 0.0
	for member, share := range shares {
		if !(share >= 0 && share <= 1) {
			return nil, fmt.Errorf("%w: share of member %d is %v, expected 0 to 1", ErrSplit, member+1, share)
		}
		total += share
	}
	const slack = 1e-9
	if total > 1+slack {
		return nil, fmt.Errorf("%w: the shares add up to %v, expected 1 at most", ErrSplit, total)
	}
	sizes := make([]int, len(shares))
	remainders := make([]float64, len(shares))
	order := make([]int, len(shares))
	left := min(points, int(math.Floor(total*float64(points)+slack*float64(points)+slack)))
	for member, share := range shares {
		whole, fraction := math.Modf(share * float64(points))
		sizes[member], remainders[member], order[member] = int(whole), fraction, member
		left -= int(whole)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case remainders[a] > remainders[b]:
			return -1
		case remainders[a] < remainders[b]:
			return 1
		}
		return a - b
	})
	for _, member := range order[:max(0, min(left, len(order)))] {
		sizes[member]++
	}
	return sizes, nil
}

// dealUniform cuts one random permutation into pieces.
func dealUniform(points int, sizes []int, seed uint64) [][]int32 {
	deck := make([]int32, points)
	for i := range deck {
		deck[i] = int32(i)
	}
	random := stream.New(seed, "dataset uniform split")
	random.Shuffle(points, func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	hands := make([][]int32, len(sizes))
	for member, size := range sizes {
		hands[member] = slices.Clone(deck[:size])
		deck = deck[size:]
	}
	return hands
}

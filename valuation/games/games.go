// Package games has cooperative games whose values are known in closed form.
// They are what the methods of package valuation are tested on.
package games

import (
	"context"
	"math/bits"

	"grange/valuation"
)

// Closed is a game with its known values.
type Closed struct {
	Name    string
	Members int
	Worth   func(valuation.Coalition) float64 // v(S), with v(∅) = 0
	Shapley []float64
	// Nucleolus is nil where no closed form is known.
	Nucleolus []float64
}

// Game returns the game as one that can be valued.
func (c *Closed) Game() *valuation.Game {
	return &valuation.Game{
		Members: c.Members,
		Utility: valuation.UtilityFunc(func(_ context.Context, s valuation.Coalition) (float64, error) { return c.Worth(s), nil }),
	}
}

// Table returns the worth of every coalition.
func (c *Closed) Table() valuation.Table {
	t := make(valuation.Table, 1<<c.Members)
	for s := range t {
		t[s] = c.Worth(valuation.Coalition(s))
	}
	return t
}

// Additive is the game in which everybody brings something of their own.
func Additive(worths []float64) *Closed {
	return &Closed{
		Name: "additive", Members: len(worths),
		Worth: func(s valuation.Coalition) float64 {
			sum := 0.0
			for n := range s.Members() {
				sum += worths[n]
			}
			return sum
		},
		Shapley: worths, Nucleolus: worths,
	}
}

// Symmetric is the game in which only the number of members counts: worth[k]
// is that of k of them, and worth[0] is 0. Everybody gets the same.
func Symmetric(worth []float64) *Closed {
	n := len(worth) - 1
	values := make([]float64, n)
	for i := range values {
		values[i] = worth[n] / float64(n)
	}
	return &Closed{
		Name: "symmetric", Members: n,
		Worth:   func(s valuation.Coalition) float64 { return worth[s.Size()] },
		Shapley: values, Nucleolus: values,
	}
}

// Airport is the cost game of a runway (Littlechild & Owen 1973): v(S) is the
// largest need in S. Needs ascend. The part of the runway between two
// neighbouring needs is shared equally by everyone who needs it.
func Airport(needs []float64) *Closed {
	n := len(needs)
	shapley := make([]float64, n)
	sum, last := 0.0, 0.0
	for i, need := range needs {
		sum += (need - last) / float64(n-i)
		shapley[i], last = sum, need
	}
	return &Closed{
		Name: "airport", Members: n,
		Worth: func(s valuation.Coalition) float64 {
			if s == 0 {
				return 0
			}
			return needs[bits.Len64(uint64(s))-1]
		},
		Shapley: shapley,
	}
}

// Savings is what a runway's users save by building one together instead of
// one each: v(S) = Σ needs − max need. Needs ascend. Its nucleolus is the needs
// less the fees of Littlechild's rule (1974), its Shapley value the needs less
// the fees of Airport.
func Savings(needs []float64) *Closed {
	n := len(needs)
	airport := Airport(needs)
	shapley, nucleolus := make([]float64, n), make([]float64, n)
	fees := littlechild(needs)
	for i, need := range needs {
		shapley[i] = need - airport.Shapley[i]
		nucleolus[i] = need - fees[i]
	}
	return &Closed{
		Name: "savings", Members: n,
		Worth: func(s valuation.Coalition) float64 {
			sum := -airport.Worth(s)
			for i := range s.Members() {
				sum += needs[i]
			}
			return sum
		},
		Shapley: shapley, Nucleolus: nucleolus,
	}
}

// littlechild returns the nucleolus of the airport cost game: in every step
// the users up to some i pay the same least fee, which the cheapest group
// sets.
func littlechild(needs []float64) []float64 {
	n := len(needs)
	fees := make([]float64, n)
	paid, done := 0.0, 0
	for done < n {
		best, last := (needs[n-1]-paid)/float64(n-done), n-1
		for i := done; i < n-1; i++ {
			if fee := (needs[i] - paid) / float64(i-done+2); fee <= best {
				best, last = fee, i
			}
		}
		for i := done; i <= last; i++ {
			fees[i] = best
			paid += best
		}
		done = last + 1
	}
	return fees
}

// Gloves is the game in which a left and a right glove together are worth 1.
// The first members hold left gloves, the others right ones. The value of a
// holder is summed over the numbers of gloves that came before theirs.
func Gloves(left, right int) *Closed {
	n := left + right
	values := make([]float64, n)
	for i := range values {
		same, other := left, right
		if i >= left {
			same, other = right, left
		}
		values[i] = glove(same, other)
	}
	c := &Closed{
		Name: "gloves", Members: n,
		Worth: func(s valuation.Coalition) float64 {
			lefts := (s & valuation.Everyone(left)).Size()
			return float64(min(lefts, s.Size()-lefts))
		},
		Shapley: values,
	}
	if left == 1 && right > 1 || right == 1 && left > 1 {
		c.Nucleolus = make([]float64, n)
		if left == 1 {
			c.Nucleolus[0] = 1
		} else {
			c.Nucleolus[n-1] = 1
		}
	}
	return c
}

// glove is the chance that more gloves of the other kind than of one's own
// came before.
func glove(same, other int) float64 {
	n := same + other
	chance := 0.0
	for mine := range same {
		for theirs := mine + 1; theirs <= other; theirs++ {
			// C(same−1, mine)·C(other, theirs)/C(n−1, mine+theirs)/n
			chance += choose(same-1, mine) * choose(other, theirs) / choose(n-1, mine+theirs) / float64(n)
		}
	}
	return chance
}

func choose(n, k int) float64 {
	c := 1.0
	for i := range k {
		c = c * float64(n-i) / float64(i+1)
	}
	return c
}

// Voting is the weighted majority game: a coalition is worth 1 when its votes
// reach the quota. The values are counted by dynamic programming over the
// number and the votes of those who came before.
func Voting(votes []int, quota int) *Closed {
	n := len(votes)
	values := make([]float64, n)
	for i := range values {
		values[i] = pivot(votes, quota, i)
	}
	return &Closed{
		Name: "voting", Members: n,
		Worth: func(s valuation.Coalition) float64 {
			sum := 0
			for i := range s.Members() {
				sum += votes[i]
			}
			if sum >= quota {
				return 1
			}
			return 0
		},
		Shapley: values,
	}
}

// pivot is the chance that member i's votes are those which reach the quota.
func pivot(votes []int, quota, i int) float64 {
	n := len(votes)
	ways := make([][]float64, n) // ways[k][w]: coalitions of k others with w < quota votes
	for k := range ways {
		ways[k] = make([]float64, quota)
	}
	ways[0][0] = 1
	for j, w := range votes {
		if j == i {
			continue
		}
		for k := n - 2; k >= 0; k-- {
			for sum := quota - 1 - w; sum >= 0; sum-- {
				ways[k+1][sum+w] += ways[k][sum]
			}
		}
	}
	chance := 0.0
	for k := range ways {
		count := 0.0
		for sum := max(0, quota-votes[i]); sum < quota; sum++ {
			count += ways[k][sum]
		}
		chance += count / (float64(n) * choose(n-1, k))
	}
	return chance
}

// All returns one game of each kind, small enough for every exact method.
func All() []*Closed {
	return []*Closed{
		Additive([]float64{3, -1, 0, 0.25, 7, 1e-3, 2, 5, 0.5, 4}),
		Symmetric([]float64{0, 1, 1.5, 4, 4.25, 6, 6.5, 6.75, 8, 8.5, 9}),
		Airport([]float64{1, 1, 2, 3, 3.5, 4, 6, 6, 7, 10}),
		Savings([]float64{1, 1.5, 2, 3, 3.5, 4, 6, 6.25, 7, 10}),
		Gloves(4, 6),
		Gloves(1, 2),
		Voting([]int{9, 8, 7, 5, 5, 4, 3, 2, 2, 1}, 24),
	}
}

package game

import "slices"

// blockSize is how many members share a partial sum in a State.
const blockSize = 128

// State is a profile that changes one member at a time, with partial sums that
// follow it: for 10,000 members, what the others hold takes about 200
// additions instead of 10,000. The sums are a function of the profile alone,
// not of how it came about. Reading is safe from several goroutines.
type State struct {
	game    *Game
	profile Profile
	total   []int64
	wrong   []float64
}

// Rest is what all members but one hold together.
type Rest struct {
	Total float64 // Σ s
	Wrong float64 // Σ ε·s
}

// NewState starts at a copy of s.
func NewState(g *Game, s Profile) *State {
	blocks := (len(s) + blockSize - 1) / blockSize
	state := &State{game: g, profile: slices.Clone(s), total: make([]int64, blocks), wrong: make([]float64, blocks)}
	for b := range blocks {
		state.total[b], state.wrong[b] = state.sum(b, -1)
	}
	return state
}

// Profile returns the current profile, which the caller must not change.
func (s *State) Profile() Profile { return s.profile }

// Set changes one contribution.
func (s *State) Set(n int, x int64) {
	s.profile[n] = x
	b := n / blockSize
	s.total[b], s.wrong[b] = s.sum(b, -1)
}

// Without returns what all but member n hold.
func (s *State) Without(n int) Rest {
	var total int64
	var wrong float64
	for b := range s.total {
		t, w := s.total[b], s.wrong[b]
		if b == n/blockSize {
			t, w = s.sum(b, n)
		}
		total += t
		wrong += w
	}
	return Rest{Total: float64(total), Wrong: wrong}
}

// sum adds up one block, leaving out member except.
func (s *State) sum(block, except int) (total int64, wrong float64) {
	from := block * blockSize
	for n := from; n < min(from+blockSize, len(s.profile)); n++ {
		if n != except {
			total += s.profile[n]
			wrong += s.game.Members[n].Noise * float64(s.profile[n])
		}
	}
	return total, wrong
}

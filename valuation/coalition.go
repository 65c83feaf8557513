package valuation

import (
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// MaxMembers is the largest number of members a Coalition can hold.
const MaxMembers = 64

// Coalition is a set of members S ⊆ N: bit n is set when member n belongs.
type Coalition uint64

// Everyone returns the coalition N of all members. It panics when there are
// more than MaxMembers; see CheckMembers.
func Everyone(members int) Coalition {
	return Coalition(^uint64(0) >> (MaxMembers - members))
}

// CoalitionOf returns the coalition of the given members.
func CoalitionOf(members ...int) Coalition {
	var c Coalition
	for _, n := range members {
		c = c.With(n)
	}
	return c
}

// Has reports whether member n belongs to c.
func (c Coalition) Has(n int) bool { return c>>n&1 != 0 }

// With returns c ∪ {n}.
func (c Coalition) With(n int) Coalition { return c | 1<<n }

// Without returns c ∖ {n}.
func (c Coalition) Without(n int) Coalition { return c &^ (1 << n) }

// Size returns |c|.
func (c Coalition) Size() int { return bits.OnesCount64(uint64(c)) }

// Members yields the members of c in ascending order.
func (c Coalition) Members() iter.Seq[int] {
	return func(yield func(int) bool) {
		for rest := uint64(c); rest != 0; rest &= rest - 1 {
			if !yield(bits.TrailingZeros64(rest)) {
				return
			}
		}
	}
}

// String returns the members' numbers, counted from 0, such as "{0, 3}".
func (c Coalition) String() string { return c.Label(nil) }

// Label returns the members' names, such as "{north, south}". A member
// without a name is shown by its number.
func (c Coalition) Label(names []string) string {
	words := make([]string, 0, c.Size())
	for n := range c.Members() {
		if n < len(names) {
			words = append(words, names[n])
		} else {
			words = append(words, strconv.Itoa(n))
		}
	}
	return "{" + strings.Join(words, ", ") + "}"
}

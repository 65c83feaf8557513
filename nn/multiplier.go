package nn

import "fmt"

// Multiplier multiplies plain matrices with one of the kernels. It keeps its
// workspace from call to call and is not safe for concurrent use.
type Multiplier struct{ engine *engine }

// NewMultiplier returns a Multiplier that uses the kernel called name; empty
// picks the fastest that this CPU has.
func NewMultiplier(name string) (*Multiplier, error) {
	k, err := kernelsFor(name)
	if err != nil {
		return nil, err
	}
	return &Multiplier{newEngine(k)}, nil
}

// Multiply is c ← a·b, for a of rows×depth and b of depth×columns, all stored
// row by row.
func (m *Multiplier) Multiply(c, a, b []float32, rows, depth, columns int) {
	if len(a) != rows*depth || len(b) != depth*columns || len(c) != rows*columns || rows*depth*columns == 0 {
		panic(fmt.Sprintf("nn: product of %d and %d values into %d for %d×%d×%d",
			len(a), len(b), len(c), rows, depth, columns))
	}
	m.engine.reserve(depth, columns)
	m.engine.pack(operand{b, columns, 1}, depth, columns)
	m.engine.multiply(product{
		rows: rows, depth: depth, columns: columns,
		a: operand{a, depth, 1}, c: c, cRow: columns,
	})
}

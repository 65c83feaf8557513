package valuation_test

import (
	"fmt"
	"testing"

	"grange/valuation"
)

// BenchmarkShapley is the exact Shapley value from a table of 2^N worths.
func BenchmarkShapley(b *testing.B) {
	for _, members := range []int{10, 16, 20, 24} {
		b.Run(fmt.Sprintf("N=%d", members), func(b *testing.B) {
			table := make(valuation.Table, 1<<members)
			for c := range table {
				table[c] = float64(uint32(c)*2654435761) / (1 << 32)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := valuation.Shapley(table); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

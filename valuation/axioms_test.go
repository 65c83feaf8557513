package valuation_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"grange/valuation"
)

// drawTable draws the worths of up to 2^6 coalitions.
func drawTable(t *rapid.T, members int, label string) valuation.Table {
	return rapid.SliceOfN(rapid.Float64Range(-10, 10), 1<<members, 1<<members).Draw(t, label)
}

// semivalues are the exact methods that are linear in the worths.
var semivalues = map[string]func(valuation.Table) ([]float64, error){
	"shapley":       valuation.Shapley,
	"banzhaf":       valuation.Banzhaf,
	"beta":          func(t valuation.Table) ([]float64, error) { return valuation.Beta(t, 4, 1.5) },
	"leave-one-out": valuation.LeaveOneOut,
}

func must(t interface{ Fatal(...any) }, values []float64, err error) []float64 {
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func sum(values []float64) float64 {
	s := 0.0
	for _, v := range values {
		s += v
	}
	return s
}

func TestEfficiency(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "members")
		table := drawTable(t, n, "worths")
		values, err := valuation.Shapley(table)
		if got, want := sum(must(t, values, err)), table[len(table)-1]-table[0]; math.Abs(got-want) > 1e-12 {
			t.Errorf("the values add up to %v, want %v", got, want)
		}
	})
}

// The definition, an average over all orders, must agree with the sums over
// coalitions.
func TestShapleyIsTheMeanOverOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "members")
		table := drawTable(t, n, "worths")
		want := make([]float64, n)
		orders := 0.0
		var arrive func(valuation.Coalition)
		var path []int
		arrive = func(here valuation.Coalition) {
			if here == valuation.Everyone(n) {
				orders++
				c := valuation.Coalition(0)
				for _, i := range path {
					want[i] += table[c.With(i)] - table[c]
					c = c.With(i)
				}
				return
			}
			for i := range n {
				if !here.Has(i) {
					path = append(path, i)
					arrive(here.With(i))
					path = path[:len(path)-1]
				}
			}
		}
		arrive(0)
		values, err := valuation.Shapley(table)
		for i, v := range must(t, values, err) {
			if math.Abs(v-want[i]/orders) > 1e-11 {
				t.Errorf("member %d: %v, by orders %v", i, v, want[i]/orders)
			}
		}
	})
}

func TestSymmetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "members")
		table := drawTable(t, n, "worths")
		// Members 0 and 1 are made interchangeable.
		for c := range table {
			if c&3 == 2 {
				table[c] = table[c^3]
			}
		}
		for name, method := range semivalues {
			values, err := method(table)
			if v := must(t, values, err); math.Abs(v[0]-v[1]) > 1e-12 {
				t.Errorf("%s: %v and %v for members who do the same", name, v[0], v[1])
			}
		}
		values, err := valuation.Nucleolus(table)
		if v := must(t, values, err); math.Abs(v[0]-v[1]) > 1e-7 {
			t.Errorf("nucleolus: %v and %v for members who do the same", v[0], v[1])
		}
	})
}

func TestNullPlayer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "members")
		null := rapid.IntRange(0, n-1).Draw(t, "null")
		table := drawTable(t, n, "worths")
		for c := range table {
			table[c] = table[valuation.Coalition(c).Without(null)]
		}
		for name, method := range semivalues {
			values, err := method(table)
			if v := must(t, values, err)[null]; v != 0 {
				t.Errorf("%s: %v for a member who changes nothing", name, v)
			}
		}
	})
}

func TestAdditivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "members")
		a, b := drawTable(t, n, "one"), drawTable(t, n, "other")
		both := make(valuation.Table, len(a))
		for c := range both {
			both[c] = a[c] + b[c]
		}
		for name, method := range semivalues {
			va, errA := method(a)
			vb, errB := method(b)
			vc, errC := method(both)
			va, vb, vc = must(t, va, errA), must(t, vb, errB), must(t, vc, errC)
			for i := range n {
				if math.Abs(va[i]+vb[i]-vc[i]) > 1e-11 {
					t.Errorf("%s: member %d gets %v and %v apart, %v together", name, i, va[i], vb[i], vc[i])
				}
			}
		}
	})
}

// Moving a little from the nucleolus, in any direction, must not make the
// sorted complaints smaller.
func TestNucleolusIsTheLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(t, "members")
		table := drawTable(t, n, "worths")
		values, epsilon, err := valuation.LeastCore(table)
		values = must(t, values, err)
		if got, want := sum(values), table[len(table)-1]-table[0]; math.Abs(got-want) > 1e-8 {
			t.Fatalf("the payment adds up to %v, want %v", got, want)
		}
		best := complaints(table, values)
		if math.Abs(best[0]-epsilon) > 1e-7 {
			t.Errorf("the largest complaint is %v, the least core's %v", best[0], epsilon)
		}
		from, to := rapid.IntRange(0, n-1).Draw(t, "from"), rapid.IntRange(0, n-1).Draw(t, "to")
		step := rapid.Float64Range(0.01, 3).Draw(t, "step")
		if from == to {
			return
		}
		values[from] -= step
		values[to] += step
		for i, worse := range complaints(table, values) {
			if worse > best[i]+1e-7 {
				return
			}
			if worse < best[i]-1e-7 {
				t.Fatalf("complaint %d falls from %v to %v when %v moves", i, best[i], worse, step)
			}
		}
	})
}

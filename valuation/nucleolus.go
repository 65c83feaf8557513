package valuation

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
)

// ProgramLimit is the largest number of members for which LeastCore and
// Nucleolus solve their linear programs, which have 2^N variables.
const ProgramLimit = 12

// LeastCore returns a payment x of v(N) which makes the largest complaint of
// any coalition, ε = max over S of v(S) − x(S), as small as possible, and that
// ε. The game has a core when ε ≤ 0. Of the many payments which may do, it
// returns the nucleolus. Worths count from v(∅).
func LeastCore(t Table) (values []float64, epsilon float64, err error) {
	values, levels, err := nucleolus(t)
	if err != nil {
		return nil, 0, err
	}
	if len(levels) > 0 {
		epsilon = levels[0]
	}
	return values, epsilon, nil
}

// Nucleolus returns the payment x of v(N) whose complaints v(S) − x(S), sorted
// from the largest down, are lexicographically smallest (Schmeidler 1969).
// Worths count from v(∅).
func Nucleolus(t Table) ([]float64, error) {
	values, _, err := nucleolus(t)
	return values, err
}

// nucleolus minimises the largest complaint, fixes the coalitions whose
// complaint is as large in every solution, and goes on with the others until
// the fixed ones determine the payment. It returns the levels of complaint.
//
// Each step solves the dual program, in which coalitions have weights λ ≥ 0
// with Σ λ = 1: it has at most N rows, and where λ_S > 0 the complaint of S is
// at the level in every solution, which is just what has to be fixed next.
func nucleolus(t Table) (values, levels []float64, err error) {
	if err := t.check(); err != nil {
		return nil, nil, err
	}
	n := t.Members()
	if n > ProgramLimit {
		return nil, nil, &TooLargeError{Members: n, Limit: ProgramLimit}
	}
	scale := 0.0
	for _, v := range t {
		scale = max(scale, math.Abs(v-t[0]))
	}
	if scale == 0 {
		return make([]float64, n), []float64{0}, nil
	}
	worth := make([]float64, len(t))
	for c, v := range t {
		worth[c] = (v - t[0]) / scale
	}
	fixed := newEquations(n)
	fixed.add(Everyone(n), worth[len(worth)-1])
	for fixed.rank() < n {
		level, tight, err := leastComplaint(worth, fixed)
		if err != nil {
			return nil, nil, err
		}
		levels = append(levels, level*scale)
		before := fixed.rank()
		for _, c := range tight {
			fixed.add(c, worth[c]-level)
		}
		if fixed.rank() == before {
			return nil, nil, fmt.Errorf("%w: no coalition could be fixed at level %d of the nucleolus", ErrProgram, len(levels))
		}
	}
	values = fixed.solve()
	if err := checkLargest(worth, values, levels, scale); err != nil {
		return nil, nil, err
	}
	for i := range values {
		values[i] *= scale
	}
	return values, levels, nil
}

// checkLargest compares the largest complaint at the payment, by plain
// enumeration, with the optimum of the first linear program.
func checkLargest(worth, values, levels []float64, scale float64) error {
	if len(levels) == 0 {
		return nil
	}
	largest := math.Inf(-1)
	for c := 1; c < len(worth)-1; c++ {
		complaint := worth[c]
		for n := range Coalition(c).Members() {
			complaint -= values[n]
		}
		largest = max(largest, complaint)
	}
	if math.Abs(largest-levels[0]/scale) > 1e-9 {
		return fmt.Errorf("%w: the largest complaint is %g, its optimum %g", ErrProgram, largest*scale, levels[0])
	}
	return nil
}

// weightTolerance is below what a weight λ is taken for zero.
const weightTolerance = 1e-9

// leastComplaint minimises the largest complaint of the coalitions that the
// equations leave open, and returns the coalitions with positive weight.
func leastComplaint(worth []float64, fixed *equations) (level float64, tight []Coalition, err error) {
	base := fixed.solve()
	directions := fixed.complement()
	rows := len(directions) + 1
	var open []Coalition
	var columns [][]float64
	var cost []float64
	for s := 1; s < len(worth)-1; s++ {
		c := Coalition(s)
		column := make([]float64, rows)
		column[rows-1] = 1
		free := false
		for k, z := range directions {
			for n := range c.Members() {
				column[k] += z[n]
			}
			if math.Abs(column[k]) < weightTolerance {
				column[k] = 0
			}
			free = free || column[k] != 0
		}
		if !free {
			continue
		}
		complaint := worth[s]
		for n := range c.Members() {
			complaint -= base[n]
		}
		open, columns, cost = append(open, c), append(columns, column), append(cost, -complaint)
	}
	a := mat.NewDense(rows, len(open), nil)
	for j, column := range columns {
		for k, x := range column {
			a.Set(k, j, x)
		}
	}
	b := make([]float64, rows)
	b[rows-1] = 1
	weights, err := solveProgram(cost, a, b)
	if err != nil {
		return 0, nil, err
	}
	for j, w := range weights {
		if w > weightTolerance {
			tight = append(tight, open[j])
			level -= w * cost[j]
		}
	}
	return level, tight, nil
}

// solveProgram minimises cost·λ with Aλ = b and λ ≥ 0. Nearly all of b is
// zero, so that many corners coincide; when the solver trips over that, b is
// moved a little and the corner it finds is computed again for the true b.
func solveProgram(cost []float64, a *mat.Dense, b []float64) ([]float64, error) {
	_, plain, err := lp.Simplex(cost, a, b, 1e-12, nil)
	if err == nil && feasible(a, b, plain) {
		return plain, nil
	}
	for _, shift := range []float64{1e-7, 1e-6, 1e-5} {
		moved := make([]float64, len(b))
		for k := range b {
			moved[k] = b[k] + shift*(1+math.Mod(float64(k+1)*math.Phi, 1))
		}
		_, corner, shiftErr := lp.Simplex(cost, a, moved, 1e-12, nil)
		if shiftErr != nil {
			err = shiftErr
			continue
		}
		if weights, ok := corrected(a, b, corner); ok {
			return weights, nil
		}
	}
	return nil, fmt.Errorf("%w: %v", ErrProgram, err)
}

// corrected solves Aλ = b on the columns that the corner uses.
func corrected(a *mat.Dense, b, corner []float64) ([]float64, bool) {
	rows, _ := a.Dims()
	var used []int
	for j, x := range corner {
		if x > 0 {
			used = append(used, j)
		}
	}
	if len(used) != rows {
		return nil, false
	}
	basis := mat.NewDense(rows, rows, nil)
	for k, j := range used {
		for i := range rows {
			basis.Set(i, k, a.At(i, j))
		}
	}
	var solved mat.VecDense
	if err := solved.SolveVec(basis, mat.NewVecDense(rows, b)); err != nil {
		return nil, false
	}
	weights := make([]float64, len(corner))
	for k, j := range used {
		weights[j] = solved.AtVec(k)
	}
	return weights, feasible(a, b, weights)
}

// feasible checks Aλ = b and λ ≥ 0.
func feasible(a *mat.Dense, b, weights []float64) bool {
	var product mat.VecDense
	product.MulVec(a, mat.NewVecDense(len(weights), weights))
	for i, x := range b {
		if !(math.Abs(product.AtVec(i)-x) < weightTolerance) {
			return false
		}
	}
	for _, w := range weights {
		if !(w > -weightTolerance) {
			return false
		}
	}
	return true
}

package valuation

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// equations are independent conditions x(S) = c on a payment x. Beside the
// conditions it keeps an orthonormal basis of the directions they fix.
type equations struct {
	n          int
	coalitions []Coalition
	right      []float64
	basis      [][]float64
}

func newEquations(n int) *equations { return &equations{n: n} }

func (e *equations) rank() int { return len(e.coalitions) }

// add takes the condition x(c) = right, unless it follows from the others.
func (e *equations) add(c Coalition, right float64) {
	direction := make([]float64, e.n)
	for i := range c.Members() {
		direction[i] = 1
	}
	if !orthogonalise(direction, e.basis) {
		return
	}
	e.coalitions = append(e.coalitions, c)
	e.right = append(e.right, right)
	e.basis = append(e.basis, direction)
}

// complement returns an orthonormal basis of the directions left free.
func (e *equations) complement() [][]float64 {
	all := append([][]float64(nil), e.basis...)
	for i := range e.n {
		direction := make([]float64, e.n)
		direction[i] = 1
		if orthogonalise(direction, all) {
			all = append(all, direction)
		}
	}
	return all[len(e.basis):]
}

// solve returns the smallest payment which meets the conditions; it is the
// only one when there are n of them.
func (e *equations) solve() []float64 {
	rows := len(e.coalitions)
	a := mat.NewDense(rows, e.n, nil)
	for k, c := range e.coalitions {
		for i := range c.Members() {
			a.Set(k, i, 1)
		}
	}
	var x mat.VecDense
	// The rows are independent: orthogonalise saw to it.
	if err := x.SolveVec(a, mat.NewVecDense(rows, e.right)); err != nil {
		panic("valuation: dependent equations: " + err.Error())
	}
	return x.RawVector().Data
}

// orthogonalise takes the basis out of v, twice for accuracy, and scales v to
// length one. It reports false when nothing is left.
func orthogonalise(v []float64, basis [][]float64) bool {
	for range 2 {
		for _, u := range basis {
			dot := 0.0
			for i := range v {
				dot += u[i] * v[i]
			}
			for i := range v {
				v[i] -= dot * u[i]
			}
		}
	}
	length := 0.0
	for _, x := range v {
		length += x * x
	}
	if length < 1e-18 {
		return false
	}
	length = math.Sqrt(length)
	for i := range v {
		v[i] /= length
	}
	return true
}

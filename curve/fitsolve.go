package curve

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize"
)

// problem is one form, one set of points.
type problem struct {
	shape  shape
	points []Point
	top    float64   // the curve must rise on [0, top]
	scale  float64   // largest S: columns are computed as they are, then scaled to norm 1
	lo     []float64 // box of the non-linear parameters
	hi     []float64
	starts [][]float64
	gamma  bool // some point has wrong labels, so γ can be estimated
}

// solution is an optimum of a problem: the non-linear parameters, the
// coefficients (those of the basis, then γ), and which coefficients are held
// at zero by a constraint.
type solution struct {
	theta []float64
	coef  []float64
	held  []bool
	rss   float64
}

func newProblem(sh shape, f Fitter, points []Point) *problem {
	p := &problem{shape: sh}
	lo := math.Inf(1)
	for _, point := range points {
		if point.Weight == 0 {
			point.Weight = 1
		}
		p.points = append(p.points, point)
		p.scale = max(p.scale, point.Total)
		if point.Total > 0 {
			lo = min(lo, point.Total)
		}
		p.gamma = p.gamma || point.WrongShare > 0
	}
	p.top = max(p.scale, f.Range)
	p.starts = sh.search(lo, p.scale)
	for _, values := range p.starts {
		p.lo = append(p.lo, values[0])
		p.hi = append(p.hi, values[len(values)-1])
	}
	return p
}

// columns is the number of linear coefficients, γ included.
func (p *problem) columns() int {
	if p.gamma {
		return p.shape.linear + 1
	}
	return p.shape.linear
}

// parameters is the number of free parameters when no constraint binds.
func (p *problem) parameters() int { return p.columns() + len(p.lo) }

// row writes the basis at one point, −R last.
func (p *problem) row(theta []float64, point Point, out []float64) {
	p.shape.basis(theta, p.top, point.Total, out)
	if p.gamma {
		out[p.shape.linear] = -point.WrongShare
	}
}

// project solves for the coefficients given the non-linear parameters. The
// problem is convex, so the best feasible solution over all sets of held
// coefficients is the constrained optimum; the sets are tried from the
// smallest, and the unconstrained solution ends the search when it is
// feasible.
func (p *problem) project(theta []float64) (solution, bool) {
	n, k := len(p.points), p.columns()
	design := mat.NewDense(n, k, nil)
	target := mat.NewVecDense(n, nil)
	row := make([]float64, k)
	for i, point := range p.points {
		root := math.Sqrt(point.weight())
		p.row(theta, point, row)
		for j, x := range row {
			design.Set(i, j, root*x)
		}
		target.SetVec(i, root*point.Accuracy)
	}
	best := solution{rss: math.Inf(1)}
	for _, held := range heldSets(k) {
		coef, rss, ok := leastSquares(design, target, held)
		if !ok || rss >= best.rss || slices.ContainsFunc(coef[1:], func(c float64) bool { return c < 0 }) {
			continue
		}
		best = solution{theta: slices.Clone(theta), coef: coef, held: held, rss: rss}
		if !slices.Contains(held, true) {
			break
		}
	}
	return best, !math.IsInf(best.rss, 1)
}

// heldSets lists the subsets of coefficients 1 … k−1, the empty one first.
func heldSets(k int) [][]bool {
	var sets [][]bool
	for bits := range 1 << (k - 1) {
		held := make([]bool, k)
		for j := 1; j < k; j++ {
			held[j] = bits>>(j-1)&1 == 1
		}
		sets = append(sets, held)
	}
	return sets
}

// leastSquares solves for the coefficients that are not held at zero, by QR on
// columns scaled to norm one.
func leastSquares(design *mat.Dense, target *mat.VecDense, held []bool) (coef []float64, rss float64, ok bool) {
	n, _ := design.Dims()
	var free []int
	for j, h := range held {
		if !h {
			free = append(free, j)
		}
	}
	sub := mat.NewDense(n, len(free), nil)
	norms := make([]float64, len(free))
	column := make([]float64, n)
	for c, j := range free {
		mat.Col(column, j, design)
		norms[c] = mat.Norm(mat.NewVecDense(n, column), 2)
		if !(norms[c] > 0) || math.IsInf(norms[c], 1) {
			return nil, 0, false
		}
		for i, x := range column {
			sub.Set(i, c, x/norms[c])
		}
	}
	var qr mat.QR
	qr.Factorize(sub)
	if qr.Cond() > 1e12 {
		return nil, 0, false
	}
	solved := mat.NewVecDense(len(free), nil)
	if qr.SolveVecTo(solved, false, target) != nil {
		return nil, 0, false
	}
	fitted := mat.NewVecDense(n, nil)
	fitted.MulVec(sub, solved)
	for i := range n {
		e := target.AtVec(i) - fitted.AtVec(i)
		rss += e * e
	}
	coef = make([]float64, len(held))
	for c, j := range free {
		coef[j] = solved.AtVec(c) / norms[c]
	}
	return coef, rss, true
}

// refinements is how many of the best grid points are refined.
const refinements = 3

// solve searches the non-linear parameters.
func (p *problem) solve() (solution, error) {
	var found []solution
	for _, theta := range grid(p.starts) {
		if s, ok := p.project(theta); ok {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return solution{}, fmt.Errorf("curve: no %s curve fits these %d points", p.shape.form, len(p.points))
	}
	slices.SortStableFunc(found, func(a, b solution) int {
		switch {
		case a.rss < b.rss:
			return -1
		case a.rss > b.rss:
			return 1
		}
		return 0
	})
	best := found[0]
	for _, start := range found[:min(refinements, len(found))] {
		if s, ok := p.refine(start); ok && s.rss < best.rss {
			best = s
		}
	}
	return best, nil
}

func (p *problem) refine(start solution) (solution, bool) {
	objective := func(theta []float64) float64 {
		for j, t := range theta {
			if !(t >= p.lo[j] && t <= p.hi[j]) {
				return math.Inf(1)
			}
		}
		s, ok := p.project(theta)
		if !ok {
			return math.Inf(1)
		}
		return s.rss
	}
	step := (p.hi[0] - p.lo[0]) / float64(len(p.starts[0])-1)
	result, err := optimize.Minimize(
		optimize.Problem{Func: objective}, start.theta,
		&optimize.Settings{
			MajorIterations: 200,
			Converger:       &optimize.FunctionConverge{Relative: 1e-10, Absolute: 1e-18, Iterations: 12},
		},
		&optimize.NelderMead{SimplexSize: step / 2},
	)
	if result == nil || (err != nil && math.IsInf(result.F, 1)) {
		return solution{}, false
	}
	return p.project(result.X)
}

// grid lists all combinations of the starting values.
func grid(axes [][]float64) [][]float64 {
	points := [][]float64{nil}
	for _, axis := range axes {
		var next [][]float64
		for _, point := range points {
			for _, x := range axis {
				next = append(next, append(slices.Clone(point), x))
			}
		}
		points = next
	}
	return points
}

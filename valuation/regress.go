package valuation

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// model is a family of games for the gaps y(S) = v(S) − v(N∖S). With signs
// s_i = ±1 for members in and outside S, its terms are s_i·t^l, where t grows
// with the distance of |S| from N/2, and s_i·s_j·s_k. Terms of even degree
// would cancel in the gap.
type model struct {
	powers    int       // l < powers
	triples   bool      // with s_i·s_j·s_k
	penalties []float64 // on squared coefficients of triples, to choose from
}

// smallPenalty keeps equations with dependent terms solvable.
const smallPenalty = 1e-6

// models lists those of the given degrees with up to a number of terms.
func models(n, from, to, terms int) []model {
	var list []model
	for degree := from; degree <= to; degree++ {
		switch degree {
		case 1:
			list = append(list, model{powers: 1})
		case 2:
			list = append(list, model{powers: 2}, model{powers: 3})
		case 3:
			if count := n * (n - 1) * (n - 2) / 6; count > 0 && count <= min(terms, 2000) {
				list = append(list, model{powers: 2, triples: true, penalties: []float64{300, 30, 3, 0.3}})
			}
		}
	}
	return list
}

// terms counts the model's terms, without the classes' own means.
func (m model) terms(n int) int {
	count := n * m.powers
	if m.triples {
		count += n * (n - 1) * (n - 2) / 6
	}
	return count
}

// tilt is t, between 0 and 1.
func (c *class) tilt(n int) float64 {
	x := float64(n-2*c.k) / float64(n)
	return x * x
}

// row fills in the terms of a pair.
func (m model) row(c *class, s Coalition, n int, row []float64) {
	sign := make([]float64, n)
	for i := range sign {
		sign[i] = -1
		if s.Has(i) {
			sign[i] = 1
		}
	}
	at, scale := 0, 1.0
	for range m.powers {
		for i := range n {
			row[at] = scale * sign[i]
			at++
		}
		scale *= c.tilt(n)
	}
	if !m.triples {
		return
	}
	for i := range n {
		for j := range i {
			product := sign[i] * sign[j]
			for k := range j {
				row[at] = product * sign[k]
				at++
			}
		}
	}
}

// expected returns E_k[(1[i∈S] − p)·fit(S)] for every member.
func (m model) expected(c *class, n int, coefficients []float64) []float64 {
	p := float64(c.k) / float64(n)
	mean := signMeans(n, c.k)
	values := make([]float64, n)
	everyone := 0.0
	at, scale := 0, 1.0
	inside := (mean[1]+mean[0])/2 - p*mean[1]
	outside := (mean[1]+mean[2])/2 - p*mean[1]
	for range m.powers {
		for i := range n {
			values[i] += scale * coefficients[at] * (inside - outside)
			everyone += scale * coefficients[at] * outside
			at++
		}
		scale *= c.tilt(n)
	}
	if m.triples {
		inside = (mean[3]+mean[2])/2 - p*mean[3]
		outside = (mean[3]+mean[4])/2 - p*mean[3]
		for i := range n {
			for j := range i {
				for k := range j {
					x := coefficients[at] * (inside - outside)
					values[i] += x
					values[j] += x
					values[k] += x
					everyone += coefficients[at] * outside
					at++
				}
			}
		}
	}
	for i := range values {
		values[i] += everyone
	}
	return values
}

// signMeans returns, for t = 0 … 4, the mean over coalitions of size k of the
// product of t members' signs.
func signMeans(n, k int) [5]float64 {
	var mean [5]float64
	for t := range mean {
		for in := range t + 1 {
			term := choose(t, in) * choose(n-t, k-in) / choose(n, k)
			if (t-in)%2 == 1 {
				term = -term
			}
			mean[t] += term
		}
	}
	return mean
}

// fit fits the model by penalised least squares, once for each penalty until
// the next one predicts worse. It returns nil when the equations cannot be
// solved.
func (e *adjusted) fit(m model) *fitted {
	own := len(e.classes) // every class has its own mean, but that of k = N/2 is zero
	x, y, scale := e.rows(m, own)
	_, columns := x.Dims()
	gram := mat.NewSymDense(columns, nil)
	gram.SymOuterK(1, x.T())
	right := mat.NewVecDense(columns, nil)
	right.MulVec(x.T(), y)
	penalised := own + e.start.Members*m.powers
	var best *fitted
	last := smallPenalty
	for k := range columns {
		gram.SetSym(k, k, gram.At(k, k)+last)
	}
	for _, penalty := range append(m.penalties, last)[:max(1, len(m.penalties))] {
		for k := penalised; k < columns; k++ {
			gram.SetSym(k, k, gram.At(k, k)+penalty-last)
		}
		last = penalty
		var factor mat.Cholesky
		if !factor.Factorize(gram) {
			break
		}
		beta := mat.NewVecDense(columns, nil)
		if err := factor.SolveVecTo(beta, right); err != nil {
			break
		}
		f := e.leaveOut(m, x, y, beta, &factor, scale)
		f.loss = e.loss(f)
		if best != nil && !(f.loss < best.loss) {
			break
		}
		best = f
	}
	return best
}

// rows returns the weighted terms and gaps of all pairs, and the square roots
// of the classes' weights.
func (e *adjusted) rows(m model, own int) (x *mat.Dense, y *mat.VecDense, scale []float64) {
	n := e.start.Members
	x = mat.NewDense(e.samples, own+m.terms(n), nil)
	y = mat.NewVecDense(e.samples, nil)
	scale = e.rowScales()
	at := 0
	for j, c := range e.classes {
		for t, s := range c.side {
			row := x.RawRowView(at)
			m.row(c, s, n, row[own:])
			if !c.half {
				row[j] = 1
			}
			for k := range row {
				row[k] *= scale[j]
			}
			y.SetVec(at, c.gap[t]*scale[j])
			at++
		}
	}
	return x, y, scale
}

// rowScales returns the square roots of the classes' regression weights: what
// a residual adds to the variance, but not nothing for a class that is nearly
// complete.
func (e *adjusted) rowScales() []float64 {
	scale := make([]float64, len(e.classes))
	sum := 0.0
	for j, c := range e.classes {
		scale[j] = c.importance(e.start.Members) * max(0.1, c.open())
		sum += scale[j] * float64(len(c.side))
	}
	for j := range scale {
		scale[j] = math.Sqrt(scale[j] * float64(e.samples) / sum)
	}
	return scale
}

// leaveOut uses that without pair t the coefficients are β − G⁻¹x_t·r_t/(1−h_t),
// with G the penalised normal matrix, r the residual and h the leverage.
func (e *adjusted) leaveOut(m model, x *mat.Dense, y, beta *mat.VecDense, factor *mat.Cholesky, scale []float64) *fitted {
	n, own := e.start.Members, len(e.classes)
	rows, columns := x.Dims()
	var upper mat.TriDense
	factor.UTo(&upper)
	half := mat.DenseCopyOf(x)
	blas64.Trsm(blas.Right, blas.NoTrans, 1, upper.RawTriangular(), half.RawMatrix())
	residual := mat.NewVecDense(rows, nil)
	residual.MulVec(x, beta)
	residual.SubVec(y, residual)
	f := &fitted{parts: make([]fittedClass, len(e.classes))}
	at := 0
	for j, c := range e.classes {
		part := fittedClass{inside: make([]float64, len(c.side)), outside: make([]float64, len(c.side))}
		pull := mat.NewVecDense(columns, nil)
		first := at
		for t := range c.side {
			z := half.RawRowView(at)
			leverage := squares(z)
			f.spent += leverage
			out := residual.AtVec(at) / max(1e-6, 1-leverage)
			part.outside[t] = out / scale[j]
			pull.AddScaledVec(pull, out, mat.NewVecDense(columns, x.RawRowView(at)))
			at++
		}
		// The mean coefficients of the fits that left out a pair of this class.
		shift, mean := mat.NewVecDense(columns, nil), mat.NewVecDense(columns, nil)
		if err := factor.SolveVecTo(shift, pull); err != nil {
			shift.Zero()
		}
		mean.AddScaledVec(beta, -1/float64(len(c.side)), shift)
		for t := range c.side {
			row := mat.NewVecDense(columns, x.RawRowView(first+t))
			part.inside[t] = (y.AtVec(first+t) - mat.Dot(row, mean)) / scale[j]
		}
		part.known = m.expected(c, n, mean.RawVector().Data[own:])
		f.parts[j] = part
	}
	return f
}

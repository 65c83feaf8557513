package curve

import "math"

// shape is a form as the fit sees it: a linear combination of basis functions
// that depend on one or two non-linear parameters. Every coefficient but the
// first, the constant, must be ≥ 0; the basis is chosen so that this is
// exactly "increasing and concave on [0, top]".
type shape struct {
	form   Form
	linear int // basis functions, the constant included and γ not
	// search returns the grid of starting values, in logarithms, one slice
	// per non-linear parameter. lo and hi are the smallest and largest S > 0.
	search func(lo, hi float64) [][]float64
	// basis writes the basis functions at S (out[0] = 1).
	basis func(theta []float64, top, s float64, out []float64)
	// natural turns coefficients into the parameters of the scenario file;
	// the i-th is reported as a constraint that binds when bound[i] is a
	// coefficient at zero.
	natural func(theta, coef []float64, top float64) []float64
	names   []string
	fixed   map[int]string // parameters that are a normalisation
	build   func(parameters []float64) interface{ At(float64) float64 }
	// binds says what it means when a coefficient is held at zero, and which
	// parameter it determines.
	binds map[int]binding
}

type binding struct {
	parameter int
	reason    string
}

// shapes has every form that can be fitted.
var shapes = map[Form]shape{
	// α1·ln(1 + κS) + α4·S is concave when α1 ≥ 0, and then increasing on
	// [0, top] when its slope at top, u = α4 + α1·κ/(1 + κ·top), is ≥ 0. In
	// terms of α1 and u the basis is ln(1 + κS) − S·κ/(1 + κ·top) and S.
	FormLogLinear: {
		form:   FormLogLinear,
		linear: 3,
		search: func(lo, hi float64) [][]float64 {
			return [][]float64{steps(math.Log(0.05/hi), math.Log(1e8/lo), 40)}
		},
		basis: func(theta []float64, top, s float64, out []float64) {
			k := math.Exp(theta[0])
			out[0], out[1], out[2] = 1, math.Log1p(k*s)-s*k/(1+k*top), s
		},
		natural: func(theta, coef []float64, top float64) []float64 {
			k := math.Exp(theta[0])
			return []float64{coef[1], k, 1, coef[2] - coef[1]*k/(1+k*top), coef[0]}
		},
		names: []string{"alpha1", "alpha2", "alpha3", "alpha4", "alpha5"},
		fixed: map[int]string{2: "normalisation: only alpha2/alpha3 can be measured"},
		build: func(p []float64) interface{ At(float64) float64 } {
			return LogLinear{Alpha: [5]float64(p)}
		},
		binds: map[int]binding{
			1: {0, "at its bound 0: the measurements show no concavity"},
			2: {3, "at its bound: the curve may not fall within the measured range"},
		},
	},
	FormPower: {
		form:   FormPower,
		linear: 2,
		search: func(lo, hi float64) [][]float64 {
			return [][]float64{
				steps(math.Log(lo/100), math.Log(hi), 10),
				steps(math.Log(0.05), math.Log(8), 9),
			}
		},
		basis: func(theta []float64, top, s float64, out []float64) {
			c, d := math.Exp(theta[0]), math.Exp(theta[1])
			// (1 + S/c)^(−d), so that b = c^d times the coefficient.
			out[0], out[1] = 1, -math.Pow(1+s/c, -d)
		},
		natural: func(theta, coef []float64, top float64) []float64 {
			c, d := math.Exp(theta[0]), math.Exp(theta[1])
			return []float64{coef[0], coef[1] * math.Pow(c, d), c, d}
		},
		names: []string{"a", "b", "c", "d"},
		build: func(p []float64) interface{ At(float64) float64 } {
			return Power{A: p[0], B: p[1], C: p[2], D: p[3]}
		},
		binds: map[int]binding{1: {1, "at its bound 0: the measurements show no increase"}},
	},
	FormExponential: {
		form:   FormExponential,
		linear: 2,
		search: func(lo, hi float64) [][]float64 {
			return [][]float64{steps(math.Log(0.01/hi), math.Log(20/lo), 32)}
		},
		basis: func(theta []float64, top, s float64, out []float64) {
			out[0], out[1] = 1, -math.Exp(-math.Exp(theta[0])*s)
		},
		natural: func(theta, coef []float64, top float64) []float64 {
			return []float64{coef[0], coef[1], math.Exp(theta[0])}
		},
		names: []string{"a", "b", "c"},
		build: func(p []float64) interface{ At(float64) float64 } {
			return Exponential{A: p[0], B: p[1], C: p[2]}
		},
		binds: map[int]binding{1: {1, "at its bound 0: the measurements show no increase"}},
	},
}

// steps returns n equally spaced values from lo to hi.
func steps(lo, hi float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = lo + (hi-lo)*float64(i)/float64(n-1)
	}
	return out
}

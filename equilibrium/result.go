package equilibrium

import "grange/game"

// Status says how a run of the dynamics ended. Not converging is a status, not
// an error.
type Status string

const (
	Converged      Status = "converged"
	Cycle          Status = "cycle"           // a profile came back: it would go round forever
	IterationLimit Status = "iteration_limit" // MaxIterations passed
)

// Result is where the dynamics ended under one mechanism.
type Result struct {
	Mechanism     string
	Status        Status
	Iterations    int // passes over all members, the last one without a move included
	CycleLength   int // passes per turn of a cycle, 0 without one
	Contributions game.Profile
	Indices       []float64
	IndexError    float64 // bound on the absolute error of Indices beyond rounding; 0 where they are exact
	Shares        []float64
	Payoffs       []float64
	Accuracy      float64
	Profit        float64
	Welfare       float64
	Certificate   Certificate
	Path          []game.Profile // the profile after every pass, start first; only with Settings.Trace
	Warnings      []string
}

// Certificate states how far a profile is from being a Nash equilibrium.
type Certificate struct {
	Regret     float64 // the largest gain any member has from any integer deviation
	Certified  bool    // the regret is zero within rounding: a Nash equilibrium
	Member     int     // whose regret it is; -1 when nobody gains
	Deviation  int64   // the contribution that would gain it
	Method     string  // "bounds" or "enumeration"
	Deviations int64   // how many deviations were ruled out, Σ (D_n − minimum)
}

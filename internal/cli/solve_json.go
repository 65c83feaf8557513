package cli

import (
	"math"

	"grange/equilibrium"
	"grange/game"
)

// The JSON of solve and sweep; docs/json.md says what each field means. Field
// names never change meaning.
type solutionJSON struct {
	Scenario   string        `json:"scenario"`
	Members    []string      `json:"members"`
	Equilibria []outcomeJSON `json:"equilibria"`
	Planner    *plannerJSON  `json:"planner,omitempty"`
	Warnings   []string      `json:"warnings,omitempty"`
}

type outcomeJSON struct {
	Mechanism      string          `json:"mechanism"`
	Status         string          `json:"status"`
	Iterations     int             `json:"iterations"`
	CycleLength    int             `json:"cycle_length,omitempty"`
	Contributions  game.Profile    `json:"contributions"`
	Shares         []float64       `json:"shares"`
	Payoffs        []float64       `json:"payoffs"`
	Indices        []float64       `json:"indices"`
	IndexError     float64         `json:"index_error,omitempty"`
	Accuracy       float64         `json:"accuracy"`
	Profit         float64         `json:"profit"`
	Welfare        float64         `json:"welfare"`
	Regret         float64         `json:"regret"`
	Certified      bool            `json:"certified"`
	Certificate    certificateJSON `json:"certificate"`
	FreeRiders     []string        `json:"free_riders"`
	Unwilling      []string        `json:"unwilling"`
	PriceOfAnarchy *float64        `json:"price_of_anarchy,omitempty"`
	Starts         *startsJSON     `json:"starts,omitempty"`
	Path           []game.Profile  `json:"path,omitempty"`
	Warnings       []string        `json:"warnings,omitempty"`
}

type certificateJSON struct {
	Method     string `json:"method"`
	Deviations int64  `json:"deviations"`
	Member     string `json:"member,omitempty"`
	Deviation  *int64 `json:"deviation,omitempty"`
}

type startsJSON struct {
	Tried      int         `json:"tried"`
	Cycles     int         `json:"cycles"`
	Limits     int         `json:"iteration_limits"`
	Equilibria []foundJSON `json:"equilibria"`
}

type foundJSON struct {
	Count         int          `json:"count"`
	Contributions game.Profile `json:"contributions"`
	Payoffs       []float64    `json:"payoffs"`
	Accuracy      float64      `json:"accuracy"`
	Profit        float64      `json:"profit"`
	Welfare       float64      `json:"welfare"`
	Regret        float64      `json:"regret"`
	Certified     bool         `json:"certified"`
}

type plannerJSON struct {
	Contributions game.Profile `json:"contributions"`
	Accuracy      float64      `json:"accuracy"`
	Profit        float64      `json:"profit"`
	Welfare       float64      `json:"welfare"`
	Bound         *float64     `json:"bound,omitempty"`
}

func (s *solution) json() solutionJSON {
	out := solutionJSON{Scenario: s.scenario.Name, Warnings: s.warnings}
	for _, m := range s.game.Members {
		out.Members = append(out.Members, m.Name)
	}
	for _, o := range s.equilibria {
		out.Equilibria = append(out.Equilibria, s.outcomeJSON(o))
	}
	if p := s.planner; p != nil {
		out.Planner = &plannerJSON{Contributions: p.Contributions, Accuracy: p.Accuracy, Profit: p.Profit, Welfare: p.Welfare, Bound: finite(p.Bound)}
	}
	return out
}

func (s *solution) outcomeJSON(o *outcome) outcomeJSON {
	out := outcomeJSON{
		Mechanism: o.Mechanism, Status: string(o.Status), Iterations: o.Iterations, CycleLength: o.CycleLength,
		Contributions: o.Contributions, Shares: o.Shares, Payoffs: o.Payoffs, Indices: o.Indices, IndexError: o.IndexError,
		Accuracy: o.Accuracy, Profit: o.Profit, Welfare: o.Welfare,
		Regret: o.Certificate.Regret, Certified: o.Certificate.Certified,
		Certificate:    certificateJSON{Method: o.Certificate.Method, Deviations: o.Certificate.Deviations},
		FreeRiders:     s.names(o.freeRiders),
		Unwilling:      s.names(o.unwilling),
		PriceOfAnarchy: finite(s.priceOfAnarchy(o)),
		Path:           o.Path,
		Warnings:       o.Warnings,
	}
	if n := o.Certificate.Member; n >= 0 && n < len(s.game.Members) && o.Certificate.Regret > 0 {
		out.Certificate.Member = s.game.Members[n].Name
		out.Certificate.Deviation = &o.Certificate.Deviation
	}
	if e := o.explored; e != nil {
		out.Starts = &startsJSON{Tried: o.starts, Cycles: e.Cycles, Limits: e.Limits, Equilibria: []foundJSON{}}
		for _, f := range e.Equilibria {
			out.Starts.Equilibria = append(out.Starts.Equilibria, foundOf(f))
		}
	}
	return out
}

func foundOf(f equilibrium.Found) foundJSON {
	r := f.Result
	return foundJSON{Count: f.Count, Contributions: r.Contributions, Payoffs: r.Payoffs, Accuracy: r.Accuracy,
		Profit: r.Profit, Welfare: r.Welfare, Regret: r.Certificate.Regret, Certified: r.Certificate.Certified}
}

// finite returns x, or nil where JSON has no number for it.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return &x
}

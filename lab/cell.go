package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"grange/dataset"
	"grange/federated"
)

// ErrCell is returned for a cell that cannot be trained as it stands.
var ErrCell = errors.New("lab: impossible cell")

// Training is what a training run needs besides data and seed: the keys of a
// scenario's training section that change its result.
type Training struct {
	Dataset     string  `json:"dataset"`
	Model       string  `json:"model"`
	Start       string  `json:"start,omitempty"` // how weights are drawn: a model.Start
	Rounds      int     `json:"rounds"`
	Epochs      int     `json:"epochs"`
	Batch       int     `json:"batch"`
	Rate        float64 `json:"rate"`
	GlobalRate  float64 `json:"global_rate"`
	Momentum    float64 `json:"momentum,omitempty"`
	WeightDecay float64 `json:"weight_decay,omitempty"`
	Proximal    float64 `json:"proximal,omitempty"`
	Split       Split   `json:"split,omitzero"`
	// Fingerprint tells apart two data sets of the same name, such as two
	// versions of a folder. Empty for data sets that never change.
	Fingerprint string `json:"fingerprint,omitempty"`
}

// Split says how the data set was dealt out to the members. The zero value is
// uniformly at random.
type Split struct {
	Kind  string  `json:"kind,omitempty"` // "dirichlet"
	Alpha float64 `json:"alpha,omitempty"`
}

// IsZero reports whether the split is the uniform one.
func (s Split) IsZero() bool { return s.Kind == "" }

// Cell is one training run: everything that determines its result.
type Cell struct {
	Training
	Capacities    []int64   `json:"capacities"`    // D_n: how the data were divided
	Contributions []int64   `json:"contributions"` // s_n
	Noise         []float64 `json:"noise"`         // ε_n
	Seed          uint64    `json:"seed"`
	// Transitions has a full label transition matrix for members that have
	// one instead of a noise rate; nil when nobody does.
	Transitions [][][]float64 `json:"transitions,omitempty"`
}

// Total returns S.
func (c Cell) Total() int64 {
	var total int64
	for _, s := range c.Contributions {
		total += s
	}
	return total
}

// WrongShare returns R = Σ ε·s / S, the share of wrong labels asked for.
func (c Cell) WrongShare() float64 {
	wrong, total := 0.0, c.Total()
	for n, s := range c.Contributions {
		wrong += c.Noise[n] * float64(s)
	}
	if total == 0 {
		return 0
	}
	return wrong / float64(total)
}

// Canonical returns the cell with everything that cannot matter removed:
// whoever contributes nothing has no noise rate.
func (c Cell) Canonical() Cell {
	c.Noise = slices.Clone(c.Noise)
	for n, s := range c.Contributions {
		if s == 0 && n < len(c.Noise) {
			c.Noise[n] = 0
		}
	}
	return c
}

// trainingRevision is part of every key. It is raised when a change to the
// training would give a different result for the same cell.
const trainingRevision = 1

// Key names the cell: a hash of its canonical encoding. The machine, backend
// and number of workers are not part of it, so that results can be merged; they
// are recorded in the Outcome.
func (c Cell) Key() string {
	encoded, err := json.Marshal(struct {
		Revision int  `json:"revision"`
		Cell     Cell `json:"cell"`
	}{trainingRevision, c.Canonical()})
	if err != nil {
		panic("lab: cell cannot be encoded: " + err.Error()) // only NaN or Inf; Check rules them out
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:12])
}

// Check reports whether the cell can be trained.
func (c Cell) Check() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrCell, fmt.Sprintf(format, args...))
	}
	n := len(c.Contributions)
	if n == 0 || len(c.Noise) != n || len(c.Capacities) != n {
		return fail("%d contributions, %d noise rates, %d capacities", n, len(c.Noise), len(c.Capacities))
	}
	for i, s := range c.Contributions {
		if s < 0 || s > c.Capacities[i] {
			return fail("member %d contributes %d of %d points", i+1, s, c.Capacities[i])
		}
		if e := c.Noise[i]; !(e >= 0 && e < 1) {
			return fail("member %d has noise rate %v, want 0 ≤ ε < 1", i+1, e)
		}
	}
	if c.Total() == 0 {
		return fail("nobody contributes anything")
	}
	if c.Dataset == "" || c.Model == "" || c.Rounds < 1 || c.Epochs < 1 || c.Batch < 1 {
		return fail("dataset %q, model %q, %d rounds, %d epochs, batch %d", c.Dataset, c.Model, c.Rounds, c.Epochs, c.Batch)
	}
	for _, rate := range []float64{c.Rate, c.GlobalRate} {
		if !(rate > 0) || math.IsInf(rate, 1) {
			return fail("learning rates %v and %v, want more than 0", c.Rate, c.GlobalRate)
		}
	}
	if _, err := c.local().Defaults(); err != nil {
		return fail("%v", err)
	}
	if uniform := c.Split == (Split{}); !uniform && (c.Split.Kind != "dirichlet" || !(c.Split.Alpha > 0) || math.IsInf(c.Split.Alpha, 1)) {
		return fail("split %q with alpha %v, want none, or dirichlet with more than 0", c.Split.Kind, c.Split.Alpha)
	}
	if c.Transitions != nil && len(c.Transitions) != n {
		return fail("%d transition matrices for %d members", len(c.Transitions), n)
	}
	for i, matrix := range c.Transitions {
		if err := (dataset.Noise{Transition: matrix}).Validate(len(matrix)); err != nil {
			return fail("member %d: %v", i+1, err)
		}
	}
	return nil
}

// local is how a member trains in a round.
func (c Cell) local() federated.Local {
	return federated.Local{
		Epochs: c.Epochs, Batch: c.Batch, Rate: c.Rate,
		Momentum: c.Momentum, Decay: c.WeightDecay, Proximal: c.Proximal,
	}
}

// Work is how many samples the cell trains on in all: proportional to its
// time on one machine.
func (c Cell) Work() float64 {
	return float64(c.Total()) * float64(c.Rounds) * float64(c.Epochs)
}

// Round is the model after one round.
type Round struct {
	Round    int     `json:"round"`
	Accuracy float64 `json:"accuracy"` // on the clean test set
	Loss     float64 `json:"loss"`     // on the clean test set
}

// Outcome is what a training run gave.
type Outcome struct {
	Accuracy float64 `json:"accuracy"` // after the last round
	Rounds   []Round `json:"rounds"`
	Backend  string  `json:"backend"`          // such as "cpu"
	Kernel   string  `json:"kernel,omitempty"` // such as "avx2"
	Seconds  float64 `json:"seconds"`          // wall time
}

// Peak returns the round of the best accuracy.
func (o Outcome) Peak() Round {
	var best Round
	for _, r := range o.Rounds {
		if r.Accuracy > best.Accuracy {
			best = r
		}
	}
	return best
}

// Trainer trains one cell. It returns ctx's error when ctx ends first.
type Trainer func(ctx context.Context, cell Cell) (Outcome, error)

package nn

import (
	"fmt"

	"grange/model"
)

// SGD is stochastic gradient descent. The zero value of each option leaves it
// out.
type SGD struct {
	// Rate is the step size, η.
	Rate float32
	// Momentum is the share of the last update that is kept (default 0). It
	// needs Velocity.
	Momentum float32
	// Velocity is momentum's state, as long as the weights. The caller makes it,
	// and clears it to start afresh.
	Velocity []float32
	// Decay is the weight decay: Decay·w is added to the gradient (default 0).
	Decay float32
	// Proximal is FedProx's μ: μ·(w − Reference) is added to the gradient
	// (default 0).
	Proximal float32
	// Reference are the global weights that Proximal pulls towards.
	Reference []float32
}

// update moves the trained parts of w along n.gradient.
func (s *SGD) update(n *Network, w *model.Weights) {
	if s.Momentum != 0 && len(s.Velocity) != len(w.Flat) {
		panic(fmt.Sprintf("nn: velocity of %d values for %d weights", len(s.Velocity), len(w.Flat)))
	}
	if s.Proximal != 0 && len(s.Reference) != len(w.Flat) {
		panic(fmt.Sprintf("nn: reference of %d values for %d weights", len(s.Reference), len(w.Flat)))
	}
	blend := n.engine.blend
	for _, part := range n.trained {
		weights, step := w.Flat[part.from:part.to], n.gradient[part.from:part.to]
		if pull := s.Decay + s.Proximal; pull != 0 {
			blend(step, weights, 1, pull)
		}
		if s.Proximal != 0 {
			blend(step, s.Reference[part.from:part.to], 1, -s.Proximal)
		}
		if s.Momentum != 0 {
			velocity := s.Velocity[part.from:part.to]
			blend(velocity, step, s.Momentum, 1)
			step = velocity
		}
		blend(weights, step, 1, -s.Rate)
	}
}

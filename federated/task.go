package federated

import (
	"fmt"
	"iter"

	"grange/internal/stream"
)

// Reach is what a trainer can do: with how many points of each member, how large a mini-batch and a model of how many
// weights.
type Reach struct {
	Points  []int
	Batch   int
	Weights int
}

// Check reports a task out of reach.
func (r Reach) Check(task Task) error {
	if task.Member < 0 || task.Member >= len(r.Points) {
		return fmt.Errorf("no data for member %d of %d", task.Member+1, len(r.Points))
	}
	if have := r.Points[task.Member]; task.Contribution < 1 || task.Contribution > have {
		return fmt.Errorf("%s is to train on %d points and has %d", task.Name, task.Contribution, have)
	}
	if task.Local.Batch < 1 || task.Local.Batch > r.Batch || task.Local.Epochs < 1 {
		return fmt.Errorf("%d epochs of batches of %d, expected at least 1 epoch and batches of 1 to %d",
			task.Local.Epochs, task.Local.Batch, r.Batch)
	}
	if have := len(task.Global.Flat); have != r.Weights {
		return fmt.Errorf("a model of %d weights, expected %d", have, r.Weights)
	}
	return nil
}

// Batches goes through the task's data: every mini-batch of every epoch, with the epoch's number from 0 on. A batch holds
// positions in the member's data and is good until the next. Chance, which is the order in every epoch, comes from the
// task's seed, member and round, so that all trainers take the same steps.
func (t Task) Batches() iter.Seq2[int, []int32] {
	return func(yield func(int, []int32) bool) {
		random := stream.New(t.Seed, "local training order", t.Member, t.Round)
		order := make([]int32, t.Contribution)
		for i := range order {
			order[i] = int32(i)
		}
		for epoch := range t.Local.Epochs {
			random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			for from := 0; from < len(order); from += t.Local.Batch {
				if !yield(epoch, order[from:min(from+t.Local.Batch, len(order))]) {
					return
				}
			}
		}
	}
}

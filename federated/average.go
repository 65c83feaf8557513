package federated

import (
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"grange/model"
)

// block is how many weights are averaged at a time.
const block = 1 << 14

// average is the formula in the package's documentation, written as (1−η_g)·ω + η_g·Σ s_n·ω_n / S so that with one
// member and η_g = 1 it returns that member's weights to the bit. Every weight is summed in the order of the updates;
// blocks of weights are shared among processors, which changes nothing.
func average(global *model.Weights, updates []Update, rate float64) (*model.Weights, error) {
	total := 0.0
	for _, update := range updates {
		total += float64(update.Examples)
	}
	after := global.Clone()
	blocks := (len(after.Flat) + block - 1) / block
	workers := min(runtime.GOMAXPROCS(0), blocks)
	var group errgroup.Group
	for worker := range workers {
		group.Go(func() error {
			var sums [block]float64
			var buffer [block]float32
			for b := worker; b < blocks; b += workers {
				from := b * block
				values := after.Flat[from:min(from+block, len(after.Flat))]
				part := sums[:len(values)]
				clear(part)
				for _, update := range updates {
					piece, err := update.piece(buffer[:len(values)], from)
					if err != nil {
						return fmt.Errorf("update of member %d in round %d: %w", update.Member+1, update.Round, err)
					}
					weight := float64(update.Examples)
					for j, value := range piece {
						part[j] += weight * float64(value)
					}
				}
				for j := range values {
					values[j] = float32((1-rate)*float64(values[j]) + rate*(part[j]/total))
				}
			}
			return nil
		})
	}
	return after, group.Wait()
}

// piece is the part of an update that begins at a position, in the buffer or where it is.
func (u Update) piece(buffer []float32, position int) ([]float32, error) {
	if u.Stored == nil {
		return u.Weights.Flat[position : position+len(buffer)], nil
	}
	return buffer, u.Stored.Read(buffer, position)
}

// Model is the whole update as weights, which are read if they are stored elsewhere. It has the tensors of another model.
func (u Update) Model(like *model.Weights) (*model.Weights, error) {
	if u.Stored == nil {
		return u.Weights, nil
	}
	weights := like.Clone()
	return weights, u.Stored.Read(weights.Flat, 0)
}

// TrainingLoss is the mean of the members' losses, weighted by what they trained on.
func (a *Aggregate) TrainingLoss() float64 {
	var sum, total float64
	for _, update := range a.Updates {
		sum += float64(update.Examples) * update.Loss
		total += float64(update.Examples)
	}
	return sum / total
}

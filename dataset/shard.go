package dataset

import "fmt"

// Holding is what a scenario says of one member's data.
type Holding struct {
	// Data is how many points it has (D_n), and Contribution how many of them it contributes (s_n).
	Data, Contribution int
	// Noise says how wrong its labels are.
	Noise Noise
}

// Shard is the data a member trains on.
type Shard struct {
	// Points are indices into the training set, and Labels the labels that the member has for them.
	Points []int32
	Labels []uint8
}

// Points counts the points of each shard.
func Points(shards []Shard) []int {
	points := make([]int, len(shards))
	for member, shard := range shards {
		points[member] = len(shard.Points)
	}
	return points
}

// Shards deals the training set to members, takes from each what it contributes, and makes the labels wrong that are to
// be wrong.
func (s Split) Shards(data *Dataset, holdings []Holding, seed uint64) ([]Shard, error) {
	sizes := make([]int, len(holdings))
	for member, holding := range holdings {
		sizes[member] = holding.Data
	}
	partition, err := s.Deal(data.Train.Labels, len(data.Classes), sizes, seed)
	if err != nil {
		return nil, err
	}
	shards := make([]Shard, len(holdings))
	for member, holding := range holdings {
		points, err := partition.Subset(member, holding.Contribution)
		if err != nil {
			return nil, err
		}
		labels, err := holding.Noise.Labels(data.Train.Labels, points, len(data.Classes), seed, member)
		if err != nil {
			return nil, err
		}
		shards[member] = Shard{Points: points, Labels: labels}
	}
	return shards, nil
}

// Wrong counts the labels of a shard that differ from those of the training set.
func (s Shard) Wrong(train *Images) int {
	wrong := 0
	for i, point := range s.Points {
		if s.Labels[i] != train.Labels[point] {
			wrong++
		}
	}
	return wrong
}

// check reports a shard that does not belong to a data set.
func (s Shard) check(data *Dataset) error {
	if len(s.Points) != len(s.Labels) {
		return fmt.Errorf("%w: %d points and %d labels", ErrContribution, len(s.Points), len(s.Labels))
	}
	for i, point := range s.Points {
		if point < 0 || int(point) >= data.Train.Len() {
			return fmt.Errorf("%w: point %d, expected 0 to %d", ErrContribution, point, data.Train.Len()-1)
		}
		if int(s.Labels[i]) >= len(data.Classes) {
			return fmt.Errorf("%w: %d, expected 0 to %d", ErrLabel, s.Labels[i], len(data.Classes)-1)
		}
	}
	return nil
}

// CheckShards reports the first shard that does not belong to a data set.
func (d *Dataset) CheckShards(shards []Shard) error {
	for member, shard := range shards {
		if err := shard.check(d); err != nil {
			return fmt.Errorf("member %d: %w", member+1, err)
		}
	}
	return nil
}

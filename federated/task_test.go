package federated

import (
	"slices"
	"testing"

	"grange/model"
)

// TestBatches: every epoch holds every point once, in an order of its own that is part of what "same seed, same bytes"
// means from one release to the next.
func TestBatches(t *testing.T) {
	task := Task{Seed: 7, Member: 2, Round: 3, Contribution: 10, Local: Local{Epochs: 2, Batch: 4}}
	var got [2][]int32
	var sizes []int
	for epoch, batch := range task.Batches() {
		got[epoch] = append(got[epoch], batch...)
		sizes = append(sizes, len(batch))
	}
	if !slices.Equal(sizes, []int{4, 4, 2, 4, 4, 2}) {
		t.Errorf("batches of %v", sizes)
	}
	want := [2][]int32{{4, 8, 0, 3, 6, 1, 2, 9, 5, 7}, {5, 1, 2, 4, 0, 6, 7, 3, 8, 9}}
	for epoch := range got {
		if !slices.Equal(got[epoch], want[epoch]) {
			t.Errorf("epoch %d in the order %v, want %v", epoch, got[epoch], want[epoch])
		}
		slices.Sort(got[epoch])
		if !slices.Equal(got[epoch], []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) {
			t.Errorf("epoch %d holds %v", epoch, got[epoch])
		}
	}
	for range task.Batches() {
		break // and no more of it
	}
}

func TestReach(t *testing.T) {
	reach := Reach{Points: []int{5, 3}, Batch: 8, Weights: 2}
	fine := Task{Member: 1, Contribution: 3, Local: Local{Epochs: 1, Batch: 8}, Global: &model.Weights{Flat: make([]float32, 2)}}
	if err := reach.Check(fine); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Task){
		"member":        func(t *Task) { t.Member = 2 },
		"no member":     func(t *Task) { t.Member = -1 },
		"too many":      func(t *Task) { t.Contribution = 4 },
		"none":          func(t *Task) { t.Contribution = 0 },
		"batch":         func(t *Task) { t.Local.Batch = 9 },
		"no batch":      func(t *Task) { t.Local.Batch = 0 },
		"epochs":        func(t *Task) { t.Local.Epochs = 0 },
		"another model": func(t *Task) { t.Global = &model.Weights{} },
	} {
		task := fine
		change(&task)
		if reach.Check(task) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

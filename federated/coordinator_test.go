package federated_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"grange/federated"
	"grange/model"
)

// tiny is an architecture of few weights.
func tiny(t testing.TB) model.Spec {
	t.Helper()
	spec, err := model.New("softmax", model.Shape{Channels: 1, Height: 2, Width: 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// constant are weights that all have one value.
func constant(spec model.Spec, value float32) *model.Weights {
	weights := model.NewWeights(spec)
	for i := range weights.Flat {
		weights.Flat[i] = value
	}
	return weights
}

// members are called a, b, c and so on.
func members(contributions ...int) []federated.Member {
	list := make([]federated.Member, len(contributions))
	for i, contribution := range contributions {
		list[i] = federated.Member{Name: string(rune('a' + i)), Contribution: contribution}
	}
	return list
}

func start(t testing.TB, settings federated.Settings, list []federated.Member, global *model.Weights) *federated.Coordinator {
	t.Helper()
	c, err := federated.NewCoordinator(settings, list, global, 0)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func begin(t testing.TB, c *federated.Coordinator) []federated.Task {
	t.Helper()
	tasks, err := c.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return tasks
}

func TestRound(t *testing.T) {
	spec := tiny(t)
	c := start(t, federated.Settings{Rounds: 2, GlobalRate: 0.5}, members(1, 0, 3), constant(spec, 2))
	tasks := begin(t, c)
	if len(tasks) != 2 || tasks[0].Member != 0 || tasks[1].Member != 2 || tasks[1].Name != "c" || tasks[1].Contribution != 3 || tasks[0].Round != 1 {
		t.Fatalf("tasks %+v, expected members a and c", tasks)
	}
	if err := c.Receive(federated.Update{Round: 1, Member: 2, Weights: constant(spec, 8)}); err != nil {
		t.Fatal(err)
	}
	if got := c.Pending(); !slices.Equal(got, []int{0}) {
		t.Errorf("pending %v, expected [0]", got)
	}
	if err := c.Receive(federated.Update{Round: 1, Member: 0, Weights: constant(spec, 4)}); err != nil {
		t.Fatal(err)
	}
	result, err := c.Aggregate()
	if err != nil {
		t.Fatal(err)
	}
	// 2 + 0.5·((1·4 + 3·8)/4 − 2) = 4.5
	for _, value := range result.After.Flat {
		if value != 4.5 {
			t.Fatalf("average is %v, expected 4.5", value)
		}
	}
	if result.Before.Flat[0] != 2 || len(result.Updates) != 2 || result.Updates[0].Member != 0 || c.Global() != result.After || c.Round() != 1 || c.Done() {
		t.Errorf("round %d, done %v, %d updates", c.Round(), c.Done(), len(result.Updates))
	}
	if next := begin(t, c); next[0].Round != 2 || next[0].Global != result.After {
		t.Errorf("second round begins with %+v", next[0])
	}
}

// The result is the weighted mean, moved by the global rate, whatever the order in which updates arrive.
func TestAggregationProperties(t *testing.T) {
	spec := tiny(t)
	rapid.Check(t, func(t *rapid.T) {
		contributions := rapid.SliceOfN(rapid.IntRange(0, 50_000), 1, 8).Draw(t, "contributions")
		contributions[0] = max(1, contributions[0])
		rate := rapid.Float64Range(0.01, 2).Draw(t, "rate")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "values"), 1))
		draw := func() *model.Weights {
			weights := model.NewWeights(spec)
			for i := range weights.Flat {
				weights.Flat[i] = float32(random.NormFloat64())
			}
			return weights
		}
		global := draw()
		var updates []federated.Update
		for member, contribution := range contributions {
			if contribution > 0 {
				updates = append(updates, federated.Update{Round: 1, Member: member, Weights: draw()})
			}
		}
		aggregate := func(order []int) *model.Weights {
			c, err := federated.NewCoordinator(federated.Settings{Rounds: 1, GlobalRate: rate}, members(contributions...), global, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Begin(); err != nil {
				t.Fatal(err)
			}
			for _, i := range order {
				if err := c.Receive(updates[i]); err != nil {
					t.Fatal(err)
				}
			}
			result, err := c.Aggregate()
			if err != nil {
				t.Fatal(err)
			}
			return result.After
		}
		inOrder := make([]int, len(updates))
		for i := range inOrder {
			inOrder[i] = i
		}
		got := aggregate(inOrder)
		if other := aggregate(random.Perm(len(updates))); !slices.Equal(got.Flat, other.Flat) {
			t.Fatal("another order of arrival, other bytes")
		}
		total := 0.0
		for _, contribution := range contributions {
			total += float64(contribution)
		}
		for i, value := range got.Flat {
			mean, weightSum := 0.0, 0.0
			for _, update := range updates {
				weight := float64(contributions[update.Member]) / total
				mean += weight * float64(update.Weights.Flat[i])
				weightSum += weight
			}
			if math.Abs(weightSum-1) > 1e-12 {
				t.Fatalf("the weights add up to %v", weightSum)
			}
			old := float64(global.Flat[i])
			if want := old + rate*(mean-old); math.Abs(float64(value)-want) > 1e-6*(1+math.Abs(want)) {
				t.Fatalf("value %d is %v, expected %v", i, value, want)
			}
		}
	})
}

// With one member and plain averaging the global model is that member's, to the bit.
func TestOneMemberIsNotChanged(t *testing.T) {
	spec := tiny(t)
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		before, after := model.NewWeights(spec), model.NewWeights(spec)
		for i := range after.Flat {
			before.Flat[i] = float32(random.NormFloat64() * 1e3)
			after.Flat[i] = float32(random.NormFloat64() * 1e-3)
		}
		c := start(t, federated.Settings{Rounds: 1}, members(1+random.IntN(60_000)), before)
		begin(t, c)
		if err := c.Receive(federated.Update{Round: 1, Weights: after}); err != nil {
			t.Fatal(err)
		}
		result, err := c.Aggregate()
		if err != nil || !slices.Equal(result.After.Flat, after.Flat) {
			t.Fatalf("changed: %v", err)
		}
	}
}

func TestRefusedUpdates(t *testing.T) {
	spec := tiny(t)
	other, err := model.New("softmax", model.Shape{Channels: 1, Height: 2, Width: 3}, 3)
	if err != nil {
		t.Fatal(err)
	}
	mlp, err := model.New("mlp", model.Shape{Channels: 1, Height: 2, Width: 2}, 3)
	if err != nil {
		t.Fatal(err)
	}
	infinite, short := constant(spec, 1), constant(spec, 1)
	infinite.Flat[2] = float32(math.Inf(-1))
	short.Flat = short.Flat[:3]
	global := constant(spec, 1)
	c := start(t, federated.Settings{Rounds: 1}, members(1, 2, 0), global)
	fine := federated.Update{Round: 1, Member: 1, Weights: constant(spec, 1)}
	if err := c.Receive(fine); !errors.Is(err, federated.ErrRound) {
		t.Errorf("before the round: error %v", err)
	}
	if _, err := c.Aggregate(); !errors.Is(err, federated.ErrRound) {
		t.Errorf("aggregate before the round: error %v", err)
	}
	begin(t, c)
	if _, err := c.Begin(); !errors.Is(err, federated.ErrRound) {
		t.Errorf("second begin: error %v", err)
	}
	if err := c.Receive(fine); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		update   federated.Update
		sentinel error
		word     string
	}{
		"twice":              {fine, federated.ErrDuplicate, "b"},
		"other round":        {federated.Update{Round: 2, Member: 0, Weights: global}, federated.ErrRound, "expected round 1"},
		"unknown member":     {federated.Update{Round: 1, Member: 3, Weights: global}, federated.ErrMember, "0 to 2"},
		"negative member":    {federated.Update{Round: 1, Member: -1, Weights: global}, federated.ErrMember, "0 to 2"},
		"idle member":        {federated.Update{Round: 1, Member: 2, Weights: global}, federated.ErrMember, "c contributes nothing"},
		"no weights":         {federated.Update{Round: 1, Member: 0}, federated.ErrWeights, "no weights"},
		"other shape":        {federated.Update{Round: 1, Member: 0, Weights: constant(other, 1)}, federated.ErrWeights, "shape"},
		"other architecture": {federated.Update{Round: 1, Member: 0, Weights: constant(mlp, 1)}, federated.ErrWeights, "tensors"},
		"too few values":     {federated.Update{Round: 1, Member: 0, Weights: short}, federated.ErrWeights, "3 values"},
		"infinite":           {federated.Update{Round: 1, Member: 0, Weights: infinite}, federated.ErrNotFinite, "the weights of a in round 1"},
		"NaN":                {federated.Update{Round: 1, Member: 0, Weights: constant(spec, float32(math.NaN()))}, federated.ErrNotFinite, "a"},
	} {
		if err := c.Receive(test.update); !errors.Is(err, test.sentinel) || !strings.Contains(err.Error(), test.word) {
			t.Errorf("%s: error %v, expected %q with %q", name, err, test.sentinel, test.word)
		}
	}
	if _, err := c.Aggregate(); !errors.Is(err, federated.ErrRound) || !strings.Contains(err.Error(), "the first of them a") {
		t.Errorf("aggregate with one missing: error %v", err)
	}
	// After all that, the right update still goes through.
	if err := c.Receive(federated.Update{Round: 1, Member: 0, Weights: global}); err != nil {
		t.Error(err)
	}
	if _, err := c.Aggregate(); err != nil || !c.Done() {
		t.Errorf("done %v, error %v", c.Done(), err)
	}
	if _, err := c.Begin(); !errors.Is(err, federated.ErrRound) {
		t.Errorf("begin after the last round: error %v", err)
	}
}

func TestAverageOutOfRange(t *testing.T) {
	spec := tiny(t)
	c := start(t, federated.Settings{Rounds: 1, GlobalRate: 2}, members(1), constant(spec, -3e38))
	begin(t, c)
	if err := c.Receive(federated.Update{Round: 1, Weights: constant(spec, 3e38)}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Aggregate(); !errors.Is(err, federated.ErrNotFinite) {
		t.Errorf("error %v, expected %q", err, federated.ErrNotFinite)
	}
}

func TestBadSettings(t *testing.T) {
	global := constant(tiny(t), 1)
	for name, test := range map[string]struct {
		settings federated.Settings
		list     []federated.Member
		finished int
		sentinel error
	}{
		"no rounds":         {federated.Settings{}, members(1), 0, federated.ErrSettings},
		"negative rate":     {federated.Settings{Rounds: 1, GlobalRate: -1}, members(1), 0, federated.ErrSettings},
		"infinite rate":     {federated.Settings{Rounds: 1, GlobalRate: math.Inf(1)}, members(1), 0, federated.ErrSettings},
		"NaN rate":          {federated.Settings{Rounds: 1, GlobalRate: math.NaN()}, members(1), 0, federated.ErrSettings},
		"unknown policy":    {federated.Settings{Rounds: 1, OnFailure: 9}, members(1), 0, federated.ErrSettings},
		"no members":        {federated.Settings{Rounds: 1}, nil, 0, federated.ErrNobody},
		"all zero":          {federated.Settings{Rounds: 1}, members(0, 0), 0, federated.ErrNobody},
		"negative":          {federated.Settings{Rounds: 1}, members(-1, 2), 0, federated.ErrSettings},
		"too many finished": {federated.Settings{Rounds: 1}, members(1), 2, federated.ErrRound},
	} {
		if _, err := federated.NewCoordinator(test.settings, test.list, global, test.finished); !errors.Is(err, test.sentinel) {
			t.Errorf("%s: error %v, expected %q", name, err, test.sentinel)
		}
	}
	if _, err := federated.NewCoordinator(federated.Settings{Rounds: 1}, members(1), constant(tiny(t), float32(math.NaN())), 0); !errors.Is(err, federated.ErrNotFinite) {
		t.Errorf("NaN model: error %v", err)
	}
	for _, local := range []federated.Local{
		{Epochs: -1}, {Batch: -1}, {Rate: -1}, {Rate: math.NaN()}, {Rate: math.Inf(1)}, {Momentum: 1}, {Momentum: -0.1},
		{Decay: -1}, {Proximal: -1}, {Proximal: math.NaN()},
	} {
		if _, err := local.Defaults(); !errors.Is(err, federated.ErrSettings) {
			t.Errorf("%+v: error %v", local, err)
		}
	}
}

func ExampleCoordinator() {
	spec, _ := model.New("softmax", model.Shape{Channels: 1, Height: 1, Width: 1}, 2)
	global := model.NewWeights(spec)
	members := []federated.Member{{Name: "north", Contribution: 100}, {Name: "south", Contribution: 300}}
	coordinator, err := federated.NewCoordinator(federated.Settings{Rounds: 1}, members, global, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	tasks, _ := coordinator.Begin()
	for _, task := range tasks {
		trained := task.Global.Clone()
		trained.Flat[0] = float32(task.Member + 1) // stands for training
		if err := coordinator.Receive(federated.Update{Round: task.Round, Member: task.Member, Weights: trained}); err != nil {
			fmt.Println(err)
		}
	}
	result, _ := coordinator.Aggregate()
	fmt.Println("after round", result.Round, "the first weight is", result.After.Flat[0])
	// Output: after round 1 the first weight is 1.75
}

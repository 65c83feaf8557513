package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/dataset"
	"grange/federated"
	"grange/federated/checkpoint"
	"grange/internal/stream"
	"grange/model"
	"grange/nn"
	"grange/train"
)

// fashion is a small part of the built-in data set, so that tests train for milliseconds.
func fashion(t testing.TB) *dataset.Dataset {
	t.Helper()
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	data.Test.Pixels, data.Test.Labels = data.Test.Pixels[:600*784], data.Test.Labels[:600]
	return data
}

// job trains three members, one of them idle, one with wrong labels.
func job(t testing.TB) train.Job {
	return train.Job{
		Data: fashion(t), Model: "softmax", Seed: 5,
		Members: []train.Member{
			{Name: "north", Holding: dataset.Holding{Data: 500, Contribution: 300}},
			{Name: "south", Holding: dataset.Holding{Data: 500, Contribution: 0}},
			{Name: "east", Holding: dataset.Holding{Data: 300, Contribution: 130, Noise: dataset.Noise{Rate: 0.3}}},
			{Name: "west", Holding: dataset.Holding{Data: 300, Contribution: 300}},
		},
		Settings: federated.Settings{Rounds: 4},
		Local:    federated.Local{Epochs: 2, Batch: 32, Rate: 0.05},
	}
}

func run(t testing.TB, job train.Job) *train.Result {
	t.Helper()
	result, err := train.Run(context.Background(), job)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func same(a, b *train.Result) bool {
	return slices.Equal(a.Weights.Flat, b.Weights.Flat) && cmp.Equal(a.Rounds, b.Rounds)
}

func TestSameBytesForAllWorkers(t *testing.T) {
	for _, name := range []string{"softmax", "mlp", "cnn"} {
		j := job(t)
		j.Model, j.Workers, j.Settings.Rounds = name, 1, 2
		if name == "cnn" {
			j.Local.Epochs, j.Members[0].Contribution, j.Members[3].Contribution = 1, 50, 40
		}
		want := run(t, j)
		for workers := 2; workers <= 4; workers++ {
			j.Workers = workers
			if got := run(t, j); !same(got, want) {
				t.Errorf("%s: %d workers, other bytes", name, workers)
			}
		}
		j.Seed++
		if got := run(t, j); same(got, want) {
			t.Errorf("%s: another seed, the same bytes", name)
		}
	}
}

func TestLearns(t *testing.T) {
	result := run(t, job(t))
	if len(result.Rounds) != 4 || result.Accuracy < 0.6 || result.Rounds[3].Training >= result.Rounds[0].Training {
		t.Errorf("rounds %+v", result.Rounds)
	}
	if result.Kernel != nn.Kernels()[0] || result.Dataset != "fashion" || result.Model != "softmax" {
		t.Errorf("kernel %q, data set %q, model %q", result.Kernel, result.Dataset, result.Model)
	}
}

// Federated averaging of one member is plain SGD, written out here with nothing but the network and the data.
func TestOneMemberIsPlainSGD(t *testing.T) {
	j := job(t)
	j.Model = "mlp"
	j.Members = []train.Member{{Name: "all", Holding: dataset.Holding{Data: 400, Contribution: 400}}}
	got := run(t, j)

	spec, err := model.New("mlp", model.Shape(j.Data.Shape()), 10)
	if err != nil {
		t.Fatal(err)
	}
	network, err := nn.New(spec, 32, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	partition, err := dataset.Split{}.Deal(j.Data.Train.Labels, 10, []int{400}, j.Seed)
	if err != nil {
		t.Fatal(err)
	}
	normalizer := dataset.NewNormalizer(&j.Data.Train)
	weights := model.Init(spec, stream.New(j.Seed, "initial weights"))
	for round := 1; round <= 4; round++ {
		random := stream.New(j.Seed, "local training order", 0, round)
		points := slices.Clone(partition.Points[0])
		for range 2 {
			random.Shuffle(len(points), func(i, k int) { points[i], points[k] = points[k], points[i] })
			for batch := range slices.Chunk(points, 32) {
				images := make([]float32, len(batch)*784)
				normalizer.Batch(images, &j.Data.Train, batch)
				labels := make([]uint8, len(batch))
				for i, point := range batch {
					labels[i] = j.Data.Train.Labels[point]
				}
				network.Step(weights, images, labels, nn.SGD{Rate: 0.05})
			}
		}
	}
	if !slices.Equal(got.Weights.Flat, weights.Flat) {
		t.Error("federated averaging of one member differs from plain SGD")
	}
}

func TestOptionsMatter(t *testing.T) {
	j := job(t)
	want := run(t, j)
	for name, change := range map[string]func(*train.Job){
		"global rate": func(j *train.Job) { j.Settings.GlobalRate = 0.5 },
		"momentum":    func(j *train.Job) { j.Local.Momentum = 0.9 },
		"decay":       func(j *train.Job) { j.Local.Decay = 0.01 },
		"proximal":    func(j *train.Job) { j.Local.Proximal = 0.1 },
		"noise":       func(j *train.Job) { j.Members[0].Noise.Rate = 0.2 },
		"split":       func(j *train.Job) { j.Split = dataset.Split{Method: dataset.Dirichlet, Concentration: 1} },
	} {
		changed := job(t)
		change(&changed)
		if got := run(t, changed); same(got, want) {
			t.Errorf("%s changes nothing", name)
		}
	}
}

// A strong proximal term keeps members near the global model.
func TestProximalPullsBack(t *testing.T) {
	distance := func(proximal float64) float64 {
		j := job(t)
		j.Settings.Rounds, j.Local.Proximal = 1, proximal
		total := 0.0
		j.Observe = func(o federated.Observation) {
			for _, update := range o.Updates {
				for i, value := range update.Weights.Flat {
					d := float64(value - o.Before.Flat[i])
					total += d * d
				}
			}
		}
		run(t, j)
		return total
	}
	if free, held := distance(0), distance(5); held > free/2 {
		t.Errorf("squared distance %v with a proximal term, %v without", held, free)
	}
}

func TestBadJobs(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(*train.Job)
		sentinel error
		word     string
	}{
		"no data":        {func(j *train.Job) { j.Data = nil }, train.ErrJob, "data"},
		"no members":     {func(j *train.Job) { j.Members = nil }, train.ErrJob, "members"},
		"model":          {func(j *train.Job) { j.Model = "gpt" }, model.ErrUnknown, "gpt"},
		"too much":       {func(j *train.Job) { j.Members[0].Contribution = 501 }, dataset.ErrContribution, "north contributes 501 points, expected 0 to 500"},
		"too little":     {func(j *train.Job) { j.Members[0].Contribution = -1 }, dataset.ErrContribution, "north"},
		"data":           {func(j *train.Job) { j.Members[0].Data = 10_000 }, dataset.ErrSplit, "11100 data points"},
		"noise":          {func(j *train.Job) { j.Members[0].Noise.Rate = 2 }, dataset.ErrNoise, "member 1"},
		"nobody":         {func(j *train.Job) { j.Members = j.Members[1:2] }, federated.ErrNobody, "0"},
		"rounds":         {func(j *train.Job) { j.Settings.Rounds = 0 }, federated.ErrSettings, "rounds"},
		"rate":           {func(j *train.Job) { j.Local.Rate = -1 }, federated.ErrSettings, "rate"},
		"diverges":       {func(j *train.Job) { j.Local.Rate = 1e38 }, federated.ErrNotFinite, "north in round 1"},
		"kernel":         {func(j *train.Job) { j.Kernel = "abacus" }, nn.ErrKernel, "abacus"},
		"workers":        {func(j *train.Job) { j.Workers = -1 }, train.ErrJob, "workers"},
		"no such folder": {func(j *train.Job) { j.Checkpoints = "train_test.go/x" }, checkpoint.ErrWrite, "train_test.go"},
	} {
		j := job(t)
		test.change(&j)
		if _, err := train.Run(context.Background(), j); !errors.Is(err, test.sentinel) || !strings.Contains(err.Error(), test.word) {
			t.Errorf("%s: error %v, expected %q with %q", name, err, test.sentinel, test.word)
		}
	}
}

func TestProgress(t *testing.T) {
	j := job(t)
	j.Checkpoints = t.TempDir()
	var first, last, most int64
	j.Progress = func(done, total int64) {
		if first == 0 {
			first = done
		}
		if done <= last {
			t.Errorf("progress goes from %d to %d", last, done)
		}
		last, most = done, total
	}
	j.Settings.Rounds = 2
	run(t, j)
	if want := int64(2 * 2 * 730); last != want || most != want {
		t.Errorf("progress ends at %d of %d, expected %d", last, most, want)
	}
	first, last = 0, 0
	j.Settings.Rounds = 3
	run(t, j)
	if first != 2*2*730 || last != 3*2*730 || most != last {
		t.Errorf("resumed progress goes from %d to %d of %d", first, last, most)
	}
}

func TestResultAsJSON(t *testing.T) {
	j := job(t)
	j.Settings.Rounds = 1
	text, err := json.Marshal(run(t, j))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"dataset", "model", "contributions", "noise", "rounds", "accuracy", "seed", "kernel"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %q in %s", key, text)
		}
	}
}

func TestResume(t *testing.T) {
	want := run(t, job(t))
	j := job(t)
	j.Checkpoints = t.TempDir()
	j.Settings.Rounds = 2
	run(t, j)
	j.Settings.Rounds = 4
	resumed := 0
	j.Resumed = func(rounds []federated.Round) { resumed = len(rounds) }
	if got := run(t, j); !same(got, want) || resumed != 2 {
		t.Errorf("resumed after %d rounds with another result", resumed)
	}
	// Once more: all rounds are there, nothing is left to do.
	if got := run(t, j); !same(got, want) || resumed != 4 {
		t.Errorf("resumed after %d rounds with another result", resumed)
	}
	j.Settings.Rounds = 3
	if _, err := train.Run(context.Background(), j); !errors.Is(err, train.ErrJob) {
		t.Errorf("fewer rounds than there are: error %v", err)
	}
	j.Settings.Rounds = 4
	j.Local.Rate = 0.06
	if _, err := train.Run(context.Background(), j); !errors.Is(err, checkpoint.ErrOther) || !strings.Contains(err.Error(), "local training") {
		t.Errorf("another rate: error %v", err)
	}
}

// A process that is killed in the middle of a round, and again in a later one, ends with the same bytes.
func TestKilled(t *testing.T) {
	if folder := os.Getenv("GRANGE_TEST_KILLED"); folder != "" {
		killedProcess(t, folder)
		return
	}
	whole := job(t)
	whole.Checkpoints = t.TempDir()
	want := run(t, whole)
	folder := t.TempDir()
	for _, round := range []string{"1", "3"} {
		command := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		command.Env = append(os.Environ(), "GRANGE_TEST_KILLED="+folder, "GRANGE_TEST_KILLED_AFTER="+round)
		if output, err := command.CombinedOutput(); err == nil || command.ProcessState.Exited() {
			t.Fatalf("the process was not killed: %v\n%s", err, output)
		}
	}
	j := job(t)
	j.Checkpoints = folder
	resumed := 0
	j.Resumed = func(rounds []federated.Round) { resumed = len(rounds) }
	if got := run(t, j); !same(got, want) {
		t.Error("killed and resumed, other bytes")
	}
	if resumed != 2 {
		t.Errorf("resumed after round %d, expected 2: the third was killed before it was saved", resumed)
	}
	name := "round-000004.checkpoint"
	a, errA := os.ReadFile(filepath.Join(whole.Checkpoints, name))
	b, errB := os.ReadFile(filepath.Join(folder, name))
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the last checkpoints differ (%v, %v)", errA, errB)
	}
}

// killedProcess trains and kills itself when a round is aggregated and not yet saved.
func killedProcess(t *testing.T, folder string) {
	j := job(t)
	j.Checkpoints = folder
	j.Observe = func(o federated.Observation) {
		if fmt.Sprint(o.Round) != os.Getenv("GRANGE_TEST_KILLED_AFTER") {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			t.Error(err)
		}
		select {}
	}
	run(t, j)
}

func Example() {
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := train.Run(context.Background(), train.Job{
		Data:  data,
		Model: "softmax",
		Members: []train.Member{
			{Name: "north", Holding: dataset.Holding{Data: 2000, Contribution: 1000}},
			{Name: "south", Holding: dataset.Holding{Data: 2000, Contribution: 1000, Noise: dataset.Noise{Rate: 0.1}}},
		},
		Settings: federated.Settings{Rounds: 2},
		Local:    federated.Local{Epochs: 1, Rate: 0.01},
		Seed:     1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(result.Rounds), "rounds, accuracy above 0.6:", result.Accuracy > 0.6)
	// Output: 2 rounds, accuracy above 0.6: true
}

// Package train runs one federated training from beginning to end: it deals the data, makes the model, trains it round
// by round, keeps checkpoints, and returns the result. It trains on the CPU, or with another Engine.
//
// It is what a command or an experiment calls. What it joins can be joined differently: package federated takes any
// trainer, and package cpu any shards.
package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"grange/dataset"
	"grange/federated"
	"grange/federated/checkpoint"
	"grange/internal/stream"
	"grange/model"
	"grange/train/cpu"
)

// ErrJob is a job that cannot be run as it is described.
var ErrJob = errors.New("train: invalid job")

// standardModel is the architecture of a job that names none.
const standardModel = "mlp"

// Member is one member of a job.
type Member struct {
	Name string
	// Data, Contribution and Noise say what it has, what of it it contributes, and how wrong its labels are.
	dataset.Holding
}

// Job is one training. The zero value of each option is its default; Data, Members and Settings.Rounds have none.
type Job struct {
	// Data is the data set.
	Data *dataset.Dataset
	// Model is the architecture's name. Default: "mlp".
	Model string
	// Start is how the weights of the model are drawn. Default: model.StartHe.
	Start model.Start
	// Members are the members, in the order of the scenario.
	Members []Member
	// Split says how the training set is dealt to them. Default: uniformly at random.
	Split dataset.Split
	// Settings and Local say how to train.
	Settings federated.Settings
	Local    federated.Local
	// Seed is where all chance comes from.
	Seed uint64
	// Workers is how many processors to keep busy. Default: all. It changes nothing in the result.
	Workers int
	// Kernel is the kernel to compute with. Default: the fastest this CPU has.
	Kernel string
	// Engine makes what trains the members. Default: the CPU, with Workers and Kernel, which other engines do not heed.
	Engine Engine
	// Checkpoints is a folder for the state after every round. A job whose folder holds a state of it goes on from
	// there. Default: none are kept.
	Checkpoints string
	// Observe, if not nil, sees every finished round.
	Observe func(federated.Observation)
	// Progress, if not nil, is told often how many images have been trained on in all rounds so far, of how many; calls
	// come one after another, from several goroutines.
	Progress func(done, total int64)
	// Resumed, if not nil, is told the rounds that a checkpoint brought, before training goes on.
	Resumed func([]federated.Round)
}

// Engine makes trainers. An engine serves any number of jobs, also at once.
type Engine interface {
	// Trainer makes what trains members with the given shards of a data set. It tells progress, now and then, how many
	// more images have been trained on.
	Trainer(ctx context.Context, spec model.Spec, data *dataset.Dataset, shards []dataset.Shard, local federated.Local,
		progress func(images int)) (Trainer, error)
}

// Trainer trains members and scores models.
type Trainer interface {
	federated.Trainer
	federated.Evaluator
	// Kernel names what computes, for the record.
	Kernel() string
}

// Result is the outcome of a job.
type Result struct {
	Dataset       string    `json:"dataset"`
	Model         string    `json:"model"`
	Contributions []int     `json:"contributions"` // data points used
	Noise         []float64 `json:"noise"`
	// Declared is how many data points members of a federation had declared, if they did not use all of them.
	Declared []int `json:"declared,omitempty"`
	federated.Result
}

// Run does a job.
func Run(ctx context.Context, job Job) (*Result, error) {
	job, spec, err := job.prepare()
	if err != nil {
		return nil, err
	}
	for _, member := range job.Members {
		if member.Contribution > member.Data || member.Contribution < 0 {
			return nil, fmt.Errorf("%w: %s contributes %d points, expected 0 to %d, as many as it has",
				dataset.ErrContribution, member.Name, member.Contribution, member.Data)
		}
	}
	shards, err := job.Split.Shards(job.Data, job.Holdings(), job.Seed)
	if err != nil {
		return nil, err
	}
	meter := newMeter(job)
	trainer, err := job.engine().Trainer(ctx, spec, job.Data, shards, job.Local, meter.add)
	if err != nil {
		return nil, err
	}
	run := federated.Run{
		Settings: job.Settings, Local: job.Local, Seed: job.Seed, Kernel: trainer.Kernel(),
		Trainer: trainer, Evaluator: trainer, Observe: job.Observe,
	}
	for _, member := range job.Members {
		run.Members = append(run.Members, federated.Member{Name: member.Name, Contribution: member.Contribution})
	}
	state := federated.State{Weights: job.initial(spec), Warnings: job.Data.Warnings}
	if job.Checkpoints != "" {
		if state, err = job.resume(&run, state, spec); err != nil {
			return nil, err
		}
	}
	meter.skip(len(state.Rounds))
	trained, err := run.From(ctx, state)
	if err != nil {
		return nil, err
	}
	return job.Result(trained), nil
}

// Holdings are what the members have, in order.
func (j Job) Holdings() []dataset.Holding {
	holdings := make([]dataset.Holding, len(j.Members))
	for i, member := range j.Members {
		holdings[i] = member.Holding
	}
	return holdings
}

// Result is the outcome of the job when its training had this one.
func (j Job) Result(trained *federated.Result) *Result {
	if j.Model == "" {
		j.Model = standardModel
	}
	result := &Result{Dataset: j.Data.Name, Model: j.Model, Result: *trained}
	for _, member := range j.Members {
		result.Contributions = append(result.Contributions, member.Contribution)
		result.Noise = append(result.Noise, member.Noise.Share())
	}
	return result
}

// initial is the model that a training begins with.
func (j Job) initial(spec model.Spec) *model.Weights {
	return model.Init(spec, stream.New(j.Seed, "initial weights"))
}

func (j Job) engine() Engine {
	if j.Engine == nil {
		return processors{j.Workers, j.Kernel}
	}
	return j.Engine
}

// CPU is the engine that trains on this machine's processors: with so many of them (0: all) and a kernel ("": the fastest).
func CPU(workers int, kernel string) Engine { return processors{workers, kernel} }

// processors is the engine that trains on the CPU.
type processors struct {
	workers int
	kernel  string
}

func (p processors) Trainer(_ context.Context, spec model.Spec, data *dataset.Dataset, shards []dataset.Shard,
	local federated.Local, progress func(int)) (Trainer, error) {
	return cpu.New(cpu.Config{
		Spec: spec, Data: data, Shards: shards, Batch: local.Batch, Workers: p.workers, Kernel: p.kernel, Progress: progress,
	})
}

// prepare fills in defaults and makes the architecture.
func (j Job) prepare() (Job, model.Spec, error) {
	var spec model.Spec
	if j.Data == nil {
		return j, spec, fmt.Errorf("%w: no data set", ErrJob)
	}
	if len(j.Members) == 0 {
		return j, spec, fmt.Errorf("%w: no members", ErrJob)
	}
	if j.Model == "" {
		j.Model = standardModel
	}
	if j.Workers == 0 {
		j.Workers = runtime.GOMAXPROCS(0)
	}
	if j.Workers < 0 {
		return j, spec, fmt.Errorf("%w: %d workers, expected at least 1", ErrJob, j.Workers)
	}
	if j.Settings.GlobalRate == 0 {
		j.Settings.GlobalRate = 1
	}
	var err error
	if j.Local, err = j.Local.Defaults(); err != nil {
		return j, spec, err
	}
	spec, err = model.New(j.Model, model.Shape(j.Data.Shape()), len(j.Data.Classes))
	spec.Start = j.Start
	return j, spec, err
}

// resume opens the folder of checkpoints and returns the state to start from.
func (j Job) resume(run *federated.Run, fresh federated.State, spec model.Spec) (federated.State, error) {
	identity, err := j.Identity()
	if err != nil {
		return fresh, err
	}
	store, err := checkpoint.Open(j.Checkpoints, identity)
	if err != nil {
		return fresh, err
	}
	there, err := store.Load(spec)
	if err != nil {
		return fresh, err
	}
	run.Save = store.Save
	if there == nil {
		return fresh, nil
	}
	if len(there.Rounds) > j.Settings.Rounds {
		return fresh, fmt.Errorf("%w: the checkpoint in %s is of round %d, and only %d are asked for; choose another folder",
			ErrJob, j.Checkpoints, len(there.Rounds), j.Settings.Rounds)
	}
	if j.Resumed != nil {
		j.Resumed(there.Rounds)
	}
	return *there, nil
}

// meter adds up progress.
type meter struct {
	mutex       sync.Mutex
	perRound    int64
	done, total int64
	report      func(done, total int64)
}

func newMeter(job Job) *meter {
	m := &meter{report: job.Progress}
	for _, member := range job.Members {
		m.perRound += int64(member.Contribution) * int64(job.Local.Epochs)
	}
	m.total = m.perRound * int64(job.Settings.Rounds)
	return m
}

// skip counts rounds that an earlier run has done.
func (m *meter) skip(rounds int) { m.add(rounds * int(m.perRound)) }

func (m *meter) add(images int) {
	if m.report == nil || images == 0 {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.done += int64(images)
	m.report(m.done, m.total)
}

// Identity is all that determines the result of a job, but for the number of rounds.
func (j Job) Identity() (checkpoint.Identity, error) {
	j, _, err := j.prepare()
	if err != nil {
		return nil, err
	}
	identity := checkpoint.Identity{
		"data set":    j.Data.Fingerprint(),
		"model":       j.Model,
		"seed":        fmt.Sprint(j.Seed),
		"split":       fmt.Sprintf("%v %v", j.Split.Method, j.Split.Concentration),
		"global rate": fmt.Sprint(j.Settings.GlobalRate),
		"on failure":  fmt.Sprint(int(j.Settings.OnFailure)),
	}
	if j.Start != model.StartHe {
		identity["start"] = string(j.Start)
	}
	for key, value := range map[string]any{"members": j.Members, "local training": j.Local} {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrJob, err)
		}
		identity[key] = string(text)
	}
	return identity, nil
}

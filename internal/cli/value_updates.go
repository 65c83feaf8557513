package cli

import (
	"context"
	"fmt"

	"grange/dataset"
	"grange/federated"
	"grange/lab/updates"
	"grange/model"
	"grange/scenario"
	"grange/train"
	"grange/train/cpu"
	"grange/valuation"
	"grange/valuation/reconstruct"
)

// updateSaver returns what saves the rounds of a job to a folder, and what
// tells whether that failed; a failure also ends the context it returns. Without
// a folder nothing is saved.
func (a *app) updateSaver(ctx context.Context, s *scenario.Scenario, job train.Job, folder string) (save func(*federated.Aggregate), failed func() error, _ context.Context) {
	if folder == "" {
		return func(*federated.Aggregate) {}, func() error { return nil }, ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var failure error
	fail := func(err error) {
		if err != nil && failure == nil {
			failure = err
			cancel(err)
		}
	}
	var w *updates.Writer
	m, err := manifest(s, job)
	if err == nil {
		w, err = updates.Create(folder, m)
	}
	fail(err)
	save = func(round *federated.Aggregate) {
		if failure == nil {
			fail(w.Save(round))
		}
	}
	return save, func() error { return failure }, ctx
}

// manifest says what a job trains.
func manifest(s *scenario.Scenario, job train.Job) (updates.Manifest, error) {
	identity, err := job.Identity()
	if err != nil {
		return updates.Manifest{}, err
	}
	m := updates.Manifest{
		Scenario: s.Name, Dataset: s.Training.Dataset, Fingerprint: job.Data.Fingerprint(), Model: job.Model,
		Rounds: job.Settings.Rounds, GlobalRate: job.Settings.GlobalRate, Seed: job.Seed, Identity: identity,
	}
	for _, member := range job.Members {
		m.Members = append(m.Members, member.Name)
		m.Contributions = append(m.Contributions, member.Contribution)
	}
	return m, nil
}

// evaluator reads the data set of a folder of updates and returns what scores
// models on its test set, and by which kernel.
func (a *app) evaluator(ctx context.Context, f *updates.Folder, flags valueFlags) (score reconstruct.Evaluate, kernel string, err error) {
	data, err := dataset.Open(ctx, f.Dataset, dataset.Options{Directory: a.dataDirectory(flags.data)})
	if err != nil {
		return nil, "", err
	}
	if data.Fingerprint() != f.Fingerprint {
		return nil, "", &hintError{
			err: fmt.Errorf("the data set %s is not the one the updates were trained on", f.Dataset), code: exitFailed,
			try: "name the folder with that data set: --data DIR",
		}
	}
	spec, err := model.New(f.Model, model.Shape(data.Shape()), len(data.Classes))
	if err != nil {
		return nil, "", err
	}
	f.Use(spec)
	trainer, err := cpu.New(cpu.Config{Spec: spec, Data: data, Workers: flags.workers})
	if err != nil {
		return nil, "", err
	}
	return func(ctx context.Context, flat []float32) (float64, error) {
		for _, x := range flat {
			if x-x != 0 { // it would count as a model that always guesses the same
				return 0, fmt.Errorf("%w: a weight of its model is %v", valuation.ErrNotFinite, x)
			}
		}
		weights, err := model.WeightsFrom(spec, flat)
		if err != nil {
			return 0, err
		}
		score, err := trainer.Evaluate(ctx, weights)
		return score.Accuracy, err
	}, trainer.Kernel(), nil
}

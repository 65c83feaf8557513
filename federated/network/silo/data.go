package silo

import (
	"context"
	"fmt"

	"grange/dataset"
	"grange/train"
)

// Everything contributes all data points that a silo has.
const Everything = -1

// Source is the data that a silo trains on.
type Source struct {
	// Name is the data set: folder:PATH for the silo's own, or a public one's name for the part of it that the scenario
	// deals to the silo in a trial. Options say where it is.
	Name    string
	Options dataset.Options
	// Contribution is how many data points to train on, or Everything.
	Contribution int
	// Engine trains. Default: the CPU.
	Engine train.Engine
	// Progress, if not nil, is told now and then how many more images have been trained on.
	Progress func(images int)
}

// Prepare reads the data, chooses what of it is contributed, and makes what trains: it is for Runner.Prepare.
func (s Source) Prepare(ctx context.Context, terms Terms) (*Prepared, error) {
	reference, err := dataset.Parse(s.Name)
	if err != nil {
		return nil, err
	}
	own := reference.Name == "folder"
	if !own && reference.Name != terms.Data.Name {
		return nil, fmt.Errorf("%w: the data are %s, and %s trains on %s", ErrTerms, reference.Name, terms.Scenario, terms.Data.Name)
	}
	data, err := dataset.Open(ctx, s.Name, s.Options)
	if err != nil {
		return nil, err
	}
	var shard dataset.Shard
	var has int
	if own {
		shard, has, err = s.owned(data, terms)
	} else {
		shard, has, err = s.dealt(data, terms)
	}
	if err != nil {
		return nil, err
	}
	engine := s.Engine
	if engine == nil {
		engine = train.CPU(0, "")
	}
	progress := s.Progress
	if progress == nil {
		progress = func(int) {}
	}
	// The trainer knows this member's data and nobody else's.
	shards := make([]dataset.Shard, len(terms.Deal.Data))
	shards[terms.Member] = shard
	trainer, err := engine.Trainer(ctx, terms.Spec, data, shards, terms.Local, progress)
	if err != nil {
		return nil, err
	}
	return &Prepared{Trainer: trainer, Contribution: len(shard.Points), Data: has, Kernel: trainer.Kernel()}, nil
}

// contribution is how many of so many data points are contributed.
func (s Source) contribution(has int) (int, error) {
	switch {
	case s.Contribution == Everything:
		return has, nil
	case s.Contribution < 0 || s.Contribution > has:
		return 0, fmt.Errorf("%w: %d data points, the silo has %d", dataset.ErrContribution, s.Contribution, has)
	}
	return s.Contribution, nil
}

// owned is the contribution from the silo's own data: some of its training images, with the labels they have.
func (s Source) owned(data *dataset.Dataset, terms Terms) (dataset.Shard, int, error) {
	if err := data.Conform(terms.Data.Shape, terms.Data.Classes, terms.Data.Moments); err != nil {
		return dataset.Shard{}, 0, err
	}
	has := data.Train.Len()
	contribution, err := s.contribution(has)
	if err != nil {
		return dataset.Shard{}, 0, err
	}
	shards, err := dataset.Split{}.Shards(data, []dataset.Holding{{Data: has, Contribution: contribution}}, terms.Seed)
	if err != nil {
		return dataset.Shard{}, 0, err
	}
	return shards[0], has, nil
}

// dealt is the contribution from the part of the public data set that the scenario deals to the silo.
func (s Source) dealt(data *dataset.Dataset, terms Terms) (dataset.Shard, int, error) {
	if got := data.Fingerprint(); got != terms.Data.Fingerprint {
		return dataset.Shard{}, 0, fmt.Errorf("%w: this %s is not the coordinator's %s: fingerprint %.12s…, expected %.12s…",
			ErrTerms, terms.Data.Name, terms.Data.Name, got, terms.Data.Fingerprint)
	}
	has := terms.Deal.Data[terms.Member]
	contribution, err := s.contribution(has)
	if err != nil {
		return dataset.Shard{}, 0, err
	}
	partition, err := terms.Deal.Split.Deal(data.Train.Labels, len(data.Classes), terms.Deal.Data, terms.Seed)
	if err != nil {
		return dataset.Shard{}, 0, err
	}
	points, err := partition.Subset(terms.Member, contribution)
	if err != nil {
		return dataset.Shard{}, 0, err
	}
	labels, err := terms.Deal.Noise.Labels(data.Train.Labels, points, len(data.Classes), terms.Seed, terms.Member)
	return dataset.Shard{Points: points, Labels: labels}, has, err
}

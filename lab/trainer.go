package lab

import (
	"context"
	"fmt"
	"time"

	"grange/dataset"
	"grange/federated"
	"grange/model"
	"grange/train"
)

// CPU returns a Trainer that trains on the CPU with the given data set, each
// cell on so many cores. The number of cores does not change the result.
func CPU(data *dataset.Dataset, cores int, now func() time.Time) Trainer {
	return trainer("cpu", nil, data, cores, now)
}

// With returns a Trainer that trains with an engine, which backend names.
func With(backend string, engine train.Engine, data *dataset.Dataset, now func() time.Time) Trainer {
	return trainer(backend, engine, data, 1, now)
}

func trainer(backend string, engine train.Engine, data *dataset.Dataset, cores int, now func() time.Time) Trainer {
	return func(ctx context.Context, c Cell) (Outcome, error) {
		job := train.Job{
			Data:     data,
			Model:    c.Model,
			Start:    model.Start(c.Start),
			Settings: federated.Settings{Rounds: c.Rounds, GlobalRate: c.GlobalRate},
			Local:    c.local(),
			Seed:     c.Seed,
			Workers:  cores,
			Engine:   engine,
		}
		if c.Split.Kind == "dirichlet" {
			job.Split = dataset.Split{Method: dataset.Dirichlet, Concentration: c.Split.Alpha}
		}
		for n, s := range c.Contributions {
			noise := dataset.Noise{Rate: c.Noise[n]}
			if n < len(c.Transitions) && c.Transitions[n] != nil {
				noise = dataset.Noise{Transition: c.Transitions[n]}
			}
			job.Members = append(job.Members, train.Member{
				Name:    fmt.Sprintf("member %d", n+1),
				Holding: dataset.Holding{Data: int(c.Capacities[n]), Contribution: int(s), Noise: noise},
			})
		}
		began := now()
		result, err := train.Run(ctx, job)
		if err != nil {
			return Outcome{}, err
		}
		o := Outcome{
			Accuracy: result.Accuracy, Backend: backend, Kernel: result.Kernel,
			Seconds: now().Sub(began).Round(time.Millisecond).Seconds(),
		}
		for _, r := range result.Rounds {
			o.Rounds = append(o.Rounds, Round{Round: r.Round, Accuracy: r.Accuracy, Loss: r.Loss})
		}
		return o, nil
	}
}

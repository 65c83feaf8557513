package train

import (
	"context"
	"slices"

	"grange/federated/network"
)

// Federate describes a job to a federation whose members are elsewhere. What they contribute is for them to say, so the
// job's contributions are not heeded; where they say the same, the result is that of Run to the byte. Left to fill in are
// the scenario's name and text, the policy, and where everything is kept.
func Federate(ctx context.Context, job Job) (network.Config, error) {
	job, spec, err := job.prepare()
	if err != nil {
		return network.Config{}, err
	}
	// Nobody trains here, but the result of every round is scored.
	evaluator, err := job.engine().Trainer(ctx, spec, job.Data, nil, job.Local, func(int) {})
	if err != nil {
		return network.Config{}, err
	}
	undeclared := job
	undeclared.Members = slices.Clone(job.Members)
	for i := range undeclared.Members {
		undeclared.Members[i].Contribution = 0
	}
	identity, err := undeclared.Identity()
	if err != nil {
		return network.Config{}, err
	}
	config := network.Config{
		RunInfo:  network.RunInfo{Identity: identity, Rounds: job.Settings.Rounds},
		Settings: job.Settings, Local: job.Local, Seed: job.Seed, Spec: spec, Initial: job.initial(spec),
		Evaluator: evaluator, Kernel: evaluator.Kernel(), Warnings: job.Data.Warnings,
	}
	for _, member := range job.Members {
		config.Members = append(config.Members, member.Name)
	}
	return config, nil
}

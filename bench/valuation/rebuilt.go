package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"grange/dataset"
	"grange/federated"
	"grange/game"
	"grange/model"
	"grange/train"
	"grange/train/cpu"
	"grange/valuation"
	"grange/valuation/reconstruct"
)

// regime is a way of training together, by five members on the built-in images.
type regime struct {
	name          string
	sizes         []int
	noise         []float64
	rounds, epoch int
	batch         int
	rate          float64
}

var (
	alike  = []int{1000, 1000, 1000, 1000, 1000}
	spread = []float64{0, 0, 0.1, 0.2, 0.4}
	clean  = make([]float64, 5)
)

// regimes go from few long rounds to many short ones.
var regimes = []regime{
	{"few long rounds, wrong labels", alike, spread, 4, 3, 50, 0.05},
	{"few long rounds, sizes", []int{400, 700, 1000, 1300, 1600}, clean, 4, 3, 50, 0.05},
	{"few long rounds, both", []int{300, 600, 1000, 1300, 1800}, []float64{0, 0.2, 0, 0.4, 0.1}, 4, 3, 50, 0.05},
	{"short rounds, wrong labels", alike, spread, 10, 1, 50, 0.1},
	{"short rounds, last batch cut short", []int{400, 700, 1000, 1300, 1600}, clean, 10, 1, 64, 0.1},
	{"small members, long rounds", []int{200, 200, 200, 200, 200}, spread, 10, 5, 64, 0.1},
}

// compareRebuilt trains all 31 coalitions of every regime and prints how far
// the methods that train nothing are from that.
func compareRebuilt(ctx context.Context, out io.Writer, seeds int) error {
	data, err := dataset.Open(ctx, "fashion", dataset.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Points of share from retraining, mean of %d seeds: largest (mean over members), rank agreement\n", seeds)
	for _, r := range regimes {
		sum := map[string]valuation.Judgement{}
		var order []string
		retraining, rebuilding := 0.0, 0.0
		for seed := range seeds {
			o, err := r.compare(ctx, data, uint64(seed+1))
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			order = o.order
			for name, j := range o.judged {
				total := sum[name]
				total.Share += j.Share / float64(seeds)
				total.Shares += j.Shares / float64(seeds)
				total.Ranks += j.Ranks / float64(seeds)
				sum[name] = total
			}
			retraining += o.retraining / float64(seeds)
			rebuilding += o.rebuilding / float64(seeds)
		}
		fmt.Fprintf(out, "%s: %d rounds × %d epochs, batch %d, rate %g; retraining %.0f s, rebuilding %.0f s\n", r.name, r.rounds, r.epoch, r.batch, r.rate, retraining, rebuilding)
		for _, name := range order {
			j := sum[name]
			fmt.Fprintf(out, "  %-12s %5.1f (%.1f)  %5.2f\n", name, 100*j.Share, 100*j.Shares, j.Ranks)
		}
	}
	return nil
}

// judged is every method's distance from retraining.
type judged struct {
	order                  []string
	judged                 map[string]valuation.Judgement
	retraining, rebuilding float64 // seconds
}

func (r regime) compare(ctx context.Context, data *dataset.Dataset, seed uint64) (*judged, error) {
	n := len(r.sizes)
	everyone := valuation.Everyone(n)
	truth := make(valuation.Table, 1<<n)
	recording := &reconstruct.Recording{}
	for i := range n {
		recording.Names = append(recording.Names, fmt.Sprint("member ", i+1))
	}
	begin := time.Now()
	for c := everyone; c > 0; c-- {
		job := r.job(data, c, seed)
		if c == everyone {
			job.Observe = func(o federated.Observation) { recording.Finished = append(recording.Finished, r.round(o.Aggregate)) }
		}
		result, err := train.Run(ctx, job)
		if err != nil {
			return nil, err
		}
		truth[c] = result.Accuracy
	}
	o := &judged{judged: map[string]valuation.Judgement{}, retraining: time.Since(begin).Seconds()}
	begin = time.Now()
	evaluate, err := evaluator(data)
	if err != nil {
		return nil, err
	}
	if truth[0], err = evaluate(ctx, recording.Finished[0].Global); err != nil {
		return nil, err
	}
	want, err := valuation.Shapley(truth)
	if err != nil {
		return nil, err
	}
	shares := game.Shares(want, game.Clip)
	add := func(name string, values []float64) {
		o.order = append(o.order, name)
		o.judged[name] = valuation.Judge(values, game.Shares(values, game.Clip), want, shares)
	}
	equal := make([]float64, n)
	for i := range equal {
		equal[i] = 1
	}
	add("equal shares", equal)
	gtg, err := reconstruct.GTG{Settings: valuation.Settings{Seed: seed}}.Value(ctx, recording, evaluate)
	if err != nil {
		return nil, err
	}
	add("gtg", gtg.Values)
	rounds, err := reconstruct.MultiRound{}.Value(ctx, recording, evaluate)
	if err != nil {
		return nil, err
	}
	add("multi-round", rounds.Values)
	for _, way := range []struct {
		name  string
		carry float64
	}{{"one-round", 1}, {"replay", reconstruct.DefaultCarry}} {
		g, err := reconstruct.Replay{Carry: way.carry}.Game(ctx, recording, evaluate)
		if err != nil {
			return nil, err
		}
		table, err := valuation.Tabulation{}.Table(ctx, g)
		if err != nil {
			return nil, err
		}
		values, err := valuation.Shapley(table)
		if err != nil {
			return nil, err
		}
		add(way.name, values)
	}
	o.rebuilding = time.Since(begin).Seconds()
	return o, nil
}

// job trains one coalition.
func (r regime) job(data *dataset.Dataset, c valuation.Coalition, seed uint64) train.Job {
	job := train.Job{Data: data, Model: "mlp", Seed: seed, Settings: federated.Settings{Rounds: r.rounds},
		Local: federated.Local{Epochs: r.epoch, Batch: r.batch, Rate: r.rate}}
	for i, size := range r.sizes {
		m := train.Member{Name: fmt.Sprint("member ", i+1), Holding: dataset.Holding{Data: size, Noise: dataset.Noise{Rate: r.noise[i]}}}
		if c.Has(i) {
			m.Contribution = size
		}
		job.Members = append(job.Members, m)
	}
	return job
}

// round keeps what the members uploaded.
func (r regime) round(a *federated.Aggregate) reconstruct.Round {
	round := reconstruct.Round{Global: a.Before.Flat, Updates: make([][]float32, len(r.sizes)), Weights: make([]float64, len(r.sizes))}
	for _, u := range a.Updates {
		round.Updates[u.Member], round.Weights[u.Member] = u.Weights.Flat, float64(r.sizes[u.Member])
	}
	return round
}

// evaluator scores models on the test images.
func evaluator(data *dataset.Dataset) (reconstruct.Evaluate, error) {
	spec, err := model.New("mlp", model.Shape(data.Shape()), len(data.Classes))
	if err != nil {
		return nil, err
	}
	trainer, err := cpu.New(cpu.Config{Spec: spec, Data: data})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, flat []float32) (float64, error) {
		weights, err := model.WeightsFrom(spec, flat)
		if err != nil {
			return 0, err
		}
		score, err := trainer.Evaluate(ctx, weights)
		return score.Accuracy, err
	}, nil
}

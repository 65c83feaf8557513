package train_test

import (
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/federated/network/store"
	"grange/model"
	"grange/train"
	"grange/train/cpu"
)

// A federation of the same job ends with the same bytes as training in one process.
func TestFederatedAndInOneProcess(t *testing.T) {
	j := job(t)
	want := run(t, j)
	config, err := train.Federate(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	record, err := store.Create(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	config.Name, config.Record = "test", record
	if config.Objects, err = objects.Open(folder); err != nil {
		t.Fatal(err)
	}
	federation, err := network.Open(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	shards, err := j.Split.Shards(j.Data, j.Holdings(), j.Seed)
	if err != nil {
		t.Fatal(err)
	}
	trainer, err := cpu.New(cpu.Config{Spec: config.Spec, Data: j.Data, Shards: shards, Batch: config.Local.Batch})
	if err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	for i, member := range j.Members {
		group.Go(func() error {
			d := network.Declaration{Member: i, Contribution: member.Contribution, Data: member.Data, Transport: "test"}
			if err := federation.Declare(ctx, d); err != nil {
				return err
			}
			for {
				next, err := federation.Next(ctx, i)
				if err != nil || next.Done {
					return err
				}
				update, err := trainer.Train(ctx, next.Task)
				if err != nil {
					return err
				}
				file, err := federation.Objects().Put(func(w io.Writer) error { return model.WriteSafetensors(w, update.Weights, nil) })
				if err != nil {
					return err
				}
				err = federation.Deliver(ctx, network.Delivery{
					Round: update.Round, Member: i, Update: file, Examples: next.Task.Contribution, Loss: update.Loss,
				})
				if err != nil {
					return err
				}
			}
		})
	}
	trained, err := federation.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	got := j.Result(trained)
	if !slices.Equal(got.Weights.Flat, want.Weights.Flat) {
		t.Error("other weights")
	}
	got.Weights, want.Weights = nil, nil
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error(diff)
	}
}

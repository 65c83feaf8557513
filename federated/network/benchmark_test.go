package network_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/model"
)

// nothing scores no model.
type nothing struct{}

func (nothing) Evaluate(context.Context, *model.Weights) (federated.Score, error) {
	return federated.Score{}, nil
}

// BenchmarkRound is what a round costs the coordinator, with five updates of ResNet-18's size that are there already: they
// are inspected, averaged from their files, and the result is written.
func BenchmarkRound(b *testing.B) {
	spec, err := model.New("resnet18", model.Shape{Channels: 3, Height: 32, Width: 32}, 10)
	if err != nil {
		b.Fatal(err)
	}
	store, err := objects.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	members := []string{"one", "two", "three", "four", "five"}
	weights := model.Init(spec, rand.New(rand.NewPCG(1, 2)))
	f, err := network.Open(b.Context(), network.Config{
		RunInfo: network.RunInfo{Members: members, Rounds: 1 << 30}, Spec: spec, Initial: weights.Clone(),
		Evaluator: nothing{}, Record: &memory{}, Objects: store,
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	for member := range members {
		if err := f.Declare(b.Context(), network.Declaration{Member: member, Contribution: 10, Data: 10}); err != nil {
			b.Fatal(err)
		}
	}
	go func() {
		defer close(done)
		if _, err := f.Run(ctx); !errors.Is(err, context.Canceled) {
			b.Error(err)
		}
	}()
	b.SetBytes(int64(len(members)) * 4 * int64(spec.Size()))
	for b.Loop() {
		b.StopTimer()
		deliveries := make([]network.Delivery, len(members))
		for member := range members {
			assignment, err := f.Next(b.Context(), member)
			if err != nil {
				b.Fatal(err)
			}
			weights.Flat[0]++
			digest, err := store.Put(func(out io.Writer) error { return model.WriteSafetensors(out, weights, nil) })
			if err != nil {
				b.Fatal(err)
			}
			deliveries[member] = network.Delivery{Round: assignment.Task.Round, Member: member, Update: digest, Examples: 10}
		}
		b.StartTimer()
		for _, d := range deliveries {
			if err := f.Deliver(b.Context(), d); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := f.Next(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	<-done
}

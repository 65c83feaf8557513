package train_test

import (
	"context"
	"fmt"
	"testing"

	"grange/dataset"
	"grange/federated"
	"grange/train"
)

// BenchmarkFiveMembers trains five members for one round of five epochs. With two processors it should be nearly twice
// as fast with two workers as with one, although five is odd:
//
//	go test ./train -run '^$' -bench FiveMembers -count 6
func BenchmarkFiveMembers(b *testing.B) {
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for _, test := range []struct {
		model        string
		contribution int
	}{{"mlp", 2000}, {"cnn", 320}} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", test.model, workers), func(b *testing.B) {
				j := train.Job{Data: data, Model: test.model, Workers: workers, Settings: federated.Settings{Rounds: 1}}
				for i := range 5 {
					holding := dataset.Holding{Data: test.contribution, Contribution: test.contribution}
					j.Members = append(j.Members, train.Member{Name: fmt.Sprint("member ", i+1), Holding: holding})
				}
				for b.Loop() {
					run(b, j)
				}
				images := 5 * 5 * test.contribution * b.N
				b.ReportMetric(float64(images)/b.Elapsed().Seconds(), "images/s")
			})
		}
	}
}

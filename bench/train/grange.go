package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"grange/internal/fmapeak"
	"grange/model"
	"grange/nn"
)

// slice is how long one turn lasts, about.
const slice = 300 * time.Millisecond

// tooLong is the time of a step from which on the first one has to do.
const tooLong = 10 * time.Second

// trainer is one network with its weights and a batch to train on.
type trainer struct {
	network *nn.Network
	weights *model.Weights
	x       []float32
	labels  []uint8
}

func newTrainer(name, kernel string, batch int, seed uint64) (*trainer, error) {
	shape := model.Shape{Channels: 1, Height: 28, Width: 28}
	if name == "resnet18" {
		shape = model.Shape{Channels: 3, Height: 32, Width: 32}
	}
	spec, err := model.New(name, shape, 10)
	if err != nil {
		return nil, err
	}
	network, err := nn.New(spec, batch, nn.Options{Kernel: kernel})
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 0))
	t := &trainer{network, model.Init(spec, random), make([]float32, batch*shape.Size()), make([]uint8, batch)}
	for i := range t.x {
		t.x[i] = float32(random.NormFloat64())
	}
	for i := range t.labels {
		t.labels[i] = uint8(random.IntN(10))
	}
	return t, nil
}

func (t *trainer) run(steps int) {
	for range steps {
		t.network.Step(t.weights, t.x, t.labels, nn.SGD{Rate: 0.01})
	}
}

// team trains several networks side by side.
type team []*trainer

func (t team) run(steps int) time.Duration {
	start, used := time.Now(), processorTime()
	var wait sync.WaitGroup
	for _, member := range t {
		wait.Go(func() { member.run(steps) })
	}
	wait.Wait()
	if len(t) == 1 {
		return processorTime() - used
	}
	return time.Since(start)
}

// compare measures one model with every kernel and with JAX, in turns.
func compare(name string, cores, batch, turns int, peer *jax) (rates []float64, peerRate float64, err error) {
	var teams []team
	var steps []int
	for _, kernel := range nn.Kernels() {
		var t team
		for i := range cores {
			member, err := newTrainer(name, kernel, batch, uint64(i))
			if err != nil {
				return nil, 0, err
			}
			t = append(t, member)
		}
		first := t.run(1)
		rates = append(rates, float64(len(t)*batch)/first.Seconds())
		teams = append(teams, t)
		if first > tooLong {
			steps = append(steps, 0)
			continue
		}
		steps = append(steps, max(1, int(slice/t.run(1))))
	}
	peerSteps := 0
	if peer != nil {
		if peerSteps, err = peer.prepare(name, batch); err != nil {
			return nil, 0, err
		}
	}
	for range turns {
		for i, t := range teams {
			if steps[i] == 0 {
				continue
			}
			images := float64(len(t) * steps[i] * batch)
			rates[i] = max(rates[i], images/t.run(steps[i]).Seconds())
		}
		if peer != nil {
			seconds, err := peer.run(name, peerSteps, cores == 1)
			if err != nil {
				return nil, 0, err
			}
			peerRate = max(peerRate, float64(peerSteps*batch)/seconds)
		}
	}
	return rates, peerRate, nil
}

// matrixTable prints the matrix product's share of the arithmetic peak.
func matrixTable(turns int) error {
	_, instructions := fmapeak.Peak()
	fmt.Printf("Matrix product on one core, share of the measured multiply-add peak (%s), best of %d turns\n",
		instructions, 8*turns)
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "kernel\tsize\tGFLOP/s\tpeak\tshare\t")
	for _, kernel := range nn.Kernels() {
		m, err := nn.NewMultiplier(kernel)
		if err != nil {
			return err
		}
		for _, n := range []int{256, 1024} {
			a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
			for i := range a {
				a[i], b[i] = float32(i%7)-3, float32(i%5)-2
			}
			var rate, peak float64
			for range 8 * turns {
				p, _ := fmapeak.Peak()
				peak = max(peak, p)
				start := processorTime()
				m.Multiply(c, a, b, n, n, n)
				rate = max(rate, 2*float64(n)*float64(n)*float64(n)/(processorTime()-start).Seconds())
				if kernel == "portable" && n == 1024 {
					break
				}
			}
			share := "-"
			if peak > 0 {
				share = fmt.Sprintf("%.0f%%", 100*rate/peak)
			}
			fmt.Fprintf(table, "%s\t%d³\t%.1f\t%.1f\t%s\t\n", kernel, n, rate/1e9, peak/1e9, share)
		}
	}
	return table.Flush()
}

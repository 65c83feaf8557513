package xla

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"

	"grange/train/xla/pjrt"
	"grange/train/xla/program"
)

// card is a machine on a device: images and programs that stay there.
type card struct {
	with     setup
	device   *pjrt.Device
	images   [2]*pjrt.Buffer // for training and for scoring
	scale    *pjrt.Buffer
	programs map[string]*pjrt.Program
}

func (c *card) setup(s setup, train, test []byte, scale []float32) (string, error) {
	device, err := pjrt.Open(s.Plugin)
	if err != nil {
		return "", err
	}
	c.with, c.device, c.programs = s, device, map[string]*pjrt.Program{}
	in := s.Spec.Input
	for i, pixels := range [][]byte{train, test} {
		count := []int{s.TrainImages, s.TestImages}[i]
		if len(pixels) != count*in.Size() || count == 0 || len(scale) != 2*in.Channels {
			return "", fmt.Errorf("%w: %d bytes for %d images of %v", errProtocol, len(pixels), count, in)
		}
		if c.images[i], err = pjrt.Upload(device, pixels, count, in.Height, in.Width, in.Channels); err != nil {
			return "", err
		}
	}
	c.scale, err = pjrt.Upload(device, scale, 2, in.Channels)
	return device.Version, err
}

func (c *card) prepare(momentum, proximal bool) error {
	if _, err := c.trainer(momentum, proximal); err != nil {
		return err
	}
	_, err := c.scorer()
	return err
}

// options are those of the training program.
func (c *card) options() program.Options {
	return program.Options{
		Images: c.with.TrainImages, Batch: c.with.Batch, Steps: c.with.Steps, Precision: c.with.Precision,
	}
}

func (c *card) trainer(momentum, proximal bool) (*pjrt.Program, error) {
	o := c.options()
	o.Momentum, o.Proximal = momentum, proximal
	results := 2
	if momentum {
		results++
	}
	return c.program(program.Train(c.with.Spec, o), results)
}

func (c *card) scorer() (*pjrt.Program, error) {
	o := c.options()
	o.Images, o.Batch, o.Steps = c.with.TestImages, scoreBatch, scoreSteps
	return c.program(program.Score(c.with.Spec, o), 2)
}

// program returns a compiled program: one that was used before, one from the cache, or a new one.
func (c *card) program(text string, results int) (*pjrt.Program, error) {
	digest := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", c.device.Version, os.Getenv("XLA_FLAGS"), text))
	key := hex.EncodeToString(digest[:16])
	if p := c.programs[key]; p != nil {
		return p, nil
	}
	file := filepath.Join(c.with.Cache, key+".xla")
	saved, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("xla: read the cache: %w", err)
	}
	if err == nil {
		// What cannot be loaded is compiled anew: a cache is never needed.
		if p, err := c.device.Load(saved, results); err == nil {
			c.programs[key] = p
			return p, nil
		}
	}
	p, err := c.device.Compile(text, results)
	if err != nil {
		return nil, err
	}
	if saved, err := p.Save(); err == nil {
		if err := renameio.WriteFile(file, saved, 0o644); err != nil {
			return nil, fmt.Errorf("xla: write the cache: %w", err)
		}
		// Compute with what the other workers will compute with.
		if loaded, err := c.device.Load(saved, results); err == nil {
			p.Free()
			p = loaded
		}
	}
	c.programs[key] = p
	return p, nil
}

// check reports a task that does not fit the programs.
func (c *card) check(t task, batch, steps int) error {
	if len(t.weights) != c.with.Spec.Size() || len(t.counts)%steps != 0 || len(t.counts) == 0 ||
		len(t.points) != batch*len(t.counts) || len(t.labels) != len(t.points) {
		return fmt.Errorf("%w: a task of %d weights, %d points, %d labels and %d steps", errProtocol,
			len(t.weights), len(t.points), len(t.labels), len(t.counts))
	}
	return nil
}

// batches puts the points, labels and counts of the block of steps that begins at from on the device.
func (c *card) batches(t task, from, batch, steps int) ([]*pjrt.Buffer, error) {
	a, b := from*batch, (from+steps)*batch
	points, err := pjrt.Upload(c.device, t.points[a:b], steps, batch)
	if err != nil {
		return nil, err
	}
	labels, err := pjrt.Upload(c.device, t.labels[a:b], steps, batch)
	if err != nil {
		return nil, err
	}
	counts, err := pjrt.Upload(c.device, t.counts[from:from+steps], steps)
	return []*pjrt.Buffer{points, labels, counts}, err
}

func (c *card) train(t task) (weights, losses []float32, err error) {
	batch, steps := c.with.Batch, c.with.Steps
	if err := c.check(t, batch, steps); err != nil {
		return nil, nil, err
	}
	p, err := c.trainer(t.Momentum, t.Proximal)
	if err != nil {
		return nil, nil, err
	}
	size := len(t.weights)
	rates, err := pjrt.Upload(c.device, t.Rates[:], len(t.Rates))
	if err != nil {
		return nil, nil, err
	}
	defer rates.Free()
	start, err := pjrt.Upload(c.device, t.weights, size)
	if err != nil {
		return nil, nil, err
	}
	defer start.Free()
	state := []*pjrt.Buffer{start}
	if t.Momentum {
		rest, err := pjrt.Upload(c.device, make([]float32, size), size)
		if err != nil {
			return nil, nil, err
		}
		state = append(state, rest)
	}
	// The calls are queued on the device; only the last copy waits.
	var sums []*pjrt.Buffer
	for from := 0; from < len(t.counts); from += steps {
		arguments := append([]*pjrt.Buffer(nil), state...)
		if t.Proximal {
			arguments = append(arguments, start)
		}
		block, err := c.batches(t, from, batch, steps)
		if err != nil {
			return nil, nil, err
		}
		results, err := p.Run(append(append(arguments, c.images[0], c.scale, rates), block...)...)
		if err != nil {
			return nil, nil, err
		}
		for _, b := range block {
			b.Free()
		}
		for _, b := range state {
			if b != start {
				b.Free()
			}
		}
		last := len(results) - 1
		state, sums = results[:last], append(sums, results[last])
	}
	losses = make([]float32, len(t.counts))
	for i, sum := range sums {
		if err := pjrt.Download(sum, losses[i*steps:(i+1)*steps]); err != nil {
			return nil, nil, err
		}
		sum.Free()
	}
	err = pjrt.Download(state[0], t.weights)
	for _, b := range state {
		b.Free()
	}
	return t.weights, losses, err
}

func (c *card) score(t task) (hits []int32, losses []float32, err error) {
	if err := c.check(t, scoreBatch, scoreSteps); err != nil {
		return nil, nil, err
	}
	p, err := c.scorer()
	if err != nil {
		return nil, nil, err
	}
	weights, err := pjrt.Upload(c.device, t.weights, len(t.weights))
	if err != nil {
		return nil, nil, err
	}
	defer weights.Free()
	hits, losses = make([]int32, len(t.counts)), make([]float32, len(t.counts))
	for from := 0; from < len(t.counts); from += scoreSteps {
		block, err := c.batches(t, from, scoreBatch, scoreSteps)
		if err != nil {
			return nil, nil, err
		}
		results, err := p.Run(append([]*pjrt.Buffer{weights, c.images[1], c.scale}, block...)...)
		if err != nil {
			return nil, nil, err
		}
		if err := pjrt.Download(results[0], hits[from:from+scoreSteps]); err != nil {
			return nil, nil, err
		}
		if err := pjrt.Download(results[1], losses[from:from+scoreSteps]); err != nil {
			return nil, nil, err
		}
		for _, b := range append(block, results...) {
			b.Free()
		}
	}
	return hits, losses, nil
}

// cacheFolder makes the folder for compiled programs.
func cacheFolder(folder string) (string, error) {
	if folder == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			user = os.TempDir()
		}
		folder = filepath.Join(user, "grange", "xla")
	}
	folder, err := filepath.Abs(folder)
	if err == nil {
		err = os.MkdirAll(folder, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("xla: make the folder for compiled programs: %w", err)
	}
	return folder, nil
}

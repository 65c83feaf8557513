package xla

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"grange/train/xla/pjrt"
)

// machine is what a worker computes with.
type machine interface {
	// setup opens the device and puts the images on it.
	setup(s setup, train, test []byte, scale []float32) (version string, err error)
	// prepare has the programs for tasks ready.
	prepare(momentum, proximal bool) error
	// train trains weights, which it may change, and returns them with the sum of losses of each step.
	train(t task) (weights, losses []float32, err error)
	// score returns how many images of each step are classified correctly, and the sum of their losses.
	score(t task) (hits []int32, losses []float32, err error)
}

// task is what a worker is asked to do.
type task struct {
	header
	weights                []float32
	points, labels, counts []int32
}

// Serve is the worker's side: it does the tasks that come in, until the input ends.
func Serve(in io.Reader, out io.Writer) error { return serve(in, out, &card{}) }

func serve(in io.Reader, out io.Writer, m machine) error {
	reader := bufio.NewReaderSize(in, 1<<16)
	for {
		request, err := receive(reader)
		if errors.Is(err, io.EOF) && !errors.Is(err, errProtocol) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := respond(request, m)
		if err != nil {
			answer = message{head: header{Kind: kindFailed, Problem: err.Error(), Reason: reasonFor(err)}}
		}
		if err := send(out, answer); err != nil {
			return err
		}
	}
}

// reasonFor sorts an error for the parent.
func reasonFor(err error) reason {
	switch {
	case errors.Is(err, pjrt.ErrMemory):
		return reasonMemory
	case errors.Is(err, pjrt.ErrPlugin):
		return reasonPlugin
	case errors.Is(err, pjrt.ErrUnavailable):
		return reasonUnsupported
	}
	return ""
}

// respond does one request.
func respond(request message, m machine) (message, error) {
	done := message{head: header{Kind: kindDone}}
	switch request.head.Kind {
	case kindSetup:
		if request.head.Setup == nil || len(request.parts) != 3 {
			return done, fmt.Errorf("%w: a setup of %d parts", errProtocol, len(request.parts))
		}
		factors, err := numbersOf[float32](request.parts[2])
		if err != nil {
			return done, err
		}
		done.head.Version, err = m.setup(*request.head.Setup, request.parts[0], request.parts[1], factors)
		return done, err
	case kindPrepare:
		return done, m.prepare(request.head.Momentum, request.head.Proximal)
	case kindTrain, kindScore:
		t, err := taskOf(request)
		if err != nil {
			return done, err
		}
		if request.head.Kind == kindTrain {
			weights, losses, err := m.train(t)
			done.parts = [][]byte{bytesOf(weights), bytesOf(losses)}
			return done, err
		}
		hits, losses, err := m.score(t)
		done.parts = [][]byte{bytesOf(hits), bytesOf(losses)}
		return done, err
	}
	return done, fmt.Errorf("%w: unknown request %q", errProtocol, request.head.Kind)
}

func taskOf(request message) (task, error) {
	t := task{header: request.head}
	if len(request.parts) != 4 {
		return t, fmt.Errorf("%w: a task of %d parts", errProtocol, len(request.parts))
	}
	var problems [4]error
	t.weights, problems[0] = numbersOf[float32](request.parts[0])
	t.points, problems[1] = numbersOf[int32](request.parts[1])
	t.labels, problems[2] = numbersOf[int32](request.parts[2])
	t.counts, problems[3] = numbersOf[int32](request.parts[3])
	return t, errors.Join(problems[:]...)
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// jax is the other side: a Python process that trains when told to.
type jax struct {
	version string
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// answer is what the Python process prints.
type answer struct {
	Ready   string  `json:"ready"`
	Seconds float64 `json:"seconds"`
	Used    float64 `json:"used"`
}

func startJAX(python, script string) (*jax, error) {
	j := &jax{process: exec.Command(python, script)}
	j.process.Stderr = os.Stderr
	var err error
	if j.in, err = j.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := j.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	j.out = bufio.NewScanner(out)
	if err := j.process.Start(); err != nil {
		return nil, fmt.Errorf("start JAX: %w", err)
	}
	a, err := j.read()
	j.version = a.Ready
	return j, err
}

func (j *jax) stop() {
	_ = j.in.Close()
	_ = j.process.Wait()
}

func (j *jax) read() (answer, error) {
	var a answer
	if !j.out.Scan() {
		return a, fmt.Errorf("JAX ended: %w", io.ErrUnexpectedEOF)
	}
	err := json.Unmarshal(j.out.Bytes(), &a)
	return a, err
}

func (j *jax) ask(command, model string, number int) (answer, error) {
	if _, err := fmt.Fprintln(j.in, command, model, number); err != nil {
		return answer{}, fmt.Errorf("ask JAX: %w", err)
	}
	return j.read()
}

// prepare compiles a model and returns how many steps fill a turn.
func (j *jax) prepare(model string, batch int) (steps int, err error) {
	if _, err := j.ask("prepare", model, batch); err != nil {
		return 0, err
	}
	seconds, err := j.run(model, 2, false)
	return max(1, int(slice.Seconds()/(seconds/2))), err
}

// run trains for some steps and returns the time on the wall, or that on
// processors.
func (j *jax) run(model string, steps int, processor bool) (seconds float64, err error) {
	a, err := j.ask("run", model, steps)
	if processor {
		return a.Used, err
	}
	return a.Seconds, err
}

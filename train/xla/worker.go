package xla

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// worker is the parent's side of a worker process. One goroutine uses it at a time, and any may close it meanwhile.
type worker struct {
	pool   *Pool
	number int

	mutex   sync.Mutex // guards what follows
	process *process   // nil while none runs
	closed  bool       // whether none may be started any more
}

// process is a worker process that was started.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    *tail
}

// errDied is a worker that ended, or was ended, before it answered.
var errDied = errors.New("xla: worker died")

// try has a task done, starting the worker as often as needed.
func (w *worker) try(ctx context.Context, m message) (message, error) {
	var last error
	for attempt := range attempts {
		if attempt > 0 {
			w.pool.config.Log.Warn("starting a worker again", "worker", w.number, "reason", last)
		}
		answer, err := w.once(ctx, m)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			w.kill()
			return message{}, ctx.Err()
		}
		if !errors.Is(err, errDied) {
			return message{}, err
		}
		last = err
	}
	return message{}, fmt.Errorf("%w %d times in a row: %w", ErrWorker, attempts, last)
}

// once has a task done by the process, which is started if there is none.
func (w *worker) once(ctx context.Context, m message) (message, error) {
	process, started, err := w.start()
	if err != nil {
		return message{}, err
	}
	stop := context.AfterFunc(ctx, w.end)
	defer stop()
	if started {
		answer, err := w.exchange(process, w.greeting())
		if err != nil {
			return message{}, err
		}
		if w.number == 1 {
			w.mutex.Lock()
			w.pool.version = answer.head.Version
			w.mutex.Unlock()
		}
	}
	return w.exchange(process, m)
}

// greeting is the first message to a worker.
func (w *worker) greeting() message {
	data := w.pool.config.Data
	return message{
		head: header{Kind: kindSetup, Setup: &w.pool.setup},
		parts: [][]byte{
			interleaved(&data.Train), interleaved(&data.Test), bytesOf(scale(data.Normalizer())),
		},
	}
}

// start returns the process and whether it was started just now, since there was none.
func (w *worker) start() (p *process, started bool, err error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.process != nil {
		return w.process, false, nil
	}
	if w.closed {
		return nil, false, fmt.Errorf("%w: it was closed", ErrWorker)
	}
	words := w.pool.config.Command
	p = &process{command: exec.Command(words[0], words[1:]...), said: &tail{}}
	p.command.Env = append(os.Environ(), w.pool.environment...)
	if w.pool.service != nil {
		p.command.Env = append(p.command.Env, w.pool.service.environment()...)
	}
	p.command.Stderr = p.said
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, false, fmt.Errorf("%w: cannot start it: %w", ErrWorker, err)
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, false, fmt.Errorf("%w: cannot start it: %w", ErrWorker, err)
	}
	if err := p.command.Start(); err != nil {
		return nil, false, fmt.Errorf("%w: cannot start it: %w", ErrWorker, err)
	}
	p.out = bufio.NewReaderSize(out, 1<<16)
	w.process = p
	return p, true, nil
}

// exchange sends a message and waits for the answer. A worker that does not answer properly is ended.
func (w *worker) exchange(p *process, m message) (message, error) {
	err := send(p.in, m)
	var answer message
	if err == nil {
		answer, err = receive(p.out)
	}
	if err != nil {
		w.kill()
		if said := p.said.String(); said != "" {
			return message{}, fmt.Errorf("%w: %w; it said: %s", errDied, err, said)
		}
		return message{}, fmt.Errorf("%w: %w", errDied, err)
	}
	switch answer.head.Kind {
	case kindDone:
		return answer, nil
	case kindFailed:
		// What is left on the card is not known.
		w.kill()
		return message{}, failed(answer.head)
	}
	w.kill()
	return message{}, fmt.Errorf("%w: it answered %q", ErrWorker, answer.head.Kind)
}

// failed is the error that a worker reported.
func failed(head header) error {
	kind := ErrWorker
	switch head.Reason {
	case reasonMemory:
		kind = ErrMemory
	case reasonPlugin:
		kind = ErrNoPlugin
	case reasonUnsupported:
		kind = ErrUnsupported
	}
	return fmt.Errorf("%w: %s", kind, head.Problem)
}

// end ends the process without waiting for it.
func (w *worker) end() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.process != nil {
		_ = w.process.command.Process.Kill()
	}
}

// kill ends the process and waits until it is gone.
func (w *worker) kill() {
	w.mutex.Lock()
	p := w.process
	w.process = nil
	w.mutex.Unlock()
	if p != nil {
		_ = p.command.Process.Kill()
		_ = p.in.Close()
		_ = p.command.Wait()
	}
}

// close ends the process for good. What it was doing fails.
func (w *worker) close() {
	w.mutex.Lock()
	w.closed = true
	w.mutex.Unlock()
	w.kill()
}

// tail keeps the end of what is written to it.
type tail struct {
	mutex sync.Mutex
	text  []byte
}

// tailSize is how much of a worker's messages is kept.
const tailSize = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailSize; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.TrimSpace(string(t.text))
}

package cli

import (
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on stderr. It appears only on a terminal, and only when
// the work takes longer than two seconds.
type progress struct {
	bars *mpb.Progress
	bar  *mpb.Bar
	note atomic.Pointer[string]
}

// progress is for steps that take about as long as each other: it shows the
// time left.
func (a *app) progress(label string, total int) *progress {
	return a.bar(label, total, func(*progress) decor.Decorator { return decor.AverageETA(decor.ET_STYLE_GO) })
}

// work is for steps that do not, where a time left would be a guess: it shows
// the time taken, and what is being done.
func (a *app) work(label string, total int) *progress {
	began := a.env.Now()
	return a.bar(label, total, func(p *progress) decor.Decorator {
		return decor.Any(func(decor.Statistics) string {
			text := a.env.Now().Sub(began).Truncate(time.Second).String()
			if note := p.note.Load(); note != nil {
				text += ", " + *note
			}
			return text
		})
	})
}

func (a *app) bar(label string, total int, after func(*progress) decor.Decorator) *progress {
	p := &progress{}
	if !isTerminal(a.env.Stderr) || a.env.Getenv("TERM") == "dumb" {
		return p
	}
	show := make(chan struct{})
	time.AfterFunc(2*time.Second, func() { close(show) })
	p.bars = mpb.New(mpb.WithOutput(a.env.Stderr), mpb.WithWidth(40), mpb.WithRenderDelay(show))
	p.bar = p.bars.AddBar(int64(total),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(label+" "), decor.CountersNoUnit("%d of %d")),
		mpb.AppendDecorators(after(p)),
	)
	return p
}

func (p *progress) step() {
	if p.bar != nil {
		p.bar.Increment()
	}
}

// say notes what is being done.
func (p *progress) say(note string) { p.note.Store(&note) }

// stop takes the bar away, however far it came.
func (p *progress) stop() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}

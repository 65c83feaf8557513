package cli

import (
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on stderr with the time left. It appears only on a
// terminal, and only when the work takes longer than two seconds.
type progress struct {
	bars *mpb.Progress
	bar  *mpb.Bar
}

func (a *app) progress(label string, total int) *progress {
	if !isTerminal(a.env.Stderr) || a.env.Getenv("TERM") == "dumb" {
		return &progress{}
	}
	show := make(chan struct{})
	time.AfterFunc(2*time.Second, func() { close(show) })
	bars := mpb.New(mpb.WithOutput(a.env.Stderr), mpb.WithWidth(40), mpb.WithRenderDelay(show))
	bar := bars.AddBar(int64(total),
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(label+" "), decor.CountersNoUnit("%d of %d")),
		mpb.AppendDecorators(decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "")),
	)
	return &progress{bars: bars, bar: bar}
}

func (p *progress) step() {
	if p.bar != nil {
		p.bar.Increment()
	}
}

// stop takes the bar away, however far it came.
func (p *progress) stop() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}

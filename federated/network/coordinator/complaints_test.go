package coordinator

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// However many strangers come, they write only so much into the log, and are heard again after an hour.
func TestComplaintsAreBounded(t *testing.T) {
	var log bytes.Buffer
	c := complaints{log: slog.New(slog.NewTextHandler(&log, nil))}
	lines := func() int { return strings.Count(log.String(), "\n") }
	for i := range 1000 {
		for range 3 {
			c.about(fmt.Sprintf("10.0.%d.%d:%d", i/256, i%256, i), noPlain)
		}
	}
	if lines() != maxComplaints+1 || !strings.Contains(log.String(), "not logged for a while") {
		t.Errorf("%d lines", lines())
	}
	for key := range c.told {
		c.told[key] = time.Now().Add(-complainEvery)
	}
	c.about("10.0.0.1:1", noPlain)
	if lines() != maxComplaints+2 || len(c.told) != 1 {
		t.Errorf("an hour later: %d lines, %d are remembered", lines(), len(c.told))
	}
}

package silo_test

import (
	"sync"
	"testing"
)

// Five silos train fashion over TLS, and end with the bytes of the same training in one process.
func TestFiveSilosMatchOneProcess(t *testing.T) {
	w := newWorld(t, "mlp", 3, member("a", 1000, 300, 0), member("b", 1000, 400, 0.1), member("c", 2000, 1000, 0),
		member("d", 500, 500, 0.3), member("e", 800, 1, 0))
	w.start()
	var group sync.WaitGroup
	for i := range w.job.Members {
		group.Go(func() {
			if err := w.silo(i).Run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	w.expect()
	group.Wait()
}

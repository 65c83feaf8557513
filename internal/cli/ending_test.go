package cli

import (
	"sync"
	"testing"
)

// What a command adds while the process ends is done as well, once.
func TestEnding(t *testing.T) {
	var e ending
	var mutex sync.Mutex
	done := 0
	var left sync.WaitGroup
	for range 4 {
		left.Go(func() {
			for range 100 {
				e.add(func() {
					mutex.Lock()
					defer mutex.Unlock()
					done++
				})
			}
		})
	}
	e.now()
	left.Wait()
	e.now()
	if done != 400 {
		t.Errorf("%d things were done, want 400", done)
	}
}

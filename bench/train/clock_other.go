//go:build !linux

package main

import "time"

var started = time.Now()

// processorTime stands in for the time on processors with the time on the wall.
func processorTime() time.Duration { return time.Since(started) }

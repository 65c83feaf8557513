//go:build !amd64

package fmapeak

func best() (rounds func(int), lanes int, name string) { return nil, 0, "none" }

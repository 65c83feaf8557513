//go:build !amd64

package nn

func available() []*kernels { return []*kernels{&portable} }

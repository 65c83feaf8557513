package fmapeak

import "github.com/klauspost/cpuid/v2"

//go:noescape
func roundsAVX512(count int, data *float32)

//go:noescape
func roundsAVX2(count int, data *float32)

func best() (rounds func(count int, data *float32), lanes int, name string) {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F):
		return roundsAVX512, 16, "avx512"
	case cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3):
		return roundsAVX2, 8, "avx2"
	}
	return nil, 0, "none"
}

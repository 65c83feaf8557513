package fmapeak

import "github.com/klauspost/cpuid/v2"

func roundsAVX512(count int)

func roundsAVX2(count int)

func best() (rounds func(int), lanes int, name string) {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F):
		return roundsAVX512, 16, "avx512"
	case cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3):
		return roundsAVX2, 8, "avx2"
	}
	return nil, 0, "none"
}

//go:build !race

package raced

// Enabled says that the race detector is on.
const Enabled = false

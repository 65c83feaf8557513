// Package pjrt compiles StableHLO programs and runs them on a device, through a plugin with the PJRT C interface, such as
// the one for NVIDIA cards that JAX installs.
//
// It is a thin layer over the few functions of that interface that Grange needs; in particular compiled programs can be
// saved and loaded again. It needs cgo and Linux: elsewhere Open returns ErrUnavailable.
package pjrt

import (
	"errors"
	"fmt"
)

// Errors that callers may test for.
var (
	// ErrUnavailable is returned where this build cannot load plugins at all.
	ErrUnavailable = errors.New("pjrt: this build of Grange has no support for accelerators")
	// ErrPlugin is returned for a file that is not a usable plugin.
	ErrPlugin = errors.New("pjrt: cannot use the plugin")
	// ErrMemory is returned when the device has not enough memory left.
	ErrMemory = errors.New("pjrt: out of memory on the device")
	// ErrDevice is returned for every other failure of the device or the plugin.
	ErrDevice = errors.New("pjrt: the device failed")
)

// Type is the type of a buffer's elements, as the interface numbers them.
type Type int

// The types that programs of Grange take and give.
const (
	Int32   Type = 4
	Uint8   Type = 6
	Float32 Type = 11
)

// exhausted is the interface's code for a lack of memory.
const exhausted = 8

// failure makes an error of a code and a text of the plugin.
func failure(doing string, code int, message string) error {
	kind := ErrDevice
	if code == exhausted {
		kind = ErrMemory
	}
	return fmt.Errorf("%w: %s: %s", kind, doing, message)
}

// compileOptions is the interface's description of a program for one device, whichever that is: a CompileOptionsProto
// with executable_build_options (device_ordinal −1, one replica, one partition) and compile_portable_executable.
var compileOptions = []byte{
	0x1a, 15, 0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x20, 1, 0x28, 1,
	0x20, 1,
}

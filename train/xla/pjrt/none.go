//go:build !cgo || !linux

package pjrt

// Available says whether this build can load plugins.
const Available = false

// Device is a device; this build has none.
type Device struct{ Version string }

// Program is a compiled program; this build has none.
type Program struct{}

// Buffer is an array on a device; this build has none.
type Buffer struct{}

// Element is what a buffer may hold.
type Element interface{ ~uint8 | ~int32 | ~float32 }

// Open returns ErrUnavailable.
func Open(string) (*Device, error) { return nil, ErrUnavailable }

// Compile returns ErrUnavailable.
func (*Device) Compile(string, int) (*Program, error) { return nil, ErrUnavailable }

// Load returns ErrUnavailable.
func (*Device) Load([]byte, int) (*Program, error) { return nil, ErrUnavailable }

// Save returns ErrUnavailable.
func (*Program) Save() ([]byte, error) { return nil, ErrUnavailable }

// Run returns ErrUnavailable.
func (*Program) Run(...*Buffer) ([]*Buffer, error) { return nil, ErrUnavailable }

// Free does nothing.
func (*Program) Free() {}

// Free does nothing.
func (*Buffer) Free() {}

// Upload returns ErrUnavailable.
func Upload[E Element](*Device, []E, ...int) (*Buffer, error) { return nil, ErrUnavailable }

// Download returns ErrUnavailable.
func Download[E Element](*Buffer, []E) error { return ErrUnavailable }

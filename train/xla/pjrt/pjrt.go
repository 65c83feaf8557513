//go:build cgo && linux

package pjrt

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "bridge.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Device is a device, opened through a plugin. It may be used from one goroutine at a time.
type Device struct {
	table          *C.table
	client, device unsafe.Pointer
	// Version is what the plugin says of itself.
	Version string
}

// Open loads the plugin at a path and opens its first device.
func Open(path string) (*Device, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var problem *C.char
	d := &Device{table: C.open_plugin(name, &problem)}
	if d.table == nil {
		return nil, fmt.Errorf("%w %s: %s", ErrPlugin, path, taken(problem))
	}
	major, minor := int(d.table.version.major), int(d.table.version.minor)
	if major != 0 || uintptr(d.table.size) < unsafe.Sizeof(*d.table) {
		return nil, fmt.Errorf("%w %s: it has version %d.%d of the interface, and Grange knows version 0", ErrPlugin, path, major, minor)
	}
	if err := d.check("starting the plugin "+path, C.initialize(d.table)); err != nil {
		return nil, err
	}
	var devices C.size_t
	if err := d.check("opening the device", C.create_client(d.table, &d.client, &d.device, &devices)); err != nil {
		return nil, err
	}
	if devices == 0 {
		return nil, fmt.Errorf("%w: the plugin %s finds none", ErrDevice, path)
	}
	var version *C.char
	if err := d.check("asking for the version", C.platform_version(d.table, d.client, &version)); err != nil {
		return nil, err
	}
	d.Version = fmt.Sprintf("PJRT %d.%d, %s", major, minor, taken(version))
	return d, nil
}

// taken turns a C string into a Go string and frees it.
func taken(text *C.char) string {
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// check turns an error of the plugin into one of Go.
func (d *Device) check(doing string, problem unsafe.Pointer) error {
	if problem == nil {
		return nil
	}
	var message *C.char
	code := C.explain(d.table, problem, &message)
	return failure(doing, int(code), taken(message))
}

// Program is a compiled program, loaded on a device.
type Program struct {
	device     *Device
	executable unsafe.Pointer
	results    int
}

// Compile compiles StableHLO text whose main function has so many results.
func (d *Device) Compile(text string, results int) (*Program, error) {
	p := &Program{device: d, results: results}
	code := C.CString(text)
	defer C.free(unsafe.Pointer(code))
	options := C.CBytes(compileOptions)
	defer C.free(options)
	err := d.check("compiling", C.compile(d.table, d.client, code, C.size_t(len(text)),
		(*C.char)(options), C.size_t(len(compileOptions)), &p.executable))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Save returns a compiled program as bytes, to Load on a device of the same kind with the same plugin.
func (p *Program) Save() ([]byte, error) {
	var bytes *C.char
	var size C.size_t
	if err := p.device.check("saving a program", C.serialize(p.device.table, p.executable, &bytes, &size)); err != nil {
		return nil, err
	}
	defer C.free(unsafe.Pointer(bytes))
	return C.GoBytes(unsafe.Pointer(bytes), C.int(size)), nil
}

// Load makes a program of what Save returned.
func (d *Device) Load(saved []byte, results int) (*Program, error) {
	p := &Program{device: d, results: results}
	bytes := C.CBytes(saved)
	defer C.free(bytes)
	err := d.check("loading a program", C.deserialize(d.table, d.client, (*C.char)(bytes), C.size_t(len(saved)), &p.executable))
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Buffer is an array on the device. It must be freed.
type Buffer struct {
	device *Device
	buffer unsafe.Pointer
}

// Element is what a buffer may hold.
type Element interface{ ~uint8 | ~int32 | ~float32 }

// Upload copies values to the device.
func Upload[E Element](d *Device, values []E, dims ...int) (*Buffer, error) {
	size := 1
	sides := make([]C.int64_t, len(dims)+1)
	for i, n := range dims {
		size *= n
		sides[i] = C.int64_t(n)
	}
	if size != len(values) || size == 0 {
		panic(fmt.Sprintf("pjrt: %d values for an array of %v", len(values), dims))
	}
	var zero E
	kind := map[uintptr]Type{1: Uint8, 4: Int32}[unsafe.Sizeof(zero)]
	if E(3)/2 != E(1) { // in a type of fractions only
		kind = Float32
	}
	b := &Buffer{device: d}
	var pinner runtime.Pinner
	pinner.Pin(&values[0])
	defer pinner.Unpin()
	err := d.check("copying to the device", C.upload(d.table, d.client, d.device, unsafe.Pointer(&values[0]), C.int(kind),
		&sides[0], C.size_t(len(dims)), &b.buffer))
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Download copies a buffer to the host, waiting until it is computed. The slice must be exactly as long as the buffer.
func Download[E Element](b *Buffer, to []E) error {
	var pinner runtime.Pinner
	pinner.Pin(&to[0])
	defer pinner.Unpin()
	size := C.size_t(uintptr(len(to)) * unsafe.Sizeof(to[0]))
	return b.device.check("computing", C.download(b.device.table, b.buffer, unsafe.Pointer(&to[0]), size))
}

// Free gives the memory of a buffer back.
func (b *Buffer) Free() {
	if b != nil && b.buffer != nil {
		C.destroy(b.device.table, C.BUFFER_DESTROY, b.buffer)
		b.buffer = nil
	}
}

// Run starts a program. It does not wait for it: Download does.
func (p *Program) Run(arguments ...*Buffer) ([]*Buffer, error) {
	const most = 16
	if len(arguments) > most || p.results > most {
		panic(fmt.Sprintf("pjrt: program with %d arguments and %d results", len(arguments), p.results))
	}
	// The pointers are C's; the arrays that hold them are too.
	space := (*[2 * most]unsafe.Pointer)(C.calloc(2*most, C.size_t(unsafe.Sizeof(unsafe.Pointer(nil)))))
	defer C.free(unsafe.Pointer(space))
	for i, a := range arguments {
		space[i] = a.buffer
	}
	err := p.device.check("running a program", C.execute(p.device.table, p.executable, p.device.device,
		&space[0], C.size_t(len(arguments)), &space[most]))
	if err != nil {
		return nil, err
	}
	results := make([]*Buffer, p.results)
	for i := range results {
		results[i] = &Buffer{device: p.device, buffer: space[most+i]}
	}
	return results, nil
}

// Free unloads a program.
func (p *Program) Free() {
	if p != nil && p.executable != nil {
		C.destroy(p.device.table, C.LOADED_DESTROY, p.executable)
		p.executable = nil
	}
}

// Available says whether this build can load plugins.
const Available = true

//go:build cgo && linux

package pjrt

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"grange/train/xla/pjrt/pjrttest"
)

func TestOpenFails(t *testing.T) {
	for name, test := range map[string]struct {
		stub pjrttest.Stub
		want error
		text string
	}{
		"another version": {pjrttest.Stub{Major: 1, Devices: 1}, ErrPlugin, "version 1.1 of the interface, and Grange knows version 0"},
		"an older one":    {pjrttest.Stub{Devices: 1, Small: true}, ErrPlugin, "version 0.1 of the interface"},
		"no memory":       {pjrttest.Stub{Devices: 1, Fails: 8, Text: "RESOURCE_EXHAUSTED: 1 GiB"}, ErrMemory, "opening the device: RESOURCE_EXHAUSTED: 1 GiB"},
		"busy":            {pjrttest.Stub{Devices: 1, Fails: 13, Text: "device is busy or unavailable"}, ErrDevice, "device is busy or unavailable"},
		"no device":       {pjrttest.Stub{}, ErrDevice, "finds none"},
	} {
		_, err := Open(test.stub.Build(t))
		if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nothing.so")); !errors.Is(err, ErrPlugin) || !strings.Contains(err.Error(), "nothing.so") {
		t.Errorf("no file: %v", err)
	}
}

// TestUploadFails has the device run out of memory after it was opened.
func TestUploadFails(t *testing.T) {
	device, err := Open(pjrttest.Stub{Devices: 1, Text: "out of memory"}.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(device.Version, "stub") {
		t.Errorf("version %s", device.Version)
	}
	if _, err := Upload(device, []float32{1, 2}, 2); !errors.Is(err, ErrDevice) || !strings.Contains(err.Error(), "copying to the device: out of memory") {
		t.Errorf("upload: %v", err)
	}
}

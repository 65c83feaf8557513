// Package pjrttest builds plugins for tests, which fail in a chosen manner.
package pjrttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Stub is a plugin to build.
type Stub struct {
	Fails   int    // the code of the error with which it fails to open its device, 0 if it does not fail
	Text    string // the text of its errors
	Major   int    // its version of the interface
	Devices int    // how many devices it has
	Small   bool   // whether its table of functions is too small
}

// Build compiles the plugin with the C compiler that cgo uses too, and returns its path.
func (s Stub) Build(t testing.TB) string {
	t.Helper()
	_, self, _, _ := runtime.Caller(0)
	folder := filepath.Dir(filepath.Dir(self))
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}
	size := "sizeof(table)"
	if s.Small {
		size = "100"
	}
	out := filepath.Join(t.TempDir(), "plugin.so")
	cmd := exec.Command(compiler, "-shared", "-fPIC", "-I", folder, "-o", out, fmt.Sprintf("-DFAILS=%d", s.Fails),
		fmt.Sprintf("-DTEXT=%q", s.Text), fmt.Sprintf("-DMAJOR=%d", s.Major), fmt.Sprintf("-DDEVICES=%d", s.Devices), "-DSIZE="+size,
		filepath.Join(folder, "testdata", "stub.c"))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building a plugin: %v\n%s", err, text)
	}
	return out
}

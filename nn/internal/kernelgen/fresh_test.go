package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// The committed assembly must be what the generator writes.
func TestFresh(t *testing.T) {
	for _, o := range outputs {
		want, err := assemble(o.generate)
		if err != nil {
			t.Fatalf("%s: %v", o.path, err)
		}
		got, err := os.ReadFile(filepath.Join("../../..", o.path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is out of date: run go generate ./nn", o.path)
		}
	}
}

//go:build unix

package dataset_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"grange/dataset"
)

// A pipe must not make the reader wait for a writer that never comes.
func TestPipe(t *testing.T) {
	folder := t.TempDir()
	writeTree(t, folder, 2)
	if err := syscall.Mkfifo(filepath.Join(folder, "dogs", "02.png"), 0o600); err != nil {
		t.Fatal(err)
	}
	failure(t, "folder:"+folder, dataset.Options{}, dataset.ErrCorrupt, "dogs/02.png: is a pipe")
}

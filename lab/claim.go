package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// errClaimed says that another process is training the cell.
var errClaimed = errors.New("lab: cell is being trained by another process")

// claim is the right to train one cell. It is a lock on a file that the
// operating system releases when the process ends, however it ends: there are
// no stale claims.
type claim struct {
	file *os.File
	path string
}

// claim takes the right to train a cell, or returns errClaimed at once.
func (s *Store) claim(key string) (*claim, error) {
	path := filepath.Join(s.dir, "claims", key+".lock")
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lab: claim cell: %w", full(err))
		}
		if err := lock(file); err != nil {
			_ = file.Close()
			return nil, err
		}
		// The last holder removes the file: what was locked may be a file
		// that is no longer there.
		opened, err := file.Stat()
		if err == nil {
			current, statErr := os.Stat(path)
			if statErr == nil && os.SameFile(opened, current) {
				return &claim{file: file, path: path}, nil
			}
		}
		_ = file.Close()
	}
}

// release gives the right back.
func (c *claim) release() {
	_ = os.Remove(c.path)
	_ = c.file.Close()
}

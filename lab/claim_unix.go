//go:build unix

package lab

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock takes an exclusive lock without waiting.
func lock(file *os.File) error {
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errClaimed
		default:
			return fmt.Errorf("lab: lock %s: %w", file.Name(), err)
		}
	}
}

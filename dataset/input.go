package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// budget counts the bytes a reader may still take into memory, so that a small hostile file cannot ask for a large
// amount of it.
type budget struct {
	limit, left int64
}

func newBudget(limit int64) *budget { return &budget{limit: limit, left: limit} }

// take reserves n bytes for a file or fails with ErrTooLarge.
func (b *budget) take(n int64, file string) error {
	if n < 0 || n > b.left {
		return fmt.Errorf("%w: %s needs %d bytes in memory, and %d of %d are left", ErrTooLarge, file, n, b.left, b.limit)
	}
	b.left -= n
	return nil
}

// readExactly reads n bytes. Memory grows with what really arrives, not with what a header promises.
func readExactly(r io.Reader, n int64, file string) ([]byte, error) {
	const step = 4 << 20
	buffer := make([]byte, 0, min(n, step))
	for int64(len(buffer)) < n {
		if len(buffer) == cap(buffer) {
			grown := make([]byte, len(buffer), min(n, 2*int64(cap(buffer))))
			copy(grown, buffer)
			buffer = grown
		}
		start := len(buffer)
		buffer = buffer[:cap(buffer)]
		got, err := io.ReadFull(r, buffer[start:])
		buffer = buffer[:start+got]
		if err != nil {
			return nil, damaged(file, err, "%d bytes, expected %d", len(buffer), n)
		}
	}
	return buffer, nil
}

// readWhole reads all of a small file, at most limit bytes of it.
func readWhole(r io.Reader, limit int64, file string) ([]byte, error) {
	var buffer bytes.Buffer
	n, err := buffer.ReadFrom(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, damaged(file, err, "cannot be read to its end")
	}
	if n > limit {
		return nil, fmt.Errorf("%w: %s is longer than %d bytes", ErrTooLarge, file, limit)
	}
	return buffer.Bytes(), nil
}

// expectEnd fails unless the reader is at its end.
func expectEnd(r io.Reader, file string) error {
	var one [1]byte
	n, err := io.ReadFull(r, one[:])
	if n > 0 {
		return damaged(file, nil, "more bytes than its header says")
	}
	if !errors.Is(err, io.EOF) {
		return damaged(file, err, "unreadable end")
	}
	return nil
}

// damaged is an ErrCorrupt for a file, with the cause where there is one.
func damaged(file string, cause error, format string, arguments ...any) error {
	what := fmt.Sprintf(format, arguments...)
	switch {
	case cause == nil:
		return fmt.Errorf("%w: %s: %s", ErrCorrupt, file, what)
	case errors.Is(cause, io.EOF) || errors.Is(cause, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: %s is truncated: %s", ErrCorrupt, file, what)
	case errors.Is(cause, ErrTooLarge):
		return cause
	}
	return fmt.Errorf("%w: %s: %s: %w", ErrCorrupt, file, what, cause)
}

// input is an open file, decompressed when it is gzip.
type input struct {
	io.Reader
	file fs.File
}

func (in *input) Close() error { return in.file.Close() }

// openInput opens a regular file and decompresses it if it begins like gzip, whatever its name.
func openInput(files fs.FS, name string) (*input, error) {
	file, err := openRegular(files, name)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(file, 1<<16)
	in := &input{Reader: buffered, file: file}
	if magic, err := buffered.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		if in.Reader, err = gzip.NewReader(buffered); err != nil {
			_ = file.Close()
			return nil, damaged(name, err, "cannot be decompressed")
		}
	}
	return in, nil
}

// openRegular opens a regular file. It looks before it opens, since opening a pipe would wait for a writer.
func openRegular(files fs.FS, name string) (fs.File, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return nil, openError(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, damaged(name, nil, "is a %s, expected a regular file", kind(info.Mode()))
	}
	file, err := files.Open(name)
	if err != nil {
		return nil, openError(name, err)
	}
	return file, nil
}

// openError sorts the reasons why a file cannot be opened.
func openError(name string, err error) error {
	var path *fs.PathError
	reason := err
	if errors.As(err, &path) {
		reason = path.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s", ErrMissing, name)
	case reason.Error() == "path escapes from parent":
		return fmt.Errorf("%w: %s leads out of its folder; expected files inside it", ErrUnsafe, name)
	}
	return fmt.Errorf("dataset: cannot open %s: %w", name, reason)
}

// kind names what a file is that is not a regular one.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	}
	return "special file"
}

package dataset

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"strings"
)

// partial is a .part file.
type partial struct {
	*os.File
	done   int64
	digest hash.Hash
}

// openPartial opens a .part file and digests what it already holds.
func openPartial(path string, limit int64) (*partial, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	p := &partial{File: file, digest: sha256.New()}
	p.done, err = io.Copy(p.digest, file)
	if err == nil && p.done > limit {
		err = p.restart()
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return p, nil
}

// leave closes the file and removes it if it holds nothing.
func (p *partial) leave() {
	_ = p.Close()
	if p.done == 0 {
		_ = os.Remove(p.Name())
	}
}

// restart empties the file.
func (p *partial) restart() error {
	p.done = 0
	p.digest.Reset()
	if err := p.Truncate(0); err != nil {
		return err
	}
	_, err := p.Seek(0, io.SeekStart)
	return err
}

// accept prepares the file for a response: the missing bytes, or all of them again.
func (p *partial) accept(response *http.Response) error {
	switch status := response.StatusCode; {
	case status == http.StatusPartialContent && p.done > 0:
		if start := fmt.Sprintf("bytes %d-", p.done); strings.HasPrefix(response.Header.Get("Content-Range"), start) {
			return nil
		}
		if err := p.restart(); err != nil {
			return &localError{err}
		}
		return fmt.Errorf("%w: server sent the wrong range %q", ErrDownload, response.Header.Get("Content-Range"))
	case status == http.StatusOK:
		if p.done == 0 {
			return nil
		}
		if err := p.restart(); err != nil {
			return &localError{err}
		}
		return nil
	case status == http.StatusRequestedRangeNotSatisfiable:
		if err := p.restart(); err != nil {
			return &localError{err}
		}
		return fmt.Errorf("%w: server has no range from there on", ErrDownload)
	case status == http.StatusTooManyRequests || status >= 500:
		return fmt.Errorf("%w: server answered %s", ErrDownload, response.Status)
	}
	return &finalError{fmt.Errorf("%w: server answered %s", ErrDownload, response.Status)}
}

func (p *partial) append(chunk []byte) error {
	if _, err := p.Write(chunk); err != nil {
		return err
	}
	p.digest.Write(chunk)
	p.done += int64(len(chunk))
	return nil
}

// finish puts the whole file in its place.
func (p *partial) finish(path string) error {
	if err := p.Sync(); err != nil {
		return &localError{err}
	}
	if err := p.Close(); err != nil {
		return &localError{err}
	}
	if err := os.Rename(p.Name(), path); err != nil {
		return &localError{err}
	}
	return nil
}

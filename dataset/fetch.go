package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Fetcher downloads data sets. Its zero value works.
//
// A download goes into a .part file beside its place, which a later call continues where an earlier one stopped, and
// takes its name only when its SHA-256 digest is the published one.
type Fetcher struct {
	// Client makes the requests. Default: http.DefaultClient.
	Client *http.Client
	// Mirror is the base URL of a server to ask instead of the published places: a folder with the files under their
	// own names, or an npm registry. Default: none.
	Mirror string
	// Progress is told how far each file is, from the goroutine that called Fetch. Default: nobody is told.
	Progress func(Progress)
	// Retries is how often a broken connection is tried again per address. Default: 3; negative for never.
	Retries int
	// Pause is the time before the first retry; it doubles with each. Default: one second.
	Pause time.Duration
	// Stall is how long a server may send nothing before the connection counts as broken. Default: one minute.
	Stall time.Duration

	// known replaces the table of sources in tests.
	known map[string][]source
}

// Progress is how far a download is.
type Progress struct {
	// File is the name of the file.
	File string
	// Done and Total are bytes.
	Done, Total int64
}

// Fetched is what a Fetch has put in place.
type Fetched struct {
	// Folder is where the files are, and Files their names.
	Folder string
	Files  []string
	// Source says which source they came from.
	Source string
	// Downloaded is the number of bytes that were transferred: 0 when all was there.
	Downloaded int64
	// Warnings holds why other sources were not used.
	Warnings []string
}

// Fetch downloads a data set, "cifar10" or "fashion-full", into its folder of the data directory, where Open finds it.
// Files that are there and whole are kept.
func (f Fetcher) Fetch(ctx context.Context, name, directory string) (Fetched, error) {
	known := f.known
	if known == nil {
		known = sources
	}
	choices, ok := known[name]
	switch {
	case !ok && name == "fashion":
		return Fetched{}, fmt.Errorf("%w: fashion is built in, there is nothing to fetch", ErrUnknown)
	case !ok:
		return Fetched{}, fmt.Errorf("%w: %q cannot be fetched, expected cifar10 or fashion-full", ErrUnknown, name)
	}
	f = f.withDefaults()
	result := Fetched{Folder: filepath.Join(directory, name)}
	if err := os.MkdirAll(result.Folder, 0o777); err != nil {
		return Fetched{}, fmt.Errorf("dataset: fetch %s: %w", name, err)
	}
	for _, choice := range choices {
		if f.have(choice, &result) {
			return result, nil
		}
	}
	var failures []error
	for _, choice := range choices {
		err := f.fetchSource(ctx, choice, &result)
		if err == nil {
			result.Source = choice.description
			return result, nil
		}
		if ctx.Err() != nil || isLocal(err) {
			return Fetched{}, fmt.Errorf("dataset: fetch %s: %w", name, err)
		}
		failures = append(failures, fmt.Errorf("%s: %w", choice.description, err))
		result.Warnings = append(result.Warnings, failures[len(failures)-1].Error())
	}
	return Fetched{}, fmt.Errorf("%w: %s: %w", ErrDownload, name, joined(failures))
}

func (f Fetcher) withDefaults() Fetcher {
	if f.Client == nil {
		f.Client = http.DefaultClient
	}
	if f.Progress == nil {
		f.Progress = func(Progress) {}
	}
	if f.Retries == 0 {
		f.Retries = 3
	}
	if f.Pause == 0 {
		f.Pause = time.Second
	}
	if f.Stall == 0 {
		f.Stall = time.Minute
	}
	return f
}

// have reports whether all files of a source are there and whole.
func (f Fetcher) have(choice source, result *Fetched) bool {
	var names []string
	for _, file := range choice.files {
		if !whole(filepath.Join(result.Folder, file.name), file) {
			return false
		}
		names = append(names, file.name)
	}
	result.Files, result.Source = names, choice.description
	return true
}

// fetchSource puts all files of a source in place.
func (f Fetcher) fetchSource(ctx context.Context, choice source, result *Fetched) error {
	result.Files = nil
	for _, file := range choice.files {
		path := filepath.Join(result.Folder, file.name)
		if whole(path, file) {
			f.Progress(Progress{file.name, file.size, file.size})
		} else if err := f.fetchFile(ctx, file, path, result); err != nil {
			return err
		}
		result.Files = append(result.Files, file.name)
	}
	return nil
}

// whole reports whether a file is there with the right contents.
func whole(path string, file remoteFile) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() != file.size {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	digest := sha256.New()
	_, err = io.Copy(digest, f)
	return err == nil && hex.EncodeToString(digest.Sum(nil)) == file.sha256
}

// addresses are the URLs to try for a file.
func (f Fetcher) addresses(file remoteFile) []string {
	if f.Mirror == "" {
		return file.urls
	}
	base := strings.TrimSuffix(f.Mirror, "/") + "/"
	addresses := []string{base + file.name}
	for _, path := range file.mirrored {
		addresses = append(addresses, base+path)
	}
	return addresses
}

// fetchFile downloads one file from the first of its addresses that has it.
func (f Fetcher) fetchFile(ctx context.Context, file remoteFile, path string, result *Fetched) error {
	addresses := f.addresses(file)
	if len(addresses) == 0 {
		return fmt.Errorf("%s has no address of its own, expected an npm registry as the mirror", file.name)
	}
	var failures []error
	for _, address := range addresses {
		pause := f.Pause
		for attempt := 0; ; attempt++ {
			n, err := f.attempt(ctx, address, file, path)
			result.Downloaded += n
			if err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if isLocal(err) {
				return err
			}
			if attempt >= f.Retries || isFinal(err) {
				failures = append(failures, fmt.Errorf("%s: %w", address, err))
				break
			}
			if err := sleep(ctx, pause); err != nil {
				return err
			}
			pause *= 2
		}
	}
	return joined(failures)
}

// attempt makes one request, continuing the .part file where there is one, and reports the bytes it received.
func (f Fetcher) attempt(ctx context.Context, address string, file remoteFile, path string) (int64, error) {
	partial, err := openPartial(path+".part", file.size)
	if err != nil {
		return 0, &localError{err}
	}
	defer partial.leave()
	resumed := partial.done > 0
	var received int64
	if partial.done < file.size {
		if received, err = f.transfer(ctx, address, file, partial); err != nil {
			return received, err
		}
	}
	if got := hex.EncodeToString(partial.digest.Sum(nil)); got != file.sha256 {
		if err := partial.restart(); err != nil {
			return received, &localError{err}
		}
		err := fmt.Errorf("%w: %s: SHA-256 is %s, expected %s", ErrChecksum, file.name, got, file.sha256)
		if !resumed {
			err = &finalError{err}
		}
		return received, err
	}
	return received, partial.finish(path)
}

// transfer requests the missing bytes of a file and appends them to its .part file.
func (f Fetcher) transfer(ctx context.Context, address string, file remoteFile, partial *partial) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(f.Stall, func() { cancel(fmt.Errorf("nothing received for %v", f.Stall)) })
	defer watchdog.Stop()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, &finalError{err}
	}
	if partial.done > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", partial.done))
	}
	response, err := f.Client.Do(request)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	defer response.Body.Close()
	if err := partial.accept(response); err != nil {
		return 0, err
	}
	f.Progress(Progress{file.name, partial.done, file.size})
	var received int64
	buffer := make([]byte, 256<<10)
	for {
		n, err := response.Body.Read(buffer)
		watchdog.Reset(f.Stall)
		if n > 0 {
			received += int64(n)
			if partial.done+int64(n) > file.size {
				if err := partial.restart(); err != nil {
					return received, &localError{err}
				}
				return received, &finalError{fmt.Errorf("%w: %s: more than the expected %d bytes", ErrChecksum, file.name, file.size)}
			}
			if err := partial.append(buffer[:n]); err != nil {
				return received, &localError{err}
			}
			f.Progress(Progress{file.name, partial.done, file.size})
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return received, causeOf(ctx, err)
		}
	}
	if partial.done < file.size {
		return received, fmt.Errorf("%w: %s: connection closed after %d of %d bytes", ErrDownload, file.name, partial.done, file.size)
	}
	return received, nil
}

// localError is a failure of this machine, such as a full disk, for which no other source helps.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

func isLocal(err error) bool {
	var local *localError
	return errors.As(err, &local)
}

// finalError is a failure that another attempt at the same address would repeat.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

func isFinal(err error) bool {
	var final *finalError
	return errors.As(err, &final)
}

// causeOf prefers the reason why a context was cancelled to the error that the cancellation led to.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w: %w", ErrDownload, cause)
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return fmt.Errorf("%w: %w", ErrDownload, err)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// joined is one error of several on one line.
func joined(failures []error) error {
	if len(failures) == 0 {
		return fmt.Errorf("%w: no address to try", ErrDownload)
	}
	err := failures[0]
	for _, failure := range failures[1:] {
		err = fmt.Errorf("%w; %w", err, failure)
	}
	return err
}

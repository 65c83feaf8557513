// Package objects keeps files under the SHA-256 digest of what they hold. A file that is there is whole: it takes its name
// only when its digest has been checked. An upload that broke off stays as a partial file, and goes on where it stopped.
package objects

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

var (
	// ErrMissing is an object that is not there.
	ErrMissing = errors.New("objects: not there")
	// ErrDigest is a digest that is not one, or contents that are not those of the digest.
	ErrDigest = errors.New("objects: digest differs")
	// ErrOffset is a piece that does not begin where the last one ended.
	ErrOffset = errors.New("objects: not the next piece")
	// ErrSize is more bytes than were announced.
	ErrSize = errors.New("objects: larger than announced")
	// ErrBusy is a partial object that somebody else is writing.
	ErrBusy = errors.New("objects: being written")
	// ErrWrite is a file that cannot be written or removed, as on a full disk.
	ErrWrite = errors.New("objects: cannot write")
	// ErrRead is a file that is there and cannot be read, as when too many are open.
	ErrRead = errors.New("objects: cannot read")
)

// Digest is a SHA-256 digest.
type Digest [sha256.Size]byte

// String is the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText is String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what String writes.
func (d *Digest) UnmarshalText(text []byte) error {
	parsed, err := hex.DecodeString(string(text))
	if err != nil || len(parsed) != len(d) {
		return fmt.Errorf("%w: %.80q is not a SHA-256 digest", ErrDigest, text)
	}
	copy(d[:], parsed)
	return nil
}

// Store is a folder of objects. One process at a time may use it.
type Store struct {
	folder string

	mutex   sync.Mutex
	writing map[string]bool
}

// Open prepares a folder, making it if it is not there.
func Open(folder string) (*Store, error) {
	for _, sub := range []string{"objects", "partial"} {
		if err := os.MkdirAll(filepath.Join(folder, sub), 0o700); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	return &Store{folder: folder, writing: map[string]bool{}}, nil
}

func (s *Store) path(d Digest) string {
	name := d.String()
	return filepath.Join(s.folder, "objects", name[:2], name[2:])
}

// Open opens an object for reading.
func (s *Store) Open(d Digest) (*os.File, error) {
	file, err := os.Open(s.path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrMissing, d)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRead, err)
	}
	return file, nil
}

// Size is the size of an object in bytes.
func (s *Store) Size(d Digest) (int64, error) {
	info, err := os.Stat(s.path(d))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("%w: %s", ErrMissing, d)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrRead, err)
	}
	return info.Size(), nil
}

// Check reads a whole object and compares its digest.
func (s *Store) Check(d Digest) error {
	file, err := s.Open(d)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return fmt.Errorf("%w: %w", ErrRead, err)
	}
	if Digest(sum.Sum(nil)) != d {
		return fmt.Errorf("%w: the file of %s has been changed", ErrDigest, d)
	}
	return nil
}

// Sync has an object put on the disk, where it survives a power failure.
func (s *Store) Sync(d Digest) error {
	file, err := s.Open(d)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// Remove removes an object. One that is not there is no error.
func (s *Store) Remove(d Digest) error {
	return remove(s.path(d))
}

// remove removes a file. One that is not there is no error.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// Put writes an object whose digest is not known beforehand. Like one that was received it survives the end of this
// process, but that of the machine only after Sync.
func (s *Store) Put(write func(io.Writer) error) (_ Digest, err error) {
	file, err := s.temporary()
	if err != nil {
		return Digest{}, err
	}
	defer s.release(file.Name())
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	sum := sha256.New()
	buffer := bufio.NewWriterSize(io.MultiWriter(file, sum), 1<<20)
	if err = write(buffer); err == nil {
		err = buffer.Flush()
	}
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return Digest{}, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	digest := Digest(sum.Sum(nil))
	return digest, s.rename(file.Name(), digest)
}

// temporary makes a file that Abandon leaves alone until it is released.
func (s *Store) temporary() (*os.File, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	file, err := os.CreateTemp(filepath.Join(s.folder, "partial"), "put-*")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	s.writing[file.Name()] = true
	return file, nil
}

// release says that nobody writes a file any more.
func (s *Store) release(path string) {
	s.mutex.Lock()
	delete(s.writing, path)
	s.mutex.Unlock()
}

func (s *Store) rename(from string, d Digest) error {
	to := s.path(d)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// Partial is an object that arrives in pieces.
type Partial struct {
	store *Store
	path  string
	size  int64
	file  *os.File
	sum   hash.Hash
	// checksum is the CRC-32C of what is there.
	checksum uint32
	have     int64
}

// Receive begins or goes on with an object that somebody is sending: what the owner sent under the same ticket before is
// there, and Offset says how much. What it sent under another is thrown away, so that nobody can fill the disk with
// beginnings. Close it in any case.
func (s *Store) Receive(owner, ticket string, size int64) (*Partial, error) {
	who, what := sha256.Sum256([]byte(owner)), sha256.Sum256([]byte(ticket))
	prefix := filepath.Join(s.folder, "partial", "from-"+hex.EncodeToString(who[:8])+"-")
	path := prefix + hex.EncodeToString(what[:])
	if err := s.claim(prefix, path); err != nil {
		return nil, err
	}
	p := &Partial{store: s, path: path, size: size, sum: sha256.New()}
	if err := p.open(); err != nil {
		s.release(path)
		return nil, err
	}
	return p, nil
}

// claim takes the right to write a partial object, and removes others whose names begin alike.
func (s *Store) claim(prefix, path string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	others, err := filepath.Glob(globbed.Replace(prefix) + "*")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	for _, other := range append(others, path) {
		switch {
		case s.writing[other]:
			return fmt.Errorf("%w: %s", ErrBusy, filepath.Base(other))
		case other == path:
		default:
			if err := remove(other); err != nil {
				return err
			}
		}
	}
	s.writing[path] = true
	return nil
}

// globbed makes a path a pattern that matches it alone.
var globbed = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

func (p *Partial) open() error {
	file, err := os.OpenFile(p.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	checksum := crc32.New(castagnoli)
	p.have, err = io.Copy(io.MultiWriter(p.sum, checksum), file)
	p.checksum = checksum.Sum32()
	if err == nil && p.have > p.size {
		p.have, p.checksum = 0, 0
		p.sum.Reset()
		if err = file.Truncate(0); err == nil {
			_, err = file.Seek(0, io.SeekStart)
		}
	}
	if err != nil {
		_ = file.Close()
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	p.file = file
	return nil
}

// digest adds bytes to the digest and the checksum.
func (p *Partial) digest(piece []byte) {
	p.sum.Write(piece)
	p.checksum = crc32.Update(p.checksum, castagnoli, piece)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Offset is how many bytes are there.
func (p *Partial) Offset() int64 { return p.have }

// Add takes the next piece, which must begin at offset.
func (p *Partial) Add(offset int64, piece []byte) error {
	switch {
	case offset != p.have:
		return fmt.Errorf("%w: it begins at %d, expected %d", ErrOffset, offset, p.have)
	case int64(len(piece)) > p.size-p.have:
		return fmt.Errorf("%w: %d bytes were announced", ErrSize, p.size)
	}
	n, err := p.file.Write(piece)
	p.digest(piece[:n])
	p.have += int64(n)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// Commit makes the partial object an object, if it is whole and has the CRC-32C that its sender says. If it has not, it
// is thrown away, so that the next attempt begins afresh.
func (p *Partial) Commit(checksum uint32) (Digest, error) {
	if p.have != p.size {
		return Digest{}, fmt.Errorf("%w: %d of %d bytes are there", ErrOffset, p.have, p.size)
	}
	if p.checksum != checksum {
		if err := os.Remove(p.path); err != nil {
			return Digest{}, fmt.Errorf("%w: %w", ErrWrite, err)
		}
		return Digest{}, fmt.Errorf("%w: its checksum is %08x, announced was %08x", ErrDigest, p.checksum, checksum)
	}
	digest := Digest(p.sum.Sum(nil))
	return digest, p.store.rename(p.path, digest)
}

// Close lets go of the partial object and keeps what is there.
func (p *Partial) Close() error {
	err := p.file.Close()
	p.store.release(p.path)
	return err
}

// Sweep removes all objects but those to be kept.
func (s *Store) Sweep(keep func(Digest) bool) error {
	return filepath.WalkDir(filepath.Join(s.folder, "objects"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrRead, err)
		}
		if entry.IsDir() {
			return nil
		}
		var d Digest
		if d.UnmarshalText([]byte(filepath.Base(filepath.Dir(path))+entry.Name())) == nil && keep(d) {
			return nil
		}
		return remove(path)
	})
}

// Abandon removes partial objects that nobody is writing.
func (s *Store) Abandon() error {
	folder := filepath.Join(s.folder, "partial")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRead, err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if s.writing[path] {
			continue
		}
		if err := remove(path); err != nil {
			return err
		}
	}
	return nil
}

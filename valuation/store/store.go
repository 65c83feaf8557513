// Package store keeps the worths of coalitions in a file, so that a valuation
// which was killed goes on where it stopped.
//
// The file is text. Its first line says which game it belongs to; every
// further line is one worth with a checksum, added as soon as the worth is
// known. A line that a crash cut short is passed over, and its worth computed
// again. Several processes may add to one file.
package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"

	"grange/valuation"
)

var (
	// ErrOther is returned for the file of another game.
	ErrOther = errors.New("store: file belongs to another game")
	// ErrFormat is returned for a file that is not a store.
	ErrFormat = errors.New("store: not a file of worths")
	// ErrWrite is returned when a worth could not be written. Those written
	// before are intact.
	ErrWrite = errors.New("store: worth not written")
)

// Identity is what the worths belong to: they hold for no other game.
type Identity struct {
	Members int
	// Game says everything that determines the worths, such as the digest of
	// a scenario with its seed. It must not contain a line break.
	Game string
}

// Store is an open file of worths.
type Store struct {
	// Sync makes every worth reach the disk before it is used. Without it, a
	// killed process loses nothing, but a power failure may. Default: false.
	Sync bool

	mu      sync.Mutex
	file    *os.File
	known   map[valuation.Coalition]float64
	damaged int
}

const magic = "grange worths 1"

// Open opens a file of worths, or begins one.
func Open(path string, identity Identity) (*Store, error) {
	if strings.ContainsAny(identity.Game, "\r\n") {
		return nil, fmt.Errorf("%w: the game's identity has a line break", ErrFormat)
	}
	if err := valuation.CheckMembers(identity.Members); err != nil {
		return nil, err
	}
	header := fmt.Sprintf("%s %d %s", magic, identity.Members, identity.Game)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := begin(path, header); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s := &Store{file: file}
	if err := s.load(path, header, identity.Members); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// begin makes a file with nothing but a header, unless another process is
// quicker: a file that is there is never replaced. It appears with its header
// whole.
func begin(path, header string) error {
	draft := fmt.Sprintf("%s.%d-%016x", path, os.Getpid(), rand.Uint64())
	if err := create(draft, header); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	err := os.Link(draft, path)
	if err != nil && !errors.Is(err, os.ErrExist) { // a file system without links
		err = create(path, header)
	}
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(draft))
}

// create writes a file which must not be there.
func create(path, header string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.WriteString(header + "\n")
	return errors.Join(err, file.Sync(), file.Close())
}

// load reads the file.
func (s *Store) load(path, header string, members int) error {
	found, known, damaged, err := read(s.file, members)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case found != header:
		return fmt.Errorf("%w: %s is of %q, not of %q. Try: another file", ErrOther, path, strings.TrimPrefix(found, magic+" "), strings.TrimPrefix(header, magic+" "))
	}
	s.known, s.damaged = known, damaged
	return nil
}

// read parses a file of worths. Lines that do not hold together are counted.
func read(r io.Reader, members int) (header string, known map[valuation.Coalition]float64, damaged int, err error) {
	known = map[valuation.Coalition]float64{}
	lines := bufio.NewReader(r)
	for number := 0; ; number++ {
		line, err := lines.ReadBytes('\n')
		if len(line) == 0 && err == io.EOF {
			break
		}
		if err != nil && err != io.EOF {
			return "", nil, 0, err
		}
		text := string(bytes.TrimSuffix(line, []byte("\n")))
		if number == 0 {
			header = text
			continue
		}
		if c, v, ok := parse(text); ok && c&^valuation.Everyone(members) == 0 {
			known[c] = v
		} else if text != "" {
			damaged++
		}
	}
	if !strings.HasPrefix(header, magic+" ") {
		return "", nil, 0, ErrFormat
	}
	return header, known, damaged, nil
}

// format writes one worth: coalition and worth in hexadecimal, to the last
// bit, and a checksum of both.
func format(c valuation.Coalition, v float64) string {
	text := fmt.Sprintf("%x %x", uint64(c), v)
	return fmt.Sprintf("%s %08x\n", text, crc32.ChecksumIEEE([]byte(text)))
}

func parse(line string) (c valuation.Coalition, v float64, ok bool) {
	text, sum, found := cutLast(line)
	if want := fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(text))); !found || sum != want {
		return 0, 0, false
	}
	set, worth, _ := strings.Cut(text, " ")
	number, err := strconv.ParseUint(set, 16, 64)
	if err != nil {
		return 0, 0, false
	}
	v, err = strconv.ParseFloat(worth, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, 0, false
	}
	return valuation.Coalition(number), v, true
}

func cutLast(line string) (before, after string, found bool) {
	i := strings.LastIndexByte(line, ' ')
	if i < 0 {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}

// Wrap returns u with its worths kept in the store: those known are not
// computed again.
func (s *Store) Wrap(u valuation.Utility) valuation.Utility {
	return valuation.UtilityFunc(func(ctx context.Context, c valuation.Coalition) (float64, error) {
		if v, known := s.Lookup(c); known {
			return v, nil
		}
		v, err := u.Value(ctx, c)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return v, err
		}
		return v, s.Put(c, v)
	})
}

// Lookup returns a worth, if it is known.
func (s *Store) Lookup(c valuation.Coalition) (value float64, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, known = s.known[c]
	return value, known
}

// Put adds a worth, which must be finite.
func (s *Store) Put(c valuation.Coalition, v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%w: %v of %v", valuation.ErrNotFinite, v, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line := format(c, v)
	if s.torn() {
		line = "\n" + line
	}
	if _, err := s.file.WriteString(line); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	if s.Sync {
		if err := s.file.Sync(); err != nil {
			return fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	s.known[c] = v
	return nil
}

// torn reports whether the last line of the file was cut short, by a crash or
// a full disk, whoever was writing it.
func (s *Store) torn() bool {
	info, err := s.file.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	last := []byte{0}
	_, err = s.file.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

// Len returns how many worths are known.
func (s *Store) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.known)
}

// Damaged returns how many lines were passed over when the file was opened.
func (s *Store) Damaged() int { return s.damaged }

// Close makes sure that everything is on the disk, and closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.file.Sync(), s.file.Close())
}

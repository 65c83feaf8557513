// Package checkpoint keeps the state of a federated run in a folder, so that a run that was killed goes on where it was
// and ends with the same bytes as one that never was.
//
// After every round the state is written to a new file, which takes its name only when it is complete and on the disk;
// the last two are kept. A file holds what the run is (its identity: everything that determines the result), the
// finished rounds, the global model as safetensors, and a SHA-256 digest of all that. Momentum starts from zero in
// every round and chance comes from the seed, member and round, so there is nothing else to keep.
package checkpoint

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"grange/federated"
	"grange/model"
)

// What can be wrong with a checkpoint. It is left as it is in every case.
var (
	// ErrOther is a checkpoint of another run.
	ErrOther = errors.New("checkpoint: belongs to another run")
	// ErrDamaged is a checkpoint that is truncated or changed.
	ErrDamaged = errors.New("checkpoint: damaged")
	// ErrVersion is a checkpoint of a newer version of Grange.
	ErrVersion = errors.New("checkpoint: written by a newer version")
	// ErrWrite is a checkpoint that could not be written; earlier ones are intact.
	ErrWrite = errors.New("checkpoint: cannot be written")
)

const (
	// magic begins every checkpoint; a version number follows.
	magic   = "GRANGECP"
	version = 1
	// maxHeader bounds the text in a checkpoint.
	maxHeader = 64 << 20
	// keep is how many checkpoints stay.
	keep = 2

	prefix, suffix = "round-", ".checkpoint"
	// unfinished begins temporary names.
	unfinished = ".unfinished-"
)

// Identity is everything that determines the result of a run, as names and values. The number of rounds is not part of
// it: a run may go on for longer than was first planned.
type Identity map[string]string

// Store keeps the checkpoints of one run.
type Store struct {
	folder   string
	identity Identity
	// wrap stands between a checkpoint and its file in tests.
	wrap func(io.Writer) io.Writer
}

// header is the text of a checkpoint.
type header struct {
	Identity Identity          `json:"identity"`
	Rounds   []federated.Round `json:"rounds"`
	Kernel   string            `json:"kernel,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	// Weights is the number of bytes that follow.
	Weights int64 `json:"weights"`
}

// Open prepares a folder for the checkpoints of a run, making it if it is not there, and removes what a killed run left
// unfinished. One run at a time may use a folder.
func Open(folder string, identity Identity) (*Store, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), unfinished) {
			continue
		}
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrWrite, err)
		}
	}
	return &Store{folder: folder, identity: maps.Clone(identity), wrap: func(w io.Writer) io.Writer { return w }}, nil
}

// Save writes the state after its last finished round and removes checkpoints older than the one before it.
func (s *Store) Save(state federated.State) error {
	if err := s.write(state); err != nil {
		return fmt.Errorf("%w: round %d in %s: %w; earlier checkpoints are intact", ErrWrite, len(state.Rounds), s.folder, err)
	}
	names, err := s.names()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	for _, name := range names[:max(0, len(names)-keep)] {
		if err := os.Remove(filepath.Join(s.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: an old checkpoint cannot be removed: %w", ErrWrite, err)
		}
	}
	return nil
}

// write writes one checkpoint under a temporary name and renames it once it is on the disk.
func (s *Store) write(state federated.State) (err error) {
	file, err := os.CreateTemp(s.folder, unfinished+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	buffered := bufio.NewWriterSize(s.wrap(file), 1<<20)
	if err := s.encode(buffered, state); err != nil {
		return err
	}
	if err := buffered.Flush(); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), filepath.Join(s.folder, fileName(len(state.Rounds)))); err != nil {
		return err
	}
	syncFolder(s.folder)
	return nil
}

// syncFolder asks for the rename itself to be on the disk. Not every system can; the rename is atomic anyway.
func syncFolder(folder string) {
	if f, err := os.Open(folder); err == nil {
		_ = f.Sync()
		_ = f.Close()
	}
}

func fileName(round int) string { return fmt.Sprintf("%s%06d%s", prefix, round, suffix) }

// names lists the checkpoints in the folder, oldest first.
func (s *Store) names() ([]string, error) {
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) && strings.HasSuffix(entry.Name(), suffix) {
			names = append(names, entry.Name())
		}
	}
	// Longer names are later rounds: numbers are padded, but may outgrow the padding.
	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

// Load returns the newest state in the folder, or nil when there is none. A checkpoint that cannot be used is an error
// and stays where it is.
func (s *Store) Load(spec model.Spec) (*federated.State, error) {
	names, err := s.names()
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	path := filepath.Join(s.folder, names[len(names)-1])
	state, err := s.read(path, spec)
	if errors.Is(err, ErrDamaged) && len(names) > 1 {
		err = fmt.Errorf("%w; try: remove that file to go on from %s", err, names[len(names)-2])
	}
	return state, err
}

func (s *Store) read(path string, spec model.Spec) (*federated.State, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	defer file.Close()
	state, err := s.decode(bufio.NewReaderSize(file, 1<<20), spec)
	if err == nil && fileName(len(state.Rounds)) != filepath.Base(path) {
		err = fmt.Errorf("%w: holds round %d", ErrDamaged, len(state.Rounds))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return state, nil
}

// encode writes magic, version, header, weights and digest.
func (s *Store) encode(w io.Writer, state federated.State) error {
	var weights bytes.Buffer
	if err := model.WriteSafetensors(&weights, state.Weights, nil); err != nil {
		return err
	}
	text, err := json.Marshal(header{s.identity, state.Rounds, state.Kernel, state.Warnings, int64(weights.Len())})
	if err != nil {
		return err
	}
	digest := sha256.New()
	both := io.MultiWriter(w, digest)
	start := binary.LittleEndian.AppendUint32([]byte(magic), version)
	start = binary.LittleEndian.AppendUint64(start, uint64(len(text)))
	for _, part := range [][]byte{start, text, weights.Bytes()} {
		if _, err := both.Write(part); err != nil {
			return err
		}
	}
	_, err = w.Write(digest.Sum(nil))
	return err
}

// decode reads what encode wrote and trusts none of it before the digest is checked, but for the version and the
// identity, which explain better than a digest what is wrong.
func (s *Store) decode(r io.Reader, spec model.Spec) (*federated.State, error) {
	digest := sha256.New()
	both := io.TeeReader(r, digest)
	start := make([]byte, len(magic)+4+8)
	if _, err := io.ReadFull(both, start); err != nil {
		return nil, fmt.Errorf("%w: truncated after less than %d bytes", ErrDamaged, len(start))
	}
	if string(start[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: begins with %q, expected %q", ErrDamaged, start[:len(magic)], magic)
	}
	if v := binary.LittleEndian.Uint32(start[len(magic):]); v != version {
		if v > version {
			return nil, fmt.Errorf("%w: format %d, expected %d; use the version of Grange that wrote it", ErrVersion, v, version)
		}
		return nil, fmt.Errorf("%w: format %d, expected %d", ErrDamaged, v, version)
	}
	size := binary.LittleEndian.Uint64(start[len(magic)+4:])
	if size > maxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes, expected %d at most", ErrDamaged, size, maxHeader)
	}
	text, err := io.ReadAll(io.LimitReader(both, int64(size)))
	if err != nil || uint64(len(text)) != size {
		return nil, fmt.Errorf("%w: truncated in its header", ErrDamaged)
	}
	var head header
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%w: unreadable header", ErrDamaged)
	}
	weights, err := decodeWeights(r, both, head, spec, digest)
	// A changed byte in the header may look like another run; only a whole file can be one.
	if err != nil {
		return nil, err
	}
	if err := s.compare(head.Identity); err != nil {
		return nil, err
	}
	for i, round := range head.Rounds {
		if round.Round != i+1 {
			return nil, fmt.Errorf("%w: round %d in place of %d", ErrDamaged, round.Round, i+1)
		}
	}
	state := &federated.State{Rounds: head.Rounds, Kernel: head.Kernel, Warnings: head.Warnings}
	if state.Weights, _, err = model.ReadSafetensors(bytes.NewReader(weights), spec); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return state, nil
}

// decodeWeights reads the weights' bytes and checks the digest behind them.
func decodeWeights(r, both io.Reader, head header, spec model.Spec, digest hash.Hash) ([]byte, error) {
	// Names and shapes take less than 64 KiB and 1 KiB per tensor beside the values.
	most := int64(4*spec.Size()) + 1<<16 + int64(len(spec.Tensors))<<10
	if head.Weights < 0 {
		return nil, fmt.Errorf("%w: %d bytes of weights", ErrDamaged, head.Weights)
	}
	var kept bytes.Buffer
	// Weights of another model may be larger: they are digested, not kept.
	n, err := io.CopyN(&limitedWriter{&kept, most}, both, head.Weights)
	if err != nil {
		return nil, fmt.Errorf("%w: truncated after %d of %d bytes of weights", ErrDamaged, n, head.Weights)
	}
	want := digest.Sum(nil)
	got := make([]byte, len(want)+1)
	if n, err := io.ReadFull(r, got); n != len(want) || !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("%w: %d bytes of digest at its end, expected %d", ErrDamaged, n, len(want))
	}
	if !bytes.Equal(got[:len(want)], want) {
		return nil, fmt.Errorf("%w: its SHA-256 digest does not fit its contents", ErrDamaged)
	}
	return kept.Bytes(), nil
}

// limitedWriter keeps the first bytes it is given and drops the rest.
type limitedWriter struct {
	to   *bytes.Buffer
	left int64
}

func (l *limitedWriter) Write(p []byte) (int, error) {
	part := p[:min(int64(len(p)), l.left)]
	l.left -= int64(len(part))
	l.to.Write(part)
	return len(p), nil
}

// compare says where a checkpoint's identity differs from that of this run.
func (s *Store) compare(there Identity) error {
	keys := map[string]bool{}
	for key := range s.identity {
		keys[key] = true
	}
	for key := range there {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a, b := there[key], s.identity[key]; a != b {
			return fmt.Errorf("%w: its %s is %s, here it is %s; choose another folder", ErrOther, key, shown(a), shown(b))
		}
	}
	return nil
}

// shown is a value as an error shows it.
func shown(value string) string {
	if value == "" {
		return "not set"
	}
	const most = 60
	if len(value) > most {
		return value[:most] + "…"
	}
	return value
}

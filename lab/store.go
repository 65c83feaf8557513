package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

var (
	// ErrNewer is returned for a folder that a newer version wrote.
	ErrNewer = errors.New("lab: results written by a newer version of grange")
	// ErrDamaged is returned for a cell whose file cannot be trusted.
	ErrDamaged = errors.New("lab: damaged cell")
	// ErrMissing is returned for a cell that has not been trained.
	ErrMissing = errors.New("lab: cell not trained yet")
	// ErrDiskFull is returned when a result could not be written for lack of
	// space. What was written before is intact.
	ErrDiskFull = errors.New("lab: no space left for results")
)

// storeFormat is the version of the folder's layout and of the cell files.
const storeFormat = 1

// Store is a folder of trained cells, one file each:
//
//	FOLDER/format.json        which version of the layout this is
//	FOLDER/cells/KEY.json     one trained cell
//	FOLDER/cells/KEY.damaged  a file that could not be trusted, set aside
//	FOLDER/claims/KEY.lock    held while a process trains the cell
type Store struct {
	dir     string
	version string           // of the program, recorded in every cell
	now     func() time.Time // for the date recorded in every cell
	write   func(path string, data []byte) error
}

// Record is a trained cell as its file holds it.
type Record struct {
	Format   int       `json:"format"`
	Key      string    `json:"key"`
	Cell     Cell      `json:"cell"`
	Outcome  Outcome   `json:"outcome"`
	Version  string    `json:"version"`
	Finished time.Time `json:"finished"`
	Sum      string    `json:"sum"` // checksum of cell and outcome
}

// Open opens a results folder, making it when it does not exist.
func Open(dir, version string, now func() time.Time) (*Store, error) {
	s := &Store{dir: dir, version: version, now: now, write: func(path string, data []byte) error {
		return renameio.WriteFile(path, data, 0o644)
	}}
	for _, sub := range []string{"cells", "claims"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, fmt.Errorf("lab: open results folder: %w", full(err))
		}
	}
	path := filepath.Join(dir, "format.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		text := fmt.Sprintf("{\"format\": %d, \"written_by\": %q}\n", storeFormat, version)
		if err := s.write(path, []byte(text)); err != nil {
			return nil, fmt.Errorf("lab: open results folder: %w", full(err))
		}
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lab: open results folder: %w", err)
	}
	var header struct {
		Format    int    `json:"format"`
		WrittenBy string `json:"written_by"`
	}
	if err := json.Unmarshal(data, &header); err != nil || header.Format < 1 {
		return nil, fmt.Errorf("lab: %s is not the header of a results folder", path)
	}
	if header.Format > storeFormat {
		return nil, fmt.Errorf("%w: %s has format %d, written by %s; this version reads up to %d", ErrNewer, dir, header.Format, header.WrittenBy, storeFormat)
	}
	return s, nil
}

// Dir returns the folder.
func (s *Store) Dir() string { return s.dir }

// Path returns where the cell of that key is kept.
func (s *Store) Path(key string) string { return filepath.Join(s.dir, "cells", key+".json") }

func (s *Store) damagedPath(key string) string {
	return filepath.Join(s.dir, "cells", key+".damaged")
}

// Load returns a trained cell. The error is ErrMissing when there is none,
// ErrDamaged when its file cannot be trusted and ErrNewer when a newer version
// wrote it.
func (s *Store) Load(key string) (*Record, error) {
	data, err := os.ReadFile(s.Path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrMissing, key)
	}
	if err != nil {
		return nil, fmt.Errorf("lab: read cell: %w", err)
	}
	record, err := decode(data, key)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, s.Path(key))
	}
	return record, nil
}

func decode(data []byte, key string) (*Record, error) {
	var record Record
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&record); err != nil {
		return nil, fmt.Errorf("%w %s: %v", ErrDamaged, key, err)
	}
	if record.Format > storeFormat {
		return nil, fmt.Errorf("%w: cell %s has format %d", ErrNewer, key, record.Format)
	}
	if err := record.Cell.Check(); err != nil {
		return nil, fmt.Errorf("%w %s: %v", ErrDamaged, key, err)
	}
	sum, err := checksum(record.Cell, record.Outcome)
	switch {
	case err != nil || record.Sum != sum:
		return nil, fmt.Errorf("%w %s: its checksum does not match", ErrDamaged, key)
	case record.Key != key || record.Cell.Key() != key:
		return nil, fmt.Errorf("%w %s: it holds another cell, %s", ErrDamaged, key, record.Cell.Key())
	}
	return &record, nil
}

// Save keeps the result of a cell: written beside its place, then renamed.
func (s *Store) Save(cell Cell, outcome Outcome) (*Record, error) {
	cell = cell.Canonical()
	sum, err := checksum(cell, outcome)
	if err != nil {
		return nil, fmt.Errorf("lab: cell cannot be saved: %w", err)
	}
	record := &Record{
		Format: storeFormat, Key: cell.Key(), Cell: cell, Outcome: outcome,
		Version: s.version, Finished: s.now().UTC().Truncate(time.Second), Sum: sum,
	}
	data, err := encode(record)
	if err != nil {
		return nil, fmt.Errorf("lab: cell cannot be saved: %w", err)
	}
	if err := s.write(s.Path(record.Key), data); err != nil {
		return nil, fmt.Errorf("lab: save cell %s: %w", record.Key, full(err))
	}
	return record, nil
}

// encode writes a record to be read by people: one line per field and round,
// lists of numbers on one line.
func encode(record *Record) ([]byte, error) {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(joinLists(data), '\n'), nil
}

// joinLists puts each innermost list or object of the indented JSON on one
// line. No string in a record holds a bracket or a line break.
func joinLists(data []byte) []byte {
	var out []byte
	open := -1 // where in out the innermost bracket stands
	for _, c := range data {
		out = append(out, c)
		switch c {
		case '[', '{':
			open = len(out) - 1
		case ']', '}':
			if open >= 0 && len(out)-open < 400 {
				joined := strings.Join(strings.Fields(string(out[open:])), " ")
				joined = strings.NewReplacer("[ ", "[", " ]", "]", "{ ", "{", " }", "}").Replace(joined)
				out = append(out[:open], joined...)
			}
			open = -1
		}
	}
	return out
}

func checksum(cell Cell, outcome Outcome) (string, error) {
	data, err := json.Marshal(struct {
		Cell    Cell
		Outcome Outcome
	}{cell, outcome})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8]), nil
}

// List returns all trained cells by key, and an error for each file that is
// not one.
func (s *Store) List() ([]*Record, []error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "cells"))
	if err != nil {
		return nil, []error{fmt.Errorf("lab: list cells: %w", err)}
	}
	var records []*Record
	var faults []error
	for _, entry := range entries {
		key, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || strings.HasPrefix(key, ".") {
			continue
		}
		record, err := s.Load(key)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		records = append(records, record)
	}
	return records, faults
}

// SetAside renames a damaged cell's file so that it is kept but not read.
func (s *Store) SetAside(key string) error {
	if err := os.Rename(s.Path(key), s.damagedPath(key)); err != nil {
		return fmt.Errorf("lab: set damaged cell aside: %w", err)
	}
	return nil
}

// Damaged reports whether a damaged file of that key was set aside and the
// cell has not been trained since.
func (s *Store) Damaged(key string) bool {
	if _, err := os.Stat(s.Path(key)); err == nil {
		return false
	}
	_, err := os.Stat(s.damagedPath(key))
	return err == nil
}

// Inspect sorts cells into those that are trained and those that are not.
// Damaged files among them are set aside and their keys returned as well; they
// count as missing.
func (s *Store) Inspect(cells []Cell) (records map[string]*Record, missing []Cell, damaged []string, err error) {
	records = map[string]*Record{}
	seen := map[string]bool{}
	for _, cell := range cells {
		key := cell.Key()
		if seen[key] {
			continue
		}
		seen[key] = true
		record, err := s.Load(key)
		switch {
		case err == nil:
			records[key] = record
			continue
		case errors.Is(err, ErrMissing):
			if s.Damaged(key) {
				damaged = append(damaged, key)
			}
		case errors.Is(err, ErrDamaged):
			if err := s.SetAside(key); err != nil {
				return nil, nil, nil, err
			}
			damaged = append(damaged, key)
		default:
			return nil, nil, nil, err
		}
		missing = append(missing, cell.Canonical())
	}
	slices.Sort(damaged)
	return records, missing, damaged, nil
}

// full marks an error that says the disk is full.
func full(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return err
}

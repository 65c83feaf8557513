// Package updates keeps what the members of a federated training uploaded, in
// a folder, so that their contributions can be valued later without training
// anything again.
//
// A folder holds a manifest which says what was trained, and for every round
// the global model before it and each member's update, as safetensors. A round
// counts once its own small file is there, which is written last.
package updates

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"

	"grange/federated"
	"grange/model"
	"grange/valuation/reconstruct"
)

var (
	// ErrOther is returned for a folder with the updates of another training.
	ErrOther = errors.New("updates: folder belongs to another training")
	// ErrNone is returned for a folder without updates.
	ErrNone = errors.New("updates: no saved updates")
	// ErrDamaged is returned for files that cannot be what was saved.
	ErrDamaged = errors.New("updates: damaged")
	// ErrVersion is returned for a folder written by a newer version of Grange.
	ErrVersion = errors.New("updates: written by a newer version")
	// ErrWrite is returned when a round could not be written.
	ErrWrite = errors.New("updates: not written")
)

const (
	version  = 1
	manifest = "updates.json"
)

// Manifest says what was trained.
type Manifest struct {
	Version       int               `json:"version"`
	Scenario      string            `json:"scenario"`
	Members       []string          `json:"members"`
	Contributions []int             `json:"contributions"`
	Dataset       string            `json:"dataset"`     // as the scenario names it
	Fingerprint   string            `json:"fingerprint"` // of the data set
	Model         string            `json:"model"`
	Rounds        int               `json:"rounds"`
	GlobalRate    float64           `json:"global_rate"`
	Seed          uint64            `json:"seed"`
	Identity      map[string]string `json:"identity"` // all that determines the result
	// Declared says that members declare what they contribute while the training
	// is under way: it may change, in Contributions and in Identity.
	Declared bool `json:"-"`
}

// same reports whether both are of one training, which may have gone on for
// more rounds.
func (m Manifest) same(other Manifest) bool {
	one, two := m.Identity, other.Identity
	if m.Declared {
		one, two = undeclared(one), undeclared(two)
	}
	return m.Version == other.Version && slices.Equal(m.Members, other.Members) &&
		(m.Declared || slices.Equal(m.Contributions, other.Contributions)) &&
		m.Model == other.Model && m.Fingerprint == other.Fingerprint && maps.Equal(one, two)
}

// undeclared is an identity without what members have and contribute.
func undeclared(identity map[string]string) map[string]string {
	var members []map[string]any
	if json.Unmarshal([]byte(identity["members"]), &members) != nil {
		return identity
	}
	for _, member := range members {
		delete(member, "Data")
		delete(member, "Contribution")
	}
	text, err := json.Marshal(members)
	if err != nil {
		return identity
	}
	identity = maps.Clone(identity)
	identity["members"] = string(text)
	return identity
}

// round is the file that completes a round.
type round struct {
	Round   int   `json:"round"`
	Present []int `json:"present"` // members whose update went into the average
	// Examples is how many data points each of them trained on, in the same
	// order. Default, where there is no list or a 0: their contributions.
	Examples []int `json:"examples,omitempty"`
}

// Writer saves the rounds of one training.
type Writer struct{ folder string }

// Create prepares a folder, which may hold earlier rounds of the same training.
func Create(folder string, m Manifest) (*Writer, error) {
	if _, err := find(folder, &m); err != nil {
		return nil, err
	}
	w := &Writer{folder: folder}
	return w, w.writeJSON(manifest, m)
}

// Check is Create before it is known what members contribute: what a folder
// says of that stays. It finds out whether Create will do, and whether there is
// something to write on.
func Check(folder string, m Manifest) error {
	there, err := find(folder, &m)
	if err != nil {
		return err
	}
	if there == nil {
		there = &m
	}
	return (&Writer{folder: folder}).writeJSON(manifest, there)
}

// find makes a folder, and returns the manifest that is in it already, if one is.
func find(folder string, m *Manifest) (*Manifest, error) {
	m.Version = version
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWrite, err)
	}
	there, err := readManifest(folder)
	switch {
	case errors.Is(err, ErrNone):
		return nil, nil
	case err != nil:
		return nil, err
	case !m.same(there):
		return nil, fmt.Errorf("%w: %s", ErrOther, folder)
	}
	return &there, nil
}

// Save writes one round.
func (w *Writer) Save(a *federated.Aggregate) error {
	if err := w.writeWeights(fileOf(a.Round, -1), a.Before); err != nil {
		return err
	}
	done := round{Round: a.Round}
	for _, u := range a.Updates {
		weights, err := u.Model(a.Before)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrWrite, err)
		}
		if err := w.writeWeights(fileOf(a.Round, u.Member), weights); err != nil {
			return err
		}
		done.Present = append(done.Present, u.Member)
		done.Examples = append(done.Examples, u.Examples)
	}
	return w.writeJSON(roundFile(a.Round), done)
}

func (w *Writer) writeWeights(name string, weights *model.Weights) error {
	var b bytes.Buffer
	if err := model.WriteSafetensors(&b, weights, nil); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return w.write(name, b.Bytes())
}

func (w *Writer) writeJSON(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return w.write(name, append(text, '\n'))
}

func (w *Writer) write(name string, data []byte) error {
	if err := renameio.WriteFile(filepath.Join(w.folder, name), data, 0o666); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

func roundFile(number int) string { return fmt.Sprintf("round-%06d.json", number) }

// fileOf names a member's update, or the global model when member is −1.
func fileOf(number, member int) string {
	if member < 0 {
		return fmt.Sprintf("round-%06d-global.safetensors", number)
	}
	return fmt.Sprintf("round-%06d-member-%03d.safetensors", number, member)
}

// Folder is the saved updates of a training. It is a reconstruct.History.
type Folder struct {
	Manifest
	folder string
	spec   model.Spec
}

// Open reads the manifest of a folder.
func Open(folder string) (*Folder, error) {
	m, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	return &Folder{Manifest: m, folder: folder}, nil
}

func readManifest(folder string) (Manifest, error) {
	var m Manifest
	path := filepath.Join(folder, manifest)
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return m, fmt.Errorf("%w in %s", ErrNone, folder)
	case err != nil:
		return m, fmt.Errorf("updates: %w", err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrDamaged, path, err)
	}
	if m.Version > version {
		return m, fmt.Errorf("%w: %s has version %d", ErrVersion, path, m.Version)
	}
	if m.Version < 1 || len(m.Members) == 0 || len(m.Members) != len(m.Contributions) || m.Rounds < 1 || !(m.GlobalRate > 0) {
		return m, fmt.Errorf("%w: %s: %d members, %d contributions, %d rounds", ErrDamaged, path, len(m.Members), len(m.Contributions), m.Rounds)
	}
	return m, nil
}

// Use says which architecture the updates are of. It must be called before Round.
func (f *Folder) Use(spec model.Spec) { f.spec = spec }

// Members returns the members' names.
func (f *Folder) Members() []string { return f.Manifest.Members }

// Rounds returns how many rounds the training was to have.
func (f *Folder) Rounds() int { return f.Manifest.Rounds }

// Round reads one round. A member that failed in it has weight 0.
func (f *Folder) Round(_ context.Context, number int) (*reconstruct.Round, error) {
	text, err := os.ReadFile(filepath.Join(f.folder, roundFile(number)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: all of round %d of %d in %s", reconstruct.ErrMissing, number, f.Manifest.Rounds, f.folder)
	}
	if err != nil {
		return nil, fmt.Errorf("updates: %w", err)
	}
	var done round
	if err := json.Unmarshal(text, &done); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, roundFile(number), err)
	}
	n := len(f.Manifest.Members)
	r := &reconstruct.Round{Updates: make([][]float32, n), Weights: make([]float64, n), Rate: f.GlobalRate}
	if r.Global, err = f.weights(number, -1); err != nil {
		return nil, err
	}
	if done.Examples != nil && len(done.Examples) != len(done.Present) {
		return nil, fmt.Errorf("%w: %s has %d numbers of examples for %d members", ErrDamaged, roundFile(number), len(done.Examples), len(done.Present))
	}
	for i, member := range done.Present {
		if member < 0 || member >= n {
			return nil, fmt.Errorf("%w: %s names member %d of %d", ErrDamaged, roundFile(number), member, n)
		}
		r.Weights[member] = float64(f.Contributions[member])
		if done.Examples != nil && done.Examples[i] > 0 {
			r.Weights[member] = float64(done.Examples[i])
		}
		if r.Updates[member], err = f.weights(number, member); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// weights reads a model. That of a member which is not there is nil.
func (f *Folder) weights(number, member int) ([]float32, error) {
	name := fileOf(number, member)
	file, err := os.Open(filepath.Join(f.folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		if member >= 0 {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: the global model before round %d, %s", reconstruct.ErrMissing, number, name)
	}
	if err != nil {
		return nil, fmt.Errorf("updates: %w", err)
	}
	defer file.Close()
	w, _, err := model.ReadSafetensors(file, f.spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, name, err)
	}
	return w.Flat, nil
}

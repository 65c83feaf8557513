package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"grange/internal/littleendian"
)

// ErrFormat is returned for bytes that are not a safetensors file, or not one
// that holds what was asked for.
var ErrFormat = errors.New("model: malformed safetensors data")

// maxHeader is the longest header that is read or written, in bytes.
const maxHeader = 1 << 20

// metadataKey is the header's entry for free text.
const metadataKey = "__metadata__"

// entry is how the header describes a tensor.
type entry struct {
	Type    string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// WriteSafetensors writes w in the safetensors format: the same weights and
// metadata always give the same bytes. The metadata may be nil.
func WriteSafetensors(out io.Writer, w *Weights, metadata map[string]string) error {
	header, err := SafetensorsHeader(w.tensors, metadata)
	if err != nil {
		return err
	}
	if _, err := out.Write(header); err != nil {
		return fmt.Errorf("write safetensors header: %w", err)
	}
	if err := littleendian.Write(out, w.Flat); err != nil {
		return fmt.Errorf("write safetensors data: %w", err)
	}
	return nil
}

// SafetensorsHeader is what a safetensors file of these tensors begins with, up
// to the first value; their values follow in the order of the flat view.
func SafetensorsHeader(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	header := make(map[string]any, len(tensors)+1)
	for _, t := range tensors {
		header[t.Name] = entry{"F32", t.Shape, [2]int64{4 * int64(t.Offset), 4 * int64(t.Offset+t.Size)}}
	}
	if len(metadata) > 0 {
		header[metadataKey] = metadata
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("write safetensors header: %w", err)
	}
	if len(text)%8 != 0 {
		text = append(text, bytes.Repeat([]byte{' '}, 8-len(text)%8)...)
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes, at most %d are allowed", ErrFormat, len(text), maxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}

// ReadSafetensors reads the weights of spec. The file must hold exactly the
// tensors of spec, as float32, in any order and nothing else. Input that claims
// to be large costs no more memory than spec does.
func ReadSafetensors(in io.Reader, spec Spec) (*Weights, map[string]string, error) {
	text, err := readHeader(in)
	if err != nil {
		return nil, nil, err
	}
	entries, metadata, err := parseHeader(text)
	if err != nil {
		return nil, nil, err
	}
	order, err := layOut(spec, entries)
	if err != nil {
		return nil, nil, err
	}
	w := NewWeights(spec)
	for _, i := range order {
		if err := littleendian.Read(in, w.Tensor(i)); err != nil {
			return nil, nil, fmt.Errorf("%w: tensor %s: %w", ErrFormat, spec.Tensors[i].Name, truncated(err))
		}
	}
	if extra, err := in.Read(make([]byte, 1)); extra != 0 {
		return nil, nil, fmt.Errorf("%w: bytes after the last tensor", ErrFormat)
	} else if err != nil && err != io.EOF {
		return nil, nil, fmt.Errorf("read safetensors: %w", err)
	}
	return w, metadata, nil
}

// truncated names an end of file that came too early.
func truncated(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func readHeader(in io.Reader) ([]byte, error) {
	var length [8]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, fmt.Errorf("%w: header length: %w", ErrFormat, truncated(err))
	}
	size := binary.LittleEndian.Uint64(length[:])
	if size < 2 || size > maxHeader {
		return nil, fmt.Errorf("%w: header of %d bytes, want 2 to %d", ErrFormat, size, maxHeader)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrFormat, truncated(err))
	}
	return text, nil
}

// parseHeader reads the JSON object key by key, so that a repeated key, which
// other readers might resolve otherwise, is an error.
func parseHeader(text []byte) (map[string]entry, map[string]string, error) {
	if text[0] != '{' {
		return nil, nil, fmt.Errorf("%w: header does not start with {", ErrFormat)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if _, err := decoder.Token(); err != nil {
		return nil, nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
	}
	entries := map[string]entry{}
	var metadata map[string]string
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, nil, fmt.Errorf("%w: header: %w", ErrFormat, err)
		}
		name, _ := key.(string)
		if _, seen := entries[name]; seen || name == metadataKey && metadata != nil {
			return nil, nil, fmt.Errorf("%w: tensor %q is listed twice", ErrFormat, name)
		}
		var e entry
		if name == metadataKey {
			metadata = map[string]string{}
			err = decoder.Decode(&metadata)
		} else {
			err = decoder.Decode(&e)
			entries[name] = e
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: entry %q: %w", ErrFormat, name, err)
		}
	}
	if _, err := decoder.Token(); err != nil {
		return nil, nil, fmt.Errorf("%w: header: %w", ErrFormat, truncated(err))
	}
	if rest := bytes.TrimRight(text[decoder.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, fmt.Errorf("%w: header goes on after its end", ErrFormat)
	}
	return entries, metadata, nil
}

// layOut checks the entries against spec and returns spec's tensors in the
// order of their bytes, which follow one another without gap or overlap.
func layOut(spec Spec, entries map[string]entry) ([]int, error) {
	order := make([]int, 0, len(spec.Tensors))
	for i, t := range spec.Tensors {
		e, ok := entries[t.Name]
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %s has no tensor %s", ErrWeights, spec.Name, t.Name)
		case e.Type != "F32":
			return nil, fmt.Errorf("%w: tensor %s is %q, want F32", ErrWeights, t.Name, e.Type)
		case !slices.Equal(e.Shape, t.Shape):
			return nil, fmt.Errorf("%w: tensor %s is %v, %s wants %v", ErrWeights, t.Name, e.Shape, spec.Name, t.Shape)
		case e.Offsets[0] < 0 || e.Offsets[1] < e.Offsets[0] || e.Offsets[1]-e.Offsets[0] != 4*int64(t.Size):
			return nil, fmt.Errorf("%w: tensor %s of %d values at bytes %v", ErrFormat, t.Name, t.Size, e.Offsets)
		}
		order = append(order, i)
	}
	if len(entries) > len(spec.Tensors) {
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if spec.Find(name) == None {
				return nil, fmt.Errorf("%w: %s has no place for tensor %q", ErrWeights, spec.Name, name)
			}
		}
	}
	begin := func(i int) int64 { return entries[spec.Tensors[i].Name].Offsets[0] }
	slices.SortFunc(order, func(i, j int) int { return int(min(max(begin(i)-begin(j), -1), 1)) })
	at := int64(0)
	for _, i := range order {
		if begin(i) != at {
			return nil, fmt.Errorf("%w: tensor %s starts at byte %d, want %d", ErrFormat, spec.Tensors[i].Name, begin(i), at)
		}
		at += 4 * int64(spec.Tensors[i].Size)
	}
	return order, nil
}

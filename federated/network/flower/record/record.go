// Package record reads and writes the objects in which Flower's messages travel. An object is a line that says what kind it
// is, which other objects it is made of and how long it is, then a zero byte and its body; its name is the SHA-256 of all
// that. So whoever holds an object can check it, and what two messages share is sent once.
package record

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrFormat is bytes that are no object, or not one of the kind that was expected.
var ErrFormat = errors.New("record: malformed object")

// The kinds of objects.
const (
	Message      = "Message"
	RecordDict   = "RecordDict"
	ArrayRecord  = "ArrayRecord"
	ConfigRecord = "ConfigRecord"
	MetricRecord = "MetricRecord"
	Array        = "Array"
	ArrayChunk   = "ArrayChunk"
)

// ChunkSize is how many bytes of an array go into one object.
const ChunkSize = 5 << 20

// maxHead bounds the line at the beginning of an object: some 15000 children, which are as many arrays or gigabytes.
const maxHead = 1 << 20

// ID names an object.
type ID [sha256.Size]byte

// String is the name as Flower writes it.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ParseID reads what String writes.
func ParseID(text string) (ID, error) {
	var id ID
	if len(text) != hex.EncodedLen(len(id)) {
		return id, fmt.Errorf("%w: %.80q is no object's name", ErrFormat, text)
	}
	if _, err := hex.Decode(id[:], []byte(text)); err != nil || id.String() != text {
		return id, fmt.Errorf("%w: %q is no object's name", ErrFormat, text)
	}
	return id, nil
}

// Object is an object taken apart. Body is part of the bytes it was read from.
type Object struct {
	Kind     string
	Children []ID
	Body     []byte
}

// Head is all of an object that comes before its body.
func Head(kind string, children []ID, length int) []byte {
	head := append([]byte(kind), ' ')
	for i, child := range children {
		if i > 0 {
			head = append(head, ',')
		}
		head = hex.AppendEncode(head, child[:])
	}
	return append(strconv.AppendInt(append(head, ' '), int64(length), 10), 0)
}

// Encode puts an object together.
func (o Object) Encode() []byte {
	return append(Head(o.Kind, o.Children, len(o.Body)), o.Body...)
}

// Name is the name of an object that is encoded.
func Name(encoded ...[]byte) ID {
	sum := sha256.New()
	for _, part := range encoded {
		sum.Write(part)
	}
	return ID(sum.Sum(nil))
}

// Parse takes an object apart.
func Parse(encoded []byte) (Object, error) {
	var o Object
	end := bytes.IndexByte(encoded[:min(len(encoded), maxHead)], 0)
	if end < 0 {
		return o, fmt.Errorf("%w: its beginning has no end", ErrFormat)
	}
	words := strings.Split(string(encoded[:end]), " ")
	if len(words) != 3 {
		return o, fmt.Errorf("%w: it begins with %.80q", ErrFormat, encoded[:end])
	}
	o.Kind, o.Body = words[0], encoded[end+1:]
	switch o.Kind {
	case Message, RecordDict, ArrayRecord, ConfigRecord, MetricRecord, Array, ArrayChunk:
	default:
		return o, fmt.Errorf("%w: kind %.40q", ErrFormat, o.Kind)
	}
	if length, err := strconv.Atoi(words[2]); err != nil || length != len(o.Body) {
		return o, fmt.Errorf("%w: a body of %d bytes, announced as %.40q", ErrFormat, len(o.Body), words[2])
	}
	if words[1] == "" {
		return o, nil
	}
	for _, word := range strings.Split(words[1], ",") {
		id, err := ParseID(word)
		if err != nil {
			return o, err
		}
		o.Children = append(o.Children, id)
	}
	return o, nil
}

// expect takes an object apart that is to be of a kind.
func expect(kind string, encoded []byte) (Object, error) {
	o, err := Parse(encoded)
	if err == nil && o.Kind != kind {
		err = fmt.Errorf("%w: %s, expected %s", ErrFormat, o.Kind, kind)
	}
	return o, err
}

// Entry is a name and the object it stands for.
type Entry struct {
	Name string
	ID   ID
}

// Refs is an object of kind RecordDict or ArrayRecord: names and what they stand for, in order.
func Refs(kind string, entries []Entry) Object {
	o := Object{Kind: kind, Body: []byte{'{'}}
	seen := map[ID]bool{}
	for i, entry := range entries {
		if i > 0 {
			o.Body = append(o.Body, ", "...)
		}
		name, _ := json.Marshal(entry.Name) // a string can always be written
		o.Body = fmt.Appendf(o.Body, "%s: %q", name, entry.ID.String())
		if !seen[entry.ID] {
			seen[entry.ID] = true
			o.Children = append(o.Children, entry.ID)
		}
	}
	o.Body = append(o.Body, '}')
	return o
}

// ParseRefs reads an object of kind RecordDict or ArrayRecord.
func ParseRefs(kind string, encoded []byte) ([]Entry, error) {
	o, err := expect(kind, encoded)
	if err != nil {
		return nil, err
	}
	children := map[ID]bool{}
	for _, child := range o.Children {
		children[child] = true
	}
	var entries []Entry
	seen := map[string]bool{}
	decoder := json.NewDecoder(bytes.NewReader(o.Body))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, fmt.Errorf("%w: the body of a %s is no JSON object", ErrFormat, kind)
	}
	for decoder.More() {
		key, err := decoder.Token()
		name, _ := key.(string)
		if err != nil || seen[name] {
			return nil, fmt.Errorf("%w: a name in a %s is missing or there twice", ErrFormat, kind)
		}
		seen[name] = true
		value, err := decoder.Token()
		text, ok := value.(string)
		if err != nil || !ok {
			return nil, fmt.Errorf("%w: %.40q in a %s names no object", ErrFormat, name, kind)
		}
		id, err := ParseID(text)
		if err != nil {
			return nil, err
		}
		if !children[id] {
			return nil, fmt.Errorf("%w: %.40q in a %s is no child of it", ErrFormat, name, kind)
		}
		entries = append(entries, Entry{name, id})
	}
	if err := ended(decoder); err != nil {
		return nil, fmt.Errorf("%w: the body of a %s: %w", ErrFormat, kind, err)
	}
	return entries, nil
}

// ended checks that a JSON object is closed and nothing follows.
func ended(decoder *json.Decoder) error {
	if _, err := decoder.Token(); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// arrayBody is the body of an Array. Chunks are indices among its children.
type arrayBody struct {
	Type      string `json:"dtype"`
	Shape     []int  `json:"shape"`
	Container string `json:"stype"`
	Chunks    []int  `json:"arraychunk_ids"`
}

// Numpy is what an Array says it is a file of.
const Numpy = "numpy.ndarray"

// NewArray is an array whose file was cut into chunks. Where all is in the file, the type may be empty and the shape nil.
func NewArray(kind string, shape []int, chunks []ID) Object {
	body := arrayBody{kind, append([]int{}, shape...), Numpy, []int{}}
	o := Object{Kind: Array}
	index := map[ID]int{}
	for _, chunk := range chunks {
		if _, ok := index[chunk]; !ok {
			index[chunk] = len(o.Children)
			o.Children = append(o.Children, chunk)
		}
		body.Chunks = append(body.Chunks, index[chunk])
	}
	o.Body, _ = json.Marshal(body) // strings and integers can always be written
	return o
}

// ParseArray reads an Array of so many chunks at most and returns them in order. One chunk may be named more than once.
func ParseArray(encoded []byte, most int) ([]ID, error) {
	o, err := expect(Array, encoded)
	if err != nil {
		return nil, err
	}
	var body arrayBody
	if err := json.Unmarshal(o.Body, &body); err != nil {
		return nil, fmt.Errorf("%w: the body of an array: %w", ErrFormat, err)
	}
	if body.Container != Numpy {
		return nil, fmt.Errorf("%w: an array stored as %.40q, expected %s", ErrFormat, body.Container, Numpy)
	}
	if len(body.Chunks) > most {
		return nil, fmt.Errorf("%w: an array of %d pieces, expected %d at most", ErrFormat, len(body.Chunks), most)
	}
	chunks := make([]ID, len(body.Chunks))
	for i, index := range body.Chunks {
		if index < 0 || index >= len(o.Children) {
			return nil, fmt.Errorf("%w: an array names piece %d of %d", ErrFormat, index, len(o.Children))
		}
		chunks[i] = o.Children[index]
	}
	return chunks, nil
}

// ParseChunk returns the piece of an array's file that a chunk holds.
func ParseChunk(encoded []byte) ([]byte, error) {
	o, err := expect(ArrayChunk, encoded)
	if err == nil && len(o.Children) > 0 {
		err = fmt.Errorf("%w: a piece of an array has children", ErrFormat)
	}
	return o.Body, err
}

package record_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
)

// reply is a message that Flower itself wrote (testdata/write.py).
type reply struct {
	tree    *protocol.ObjectTree
	objects map[record.ID][]byte
}

func load(t testing.TB, name string) reply {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Tree    json.RawMessage
		Objects map[string]string
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	r := reply{tree: tree(t, document.Tree), objects: map[record.ID][]byte{}}
	for name, content := range document.Objects {
		id, err := record.ParseID(name)
		if err != nil {
			t.Fatal(err)
		}
		if r.objects[id], err = hex.DecodeString(content); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func tree(t testing.TB, text json.RawMessage) *protocol.ObjectTree {
	t.Helper()
	var parts []json.RawMessage
	var children []json.RawMessage
	node := &protocol.ObjectTree{}
	if err := errors.Join(json.Unmarshal(text, &parts), json.Unmarshal(parts[0], &node.ObjectId), json.Unmarshal(parts[1], &children)); err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		node.Children = append(node.Children, tree(t, child))
	}
	return node
}

func must[T any](t testing.TB) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Every object of Flower's is read, and put together again to the same bytes and the same name.
func TestFlowersObjects(t *testing.T) {
	for _, name := range []string{"records", "numpy", "error"} {
		r := load(t, name)
		for id, encoded := range r.objects {
			o := must[record.Object](t)(record.Parse(encoded))
			if again := o.Encode(); !bytes.Equal(again, encoded) || record.Name(encoded) != id {
				t.Errorf("%s: a %s changed", name, o.Kind)
			}
		}
		ids := must[[]record.ID](t)(record.Flatten(r.tree, 100))
		if len(ids) != len(r.objects) || ids[len(ids)-1].String() != r.tree.ObjectId {
			t.Errorf("%s: the tree has %d objects, expected %d", name, len(ids), len(r.objects))
		}
		if _, err := record.Flatten(r.tree, len(ids)-1); !errors.Is(err, record.ErrFormat) {
			t.Errorf("%s: a tree above the limit: %v", name, err)
		}
	}
}

func TestFlowersReply(t *testing.T) {
	r := load(t, "records")
	root := must[record.ID](t)(record.ParseID(r.tree.ObjectId))
	message, content, err := record.ParseMessage(r.objects[root])
	if err != nil || content == nil || message.Metadata.ReplyToMessageId != strings.Repeat("ab", 32) || message.Metadata.GroupId != "3" {
		t.Fatalf("%v, %v", message, err)
	}
	entries := must[[]record.Entry](t)(record.ParseRefs(record.RecordDict, r.objects[*content]))
	if len(entries) != 2 || entries[0].Name != "arrays" || entries[1].Name != "metrics" {
		t.Fatalf("%v", entries)
	}
	metrics := must[map[string]any](t)(record.ParseMetrics(r.objects[entries[1].ID]))
	if diff := cmp.Diff(map[string]any{"num-examples": int64(40), "train_loss": 0.25}, metrics); diff != "" {
		t.Error(diff)
	}
	arrays := must[[]record.Entry](t)(record.ParseRefs(record.ArrayRecord, r.objects[entries[0].ID]))
	if len(arrays) != 3 || arrays[0].Name != "a" || arrays[1].ID != arrays[2].ID {
		t.Fatalf("%v", arrays)
	}
	chunks := must[[]record.ID](t)(record.ParseArray(r.objects[arrays[0].ID], 9))
	file := must[[]byte](t)(record.ParseChunk(r.objects[chunks[0]]))
	header, _, err := npy.Parse(file)
	if err != nil || !slices.Equal(header.Shape, []int{2, 3}) {
		t.Errorf("%+v, %v", header, err)
	}
	// What we make of the same things is the same, but for blanks in an array's description.
	if again := record.Refs(record.ArrayRecord, arrays).Encode(); !bytes.Equal(again, r.objects[entries[0].ID]) {
		t.Errorf("%s\n%s", again, r.objects[entries[0].ID])
	}
	if again := must[[]record.ID](t)(record.ParseArray(record.NewArray("float32", []int{2, 3}, chunks).Encode(), 9)); !slices.Equal(again, chunks) {
		t.Errorf("%v", again)
	}
	if again := must[record.Object](t)(record.NewMessage(message, *content)).Encode(); record.Name(again) != root {
		t.Error("the message changed")
	}
}

func TestFlowersOtherReplies(t *testing.T) {
	r := load(t, "error")
	root := must[record.ID](t)(record.ParseID(r.tree.ObjectId))
	message, content, err := record.ParseMessage(r.objects[root])
	if err != nil || content != nil || message.Error.GetReason() != "it broke" {
		t.Errorf("%v, %v", message, err)
	}
	r = load(t, "numpy")
	for _, encoded := range r.objects {
		if o := must[record.Object](t)(record.Parse(encoded)); o.Kind != record.ConfigRecord {
			continue
		}
		config := must[map[string]any](t)(record.ParseConfig(encoded))
		if config["message"] == nil {
			if diff := cmp.Diff(map[string]any{"loss": 0.5, "site": "north", "fine": true}, config); diff != "" {
				t.Error(diff)
			}
			object := must[record.Object](t)(record.NewConfig([]record.Value{{"loss", 0.5}, {"site", "north"}, {"fine", true}}))
			if again := must[map[string]any](t)(record.ParseConfig(object.Encode())); cmp.Diff(config, again) != "" {
				t.Errorf("%v", again)
			}
		}
	}
	if _, err := record.NewConfig([]record.Value{{"what", []int{1}}}); !errors.Is(err, record.ErrFormat) {
		t.Errorf("%v", err)
	}
}

func TestRefused(t *testing.T) {
	id := record.Name([]byte("x"))
	refs := func(body string) []byte {
		return record.Object{Kind: record.ArrayRecord, Children: []record.ID{id}, Body: []byte(body)}.Encode()
	}
	array := func(body string) []byte {
		return record.Object{Kind: record.Array, Children: []record.ID{id}, Body: []byte(body)}.Encode()
	}
	parse := func(b []byte) error { _, err := record.Parse(b); return err }
	parseRefs := func(b []byte) error { _, err := record.ParseRefs(record.ArrayRecord, b); return err }
	parseArray := func(b []byte) error { _, err := record.ParseArray(b, 3); return err }
	for name, err := range map[string]error{
		"empty":        parse(nil),
		"no end":       parse([]byte("Message  0")),
		"words":        parse([]byte("Message 0\x00")),
		"kind":         parse([]byte("Pickle  0\x00")),
		"length":       parse([]byte("Message  3\x00ab")),
		"child":        parse([]byte("Message abc 0\x00")),
		"upper case":   parse([]byte("Message " + strings.ToUpper(id.String()) + " 0\x00")),
		"other kind":   parseRefs(array("{}")),
		"list":         parseRefs(refs("[]")),
		"twice":        parseRefs(refs(`{"a": "` + id.String() + `", "a": "` + id.String() + `"}`)),
		"number":       parseRefs(refs(`{"a": 1}`)),
		"no child":     parseRefs(refs(`{"a": "` + record.Name(nil).String() + `"}`)),
		"after":        parseRefs(refs(`{"a": "` + id.String() + `"} {}`)),
		"broken off":   parseRefs(refs(`{"a": "` + id.String() + `"`)),
		"pickle":       parseArray(array(`{"dtype": "", "shape": [], "stype": "pickle", "arraychunk_ids": [0]}`)),
		"piece":        parseArray(array(`{"dtype": "", "shape": [], "stype": "numpy.ndarray", "arraychunk_ids": [1]}`)),
		"pieces":       parseArray(array(`{"dtype": "", "shape": [], "stype": "numpy.ndarray", "arraychunk_ids": [0, 0, 0, 0]}`)),
		"piece before": parseArray(array(`{"dtype": "", "shape": [], "stype": "numpy.ndarray", "arraychunk_ids": [-1]}`)),
	} {
		if !errors.Is(err, record.ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	deep := record.Tree(id)
	for range 5 {
		deep = record.Tree(id, deep)
	}
	if _, err := record.Flatten(deep, 100); !errors.Is(err, record.ErrFormat) {
		t.Errorf("deep: %v", err)
	}
}

// FuzzParse reads any bytes as any object.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"records", "numpy", "error"} {
		for _, encoded := range load(f, name).objects {
			f.Add(encoded)
		}
	}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		o, err := record.Parse(encoded)
		if err == nil {
			if again, err := record.Parse(o.Encode()); err != nil || !cmp.Equal(o, again) {
				t.Fatalf("%+v became %+v: %v", o, again, err)
			}
		}
		for _, read := range []func() error{
			func() error { _, _, err := record.ParseMessage(encoded); return err },
			func() error { _, err := record.ParseRefs(record.RecordDict, encoded); return err },
			func() error { _, err := record.ParseRefs(record.ArrayRecord, encoded); return err },
			func() error { _, err := record.ParseArray(encoded, 9); return err },
			func() error { _, err := record.ParseChunk(encoded); return err },
			func() error { _, err := record.ParseConfig(encoded); return err },
			func() error { _, err := record.ParseMetrics(encoded); return err },
		} {
			if err := read(); err != nil && !errors.Is(err, record.ErrFormat) {
				t.Fatal(err)
			}
		}
	})
}

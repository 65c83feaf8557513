package flower

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
	"grange/federated/network/objects"
)

// incoming is a SuperNode's answer, whose objects arrive one by one and wait in files.
type incoming struct {
	round  int
	root   record.ID
	folder string
	// missing are the objects that have not come, expected all of them.
	missing, expected map[record.ID]bool
	// size is how many bytes are there, of limit.
	size, limit int64
}

// newIncoming prepares for the objects of a tree.
func newIncoming(round int, ids []record.ID, folder string, limit int64) (*incoming, error) {
	in := &incoming{round: round, root: ids[len(ids)-1], folder: folder, limit: limit,
		missing: map[record.ID]bool{}, expected: map[record.ID]bool{}}
	for _, id := range ids {
		in.missing[id], in.expected[id] = true, true
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", objects.ErrWrite, err)
	}
	return in, nil
}

// remove removes what has come.
func (in *incoming) remove() error { return os.RemoveAll(in.folder) }

func (in *incoming) path(id record.ID) string { return filepath.Join(in.folder, id.String()) }

// put takes an object.
func (in *incoming) put(id record.ID, content []byte) error {
	if !in.missing[id] {
		return nil
	}
	if record.ID(sha256.Sum256(content)) != id {
		return fmt.Errorf("%w: the contents of object %s are not those of its name", ErrReply, id)
	}
	if in.size+int64(len(content)) > in.limit {
		return fmt.Errorf("%w: its objects have more than %d bytes", ErrReply, in.limit)
	}
	if err := os.WriteFile(in.path(id), content, 0o600); err != nil {
		return fmt.Errorf("%w: %w", objects.ErrWrite, err)
	}
	in.size += int64(len(content))
	delete(in.missing, id)
	return nil
}

// get reads an object that has come.
func (in *incoming) get(id record.ID) ([]byte, error) {
	if !in.expected[id] || in.missing[id] {
		return nil, fmt.Errorf("%w: object %s is not in the tree that was announced", ErrReply, id)
	}
	content, err := os.ReadFile(in.path(id))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", objects.ErrRead, err)
	}
	return content, nil
}

// update is what a SuperNode's answer says.
type update struct {
	examples int64
	metrics  map[string]any
	// arrays are the objects of the model's arrays, in order.
	arrays []record.ID
	// failed, if not empty, is why there is no update.
	failed string
}

// read finds out what the answer says. It takes answers of both styles.
func (in *incoming) read(s *Server, replyTo string) (*update, error) {
	encoded, err := in.get(in.root)
	if err != nil {
		return nil, err
	}
	message, content, err := record.ParseMessage(encoded)
	if err != nil {
		return nil, err
	}
	if message.GetMetadata().GetReplyToMessageId() != replyTo {
		return nil, fmt.Errorf("%w: it answers another message", ErrReply)
	}
	if content == nil {
		return &update{failed: failure(message.GetError())}, nil
	}
	if encoded, err = in.get(*content); err != nil {
		return nil, err
	}
	entries, err := record.ParseRefs(record.RecordDict, encoded)
	if err != nil {
		return nil, err
	}
	u := &update{metrics: map[string]any{}}
	var lists [][]record.Entry
	for _, entry := range entries {
		encoded, err := in.get(entry.ID)
		if err != nil {
			return nil, err
		}
		object, err := record.Parse(encoded)
		if err != nil {
			return nil, err
		}
		if object.Kind == record.ArrayRecord {
			list, err := record.ParseRefs(record.ArrayRecord, encoded)
			if err != nil {
				return nil, err
			}
			lists = append(lists, list)
			continue
		}
		read := record.ParseMetrics
		if object.Kind == record.ConfigRecord {
			read = record.ParseConfig
		}
		values, err := read(encoded)
		if err != nil {
			return nil, err
		}
		if code, ok := values["code"].(int64); ok && entry.Name == "fitres.status" && code != 0 {
			return &update{failed: fmt.Sprintf("the client says %s: %.300v", protocol.Code(code), values["message"])}, nil
		}
		for name, value := range values {
			u.metrics[name] = value
		}
	}
	if len(lists) != 1 {
		return nil, fmt.Errorf("%w: %d records of arrays, expected one", ErrReply, len(lists))
	}
	for _, name := range []string{"num-examples", "num_examples"} {
		if value, ok := u.metrics[name].(int64); ok {
			u.examples = value
		} else if value, ok := u.metrics[name].(float64); ok && value == float64(int64(value)) {
			u.examples = int64(value)
		}
	}
	u.arrays, err = s.order(lists[0])
	return u, err
}

// failure is what a SuperNode says went wrong.
func failure(e *protocol.Error) string {
	return fmt.Sprintf("the SuperNode reports error %d: %.300s", e.GetCode(), e.GetReason())
}

// order puts arrays into the model's order: by the model's names, or by number.
func (s *Server) order(list []record.Entry) ([]record.ID, error) {
	n := len(s.layout.Arrays)
	if len(list) != n {
		return nil, fmt.Errorf("%w: %d arrays, expected %d", ErrReply, len(list), n)
	}
	ids := make([]record.ID, n)
	seen := make([]bool, n)
	for _, entry := range list {
		i := s.layout.Find(entry.Name)
		if number, err := strconv.Atoi(entry.Name); i < 0 && err == nil && strconv.Itoa(number) == entry.Name {
			i = number
		}
		if i < 0 || i >= n || seen[i] {
			return nil, fmt.Errorf("%w: array %.60q, expected the model's names, as %q, or numbers", ErrReply, entry.Name,
				s.layout.Arrays[0].Name)
		}
		ids[i], seen[i] = entry.ID, true
	}
	return ids, nil
}

// leastPiece is the size of the smallest pieces into which a client may cut a file, the last of which may be smaller. Flower
// makes pieces of megabytes.
const leastPiece = 1 << 16

// pieces is how many pieces a file of some bytes may have.
func pieces(bytes int) int { return bytes/leastPiece + 1 }

// files hands out the files of the arrays, put together from their pieces.
func (in *incoming) files(s *Server, u *update) func(i int, buffer *[]byte) ([]byte, error) {
	return func(i int, buffer *[]byte) ([]byte, error) {
		encoded, err := in.get(u.arrays[i])
		if err != nil {
			return nil, err
		}
		_, size := s.layout.Offset(i)
		limit := 8*max(1, size) + npy.MaxHeader
		chunks, err := record.ParseArray(encoded, pieces(limit))
		if err != nil {
			return nil, err
		}
		file := (*buffer)[:0]
		for _, chunk := range chunks {
			encoded, err := in.get(chunk)
			if err != nil {
				return nil, err
			}
			piece, err := record.ParseChunk(encoded)
			if err != nil {
				return nil, err
			}
			if file = append(file, piece...); len(file) > limit {
				return nil, fmt.Errorf("%w: array %s has more than %d bytes", ErrReply, s.layout.Arrays[i].Name, limit)
			}
		}
		*buffer = file
		return file, nil
	}
}

// reply makes what is wrong with an answer an ErrReply, unless it is the disk's fault.
func reply(err error) error {
	if err == nil || errors.Is(err, objects.ErrRead) || errors.Is(err, ErrReply) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrReply, err)
}

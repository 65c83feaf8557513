package flower

import (
	"fmt"
	"strconv"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
	"grange/federated/network/objects"
)

// parts are the bytes of an object, in pieces.
type parts [][]byte

// arrays are the arrays of a global model as objects.
type arrays struct {
	digest  objects.Digest
	objects map[record.ID]parts
	// named and numbered are the two records of them: arrays with the model's names for new apps, and in order for a
	// NumPyClient. What they are made of is the same.
	named, numbered tree
}

// tree is an object and all it is made of.
type tree struct {
	id   record.ID
	tree *protocol.ObjectTree
}

// cutArrays makes objects of a model.
func (s *Server) cutArrays(model *encoded) *arrays {
	a := &arrays{digest: model.digest, objects: map[record.ID]parts{}}
	var named, numbered []record.Entry
	var namedTrees, numberedTrees []*protocol.ObjectTree
	for i, file := range model.files {
		array := s.layout.Arrays[i]
		var chunks []record.ID
		var chunkTrees []*protocol.ObjectTree
		for start := 0; start < len(file); start += record.ChunkSize {
			body := file[start:min(start+record.ChunkSize, len(file))]
			head := record.Head(record.ArrayChunk, nil, len(body))
			id := record.Name(head, body)
			a.objects[id] = parts{head, body}
			chunks = append(chunks, id)
			chunkTrees = append(chunkTrees, record.Tree(id))
		}
		if s.options.Style != NumPy {
			id := a.add(record.NewArray(typeNames[array.Type().Kind], array.Shape, chunks))
			named = append(named, record.Entry{Name: array.Name, ID: id})
			namedTrees = append(namedTrees, record.Tree(id, chunkTrees...))
		}
		if s.options.Style != Records {
			id := a.add(record.NewArray("", nil, chunks))
			numbered = append(numbered, record.Entry{Name: strconv.Itoa(i), ID: id})
			numberedTrees = append(numberedTrees, record.Tree(id, chunkTrees...))
		}
	}
	if named != nil {
		id := a.add(record.Refs(record.ArrayRecord, named))
		a.named = tree{id, record.Tree(id, namedTrees...)}
	}
	if numbered != nil {
		id := a.add(record.Refs(record.ArrayRecord, numbered))
		a.numbered = tree{id, record.Tree(id, numberedTrees...)}
	}
	return a
}

// typeNames are numpy's names for what arrays hold.
var typeNames = map[byte]string{'f': "float32", 'i': "int64"}

func (a *arrays) add(o record.Object) record.ID {
	encoded := o.Encode()
	id := record.Name(encoded)
	a.objects[id] = parts{encoded}
	return id
}

// outgoing is the message in which a SuperNode gets its task.
type outgoing struct {
	round   int
	message *protocol.Message
	tree    *protocol.ObjectTree
	arrays  *arrays
	// own are the objects that are in this message only.
	own map[record.ID]parts
}

// find is an object of the message.
func (o *outgoing) find(id record.ID) (parts, bool) {
	if p, ok := o.own[id]; ok {
		return p, true
	}
	p, ok := o.arrays.objects[id]
	return p, ok
}

const (
	// superLink is the number that servers have.
	superLink = 1
	// Messages to SuperNodes are as old as this, in seconds since 1970, and live a hundred years: their names depend on
	// the task alone, so that after a restart of the coordinator an answer to the message before still counts.
	messageCreated = 1_577_836_800
	messageLife    = 100 * 365 * 86400
)

// compose makes the message of a task.
func (f *fleet) compose(next network.Assignment, node uint64) (*outgoing, error) {
	o := &outgoing{round: next.Task.Round, arrays: f.cut(next), own: map[record.ID]parts{}}
	var entries []record.Entry
	var trees []*protocol.ObjectTree
	add := func(name string, t tree) {
		entries = append(entries, record.Entry{Name: name, ID: t.id})
		trees = append(trees, t.tree)
	}
	if o.arrays.named.tree != nil {
		config, err := o.config("server-round", next.Task)
		if err != nil {
			return nil, err
		}
		add("arrays", o.arrays.named)
		add("config", config)
	}
	if o.arrays.numbered.tree != nil {
		config, err := o.config("server_round", next.Task)
		if err != nil {
			return nil, err
		}
		add("fitins.parameters", o.arrays.numbered)
		add("fitins.config", config)
	}
	content := o.keep(record.Refs(record.RecordDict, entries))
	o.message = &protocol.Message{Metadata: &protocol.Metadata{
		RunId: f.run, SrcNodeId: superLink, DstNodeId: node, GroupId: strconv.Itoa(o.round), Ttl: messageLife,
		MessageType: "train", CreatedAt: messageCreated,
	}}
	object, err := record.NewMessage(o.message, content)
	if err != nil {
		return nil, fmt.Errorf("flower: %w", err)
	}
	id := o.keep(object)
	o.message.Metadata.MessageId = id.String()
	o.tree = record.Tree(id, record.Tree(content, trees...))
	return o, nil
}

func (o *outgoing) keep(object record.Object) record.ID {
	encoded := object.Encode()
	id := record.Name(encoded)
	o.own[id] = parts{encoded}
	return id
}

func (o *outgoing) config(round string, task federated.Task) (tree, error) {
	values := append([]record.Value{{Name: round, Value: int64(task.Round)}}, settings(task)...)
	object, err := record.NewConfig(values)
	if err != nil {
		return tree{}, fmt.Errorf("flower: %w", err)
	}
	id := o.keep(object)
	return tree{id, record.Tree(id)}, nil
}

// wire is the message as it is sent, with its content left out.
func (o *outgoing) wire() *protocol.Message {
	return &protocol.Message{Metadata: o.message.Metadata, Content: &protocol.Content{}}
}

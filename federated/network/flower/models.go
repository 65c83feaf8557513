package flower

import (
	"io"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"

	"grange/federated"
	"grange/federated/network/flower/layout"
	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/record"
	"grange/federated/network/objects"
	"grange/model"
)

// encoded is a global model as clients get it.
type encoded struct {
	digest objects.Digest
	// parameters is the field of an instruction that holds the model, and files are the arrays in it.
	parameters []byte
	files      [][]byte
}

// models encodes models, and keeps the last one.
type models struct {
	layout *layout.Layout
	header []byte

	mutex sync.Mutex
	last  *encoded
	// scratch is memory for reading updates, lent to one reader at a time.
	scratch sync.Pool
}

// get is the model of a task.
func (m *models) get(digest objects.Digest, weights *model.Weights) *encoded {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.last == nil || m.last.digest != digest {
		m.last = nil // to have one of them in memory, not two, where nobody else holds the last
		m.last = encode(m.layout, digest, weights)
	}
	return m.last
}

// Numbers of fields of Parameters and of the instruction to train.
const (
	fieldTensors    = 1
	fieldTensorType = 2
	fieldParameters = 1
	fieldConfig     = 2
	fieldFit        = 4
	fieldReconnect  = 1
)

func encode(l *layout.Layout, digest objects.Digest, weights *model.Weights) *encoded {
	sizes, total := make([]int, len(l.Arrays)), 0
	for i, a := range l.Arrays {
		_, values := l.Offset(i)
		sizes[i] = len(npy.AppendHeader(nil, a.Type(), a.Shape)) + values*a.Type().Size
		if values == 0 {
			sizes[i] += a.Type().Size
		}
		total += protowire.SizeTag(fieldTensors) + protowire.SizeBytes(sizes[i])
	}
	total += protowire.SizeTag(fieldTensorType) + protowire.SizeBytes(len(record.Numpy))
	e := &encoded{digest: digest}
	bytes := make([]byte, 0, protowire.SizeTag(fieldParameters)+protowire.SizeBytes(total))
	bytes = protowire.AppendTag(bytes, fieldParameters, protowire.BytesType)
	bytes = protowire.AppendVarint(bytes, uint64(total))
	for i, size := range sizes {
		bytes = protowire.AppendTag(bytes, fieldTensors, protowire.BytesType)
		bytes = protowire.AppendVarint(bytes, uint64(size))
		start := len(bytes)
		bytes = l.Append(bytes, i, weights)
		e.files = append(e.files, bytes[start:len(bytes):len(bytes)])
	}
	bytes = protowire.AppendTag(bytes, fieldTensorType, protowire.BytesType)
	e.parameters = protowire.AppendString(bytes, record.Numpy)
	return e
}

// buffers is memory for reading an update.
type buffers struct {
	file, values, scratch []byte
}

// grown returns a buffer with a length, made anew if it has to be.
func grown(buffer *[]byte, length int) []byte {
	if cap(*buffer) < length {
		*buffer = make([]byte, length)
	}
	return (*buffer)[:length]
}

// store writes an update into the federation's files. Arrays come from next, which gets a buffer that it may use for the
// file of array i, and are written tensor by tensor. An update that is none is an ErrReply.
func (m *models) store(store *objects.Store, next func(i int, buffer *[]byte) ([]byte, error)) (objects.Digest, error) {
	b, ok := m.scratch.Get().(*buffers)
	if !ok {
		b = &buffers{}
	}
	defer m.scratch.Put(b)
	var wrong error
	digest, err := store.Put(func(out io.Writer) error {
		if _, err := out.Write(m.header); err != nil {
			return err
		}
		for i := range m.layout.Arrays {
			file, err := next(i, &b.file)
			if err != nil {
				wrong = reply(err)
				return err
			}
			_, size := m.layout.Offset(i)
			values := grown(&b.values, 4*size)
			if b.scratch, err = m.layout.Decode(values, i, file, b.scratch); err != nil {
				wrong = reply(err)
				return err
			}
			if _, err := out.Write(values); err != nil {
				return err
			}
		}
		return nil
	})
	if wrong != nil {
		return digest, wrong
	}
	return digest, err
}

// settings are what a client is told about its task. Names are those that Flower's examples use.
func settings(task federated.Task) []record.Value {
	return []record.Value{
		{Name: "local_epochs", Value: int64(task.Local.Epochs)},
		{Name: "batch_size", Value: int64(task.Local.Batch)},
		{Name: "lr", Value: task.Local.Rate},
		{Name: "learning_rate", Value: task.Local.Rate},
		{Name: "momentum", Value: task.Local.Momentum},
		{Name: "weight_decay", Value: task.Local.Decay},
		{Name: "proximal_mu", Value: task.Local.Proximal},
		{Name: "max_examples", Value: int64(task.Contribution)},
		{Name: "seed", Value: int64(task.Seed & (1<<63 - 1))},
	}
}

package flower

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"grange/federated"
	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
)

// maxTalk bounds what a client may say beside its arrays: a status and metrics.
const maxTalk = 1 << 20

// fitInstruction is the instruction to train, around a model that is encoded already.
func fitInstruction(model *encoded, task federated.Task) *frame {
	config := appendEntry(nil, record.Value{Name: "server_round", Value: int64(task.Round)})
	for _, value := range settings(task) {
		config = appendEntry(config, value)
	}
	head := protowire.AppendTag(nil, fieldFit, protowire.BytesType)
	head = protowire.AppendVarint(head, uint64(len(model.parameters)+len(config)))
	return &frame{mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(model.parameters), mem.SliceBuffer(config)}}
}

// appendEntry appends one entry of an instruction's configuration.
func appendEntry(bytes []byte, v record.Value) []byte {
	var scalar []byte
	switch value := v.Value.(type) {
	case int64:
		scalar = protowire.AppendTag(scalar, 8, protowire.VarintType)
		scalar = protowire.AppendVarint(scalar, protowire.EncodeZigZag(value))
	case float64:
		scalar = protowire.AppendTag(scalar, 1, protowire.Fixed64Type)
		scalar = protowire.AppendFixed64(scalar, math.Float64bits(value))
	}
	entry := protowire.AppendTag(nil, 1, protowire.BytesType)
	entry = protowire.AppendString(entry, v.Name)
	entry = protowire.AppendTag(entry, 2, protowire.BytesType)
	entry = protowire.AppendBytes(entry, scalar)
	bytes = protowire.AppendTag(bytes, fieldConfig, protowire.BytesType)
	return protowire.AppendBytes(bytes, entry)
}

// endInstruction ends the conversation with a client for good.
func endInstruction() *frame {
	return &frame{mem.BufferSlice{mem.SliceBuffer(protowire.AppendBytes(
		protowire.AppendTag(nil, fieldReconnect, protowire.BytesType), nil))}}
}

// answer is a client's answer: to the instruction to train, or that it goes.
type answer struct {
	// leaving says that the client goes, and all else is empty.
	leaving bool
	// talk is all but the arrays.
	talk *protocol.ClientMessage_FitRes
	// arrays are where in the message the arrays' files are.
	arrays []extent
}

// extent is a part of a message.
type extent struct{ offset, length int }

// parseAnswer finds its way in an answer, without a look at the arrays themselves.
func parseAnswer(data mem.BufferSlice, arrays int) (*answer, error) {
	c := &cursor{reader: data.Reader(), end: data.Len()}
	defer c.reader.Close()
	a := &answer{}
	var talk []byte
	seen := false
	for !c.done() {
		field, length, err := c.field()
		if err != nil {
			return nil, err
		}
		if seen || field != fieldFit && field != 1 {
			return nil, fmt.Errorf("%w: it is no answer to the instruction to train", ErrReply)
		}
		seen = true
		if field == 1 {
			if c.at+length != c.end {
				return nil, fmt.Errorf("%w: something comes after the goodbye", ErrReply)
			}
			a.leaving = true
			return a, nil
		}
		if talk, err = c.fitResult(a, c.at+length, arrays); err != nil {
			return nil, err
		}
	}
	if !seen {
		return nil, fmt.Errorf("%w: it is empty", ErrReply)
	}
	a.talk = &protocol.ClientMessage_FitRes{}
	if err := proto.Unmarshal(talk, a.talk); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrReply, err)
	}
	return a, nil
}

// cursor moves through a message.
type cursor struct {
	reader  *mem.Reader
	at, end int
}

func (c *cursor) done() bool { return c.at >= c.end }

// varint reads a number.
func (c *cursor) varint() (uint64, error) {
	before := c.reader.Remaining()
	value, err := binary.ReadUvarint(c.reader)
	c.at += before - c.reader.Remaining()
	if err != nil || c.at > c.end {
		return 0, fmt.Errorf("%w: it breaks off", ErrReply)
	}
	return value, nil
}

// field reads the beginning of a field that holds bytes.
func (c *cursor) field() (protowire.Number, int, error) {
	tag, err := c.varint()
	if err != nil {
		return 0, 0, err
	}
	number, kind := protowire.DecodeTag(tag)
	if kind != protowire.BytesType {
		return 0, 0, fmt.Errorf("%w: field %d is not what it should be", ErrReply, number)
	}
	length, err := c.varint()
	if err == nil && length > uint64(c.end-c.at) {
		err = fmt.Errorf("%w: field %d claims %d bytes, and %d are left", ErrReply, number, length, c.end-c.at)
	}
	return number, int(length), err
}

// skip moves over bytes; copied returns them.
func (c *cursor) skip(n int) {
	discarded, _ := c.reader.Discard(n) // that so many are left has been checked
	c.at += discarded
}

func (c *cursor) copied(n int) []byte {
	bytes := make([]byte, n)
	read, _ := io.ReadFull(c.reader, bytes)
	c.at += read
	return bytes[:read]
}

// fitResult goes through the answer to the instruction to train, notes where arrays are and returns all other fields.
func (c *cursor) fitResult(a *answer, end, arrays int) ([]byte, error) {
	var talk []byte
	outer := c.end
	c.end = end
	defer func() { c.end = outer }()
	parameters := false
	for !c.done() {
		tag, err := c.varint()
		if err != nil {
			return nil, err
		}
		number, kind := protowire.DecodeTag(tag)
		switch {
		case kind == protowire.VarintType:
			value, err := c.varint()
			if err != nil {
				return nil, err
			}
			talk = protowire.AppendVarint(protowire.AppendVarint(talk, tag), value)
			continue
		case kind != protowire.BytesType:
			return nil, fmt.Errorf("%w: field %d of it is not what it should be", ErrReply, number)
		}
		length, err := c.varint()
		switch {
		case err != nil:
			return nil, err
		case length > uint64(c.end-c.at):
			return nil, fmt.Errorf("%w: field %d claims %d bytes, and %d are left", ErrReply, number, length, c.end-c.at)
		case number != 2 && len(talk)+int(length) > maxTalk:
			return nil, fmt.Errorf("%w: metrics of more than %d bytes", ErrReply, maxTalk)
		case number != 2:
			talk = protowire.AppendBytes(protowire.AppendVarint(talk, tag), c.copied(int(length)))
		case parameters:
			return nil, fmt.Errorf("%w: arrays are there twice", ErrReply)
		default:
			parameters = true
			if err := c.parameters(a, c.at+int(length), arrays); err != nil {
				return nil, err
			}
		}
		if len(talk) > maxTalk {
			return nil, fmt.Errorf("%w: more than %d bytes beside the arrays", ErrReply, maxTalk)
		}
	}
	return talk, nil
}

// parameters goes through the list of arrays.
func (c *cursor) parameters(a *answer, end, arrays int) error {
	outer := c.end
	c.end = end
	defer func() { c.end = outer }()
	for !c.done() {
		number, length, err := c.field()
		switch {
		case err != nil:
			return err
		case number == fieldTensorType:
			if length != len(record.Numpy) || string(c.copied(length)) != record.Numpy {
				return fmt.Errorf("%w: its arrays are not %s", ErrReply, record.Numpy)
			}
		case number != fieldTensors:
			return fmt.Errorf("%w: field %d among the arrays", ErrReply, number)
		case len(a.arrays) == arrays:
			return fmt.Errorf("%w: more than %d arrays", ErrReply, arrays)
		default:
			a.arrays = append(a.arrays, extent{c.at, length})
			c.skip(length)
		}
	}
	return nil
}

// arrayFiles returns what hands out the files of an answer's arrays, one after another.
func arrayFiles(data mem.BufferSlice, a *answer, sizes []int) (next func(i int, buffer *[]byte) ([]byte, error), closeAll func()) {
	reader, at := data.Reader(), 0
	return func(i int, buffer *[]byte) ([]byte, error) {
		part := a.arrays[i]
		if limit := 8*max(1, sizes[i]) + npy.MaxHeader; part.length > limit {
			return nil, fmt.Errorf("%w: array %d has %d bytes, expected %d at most", ErrReply, i+1, part.length, limit)
		}
		if _, err := reader.Discard(part.offset - at); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrReply, err)
		}
		file := grown(buffer, part.length)
		if _, err := io.ReadFull(reader, file); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrReply, err)
		}
		at = part.offset + part.length
		return file, nil
	}, func() { _ = reader.Close() }
}

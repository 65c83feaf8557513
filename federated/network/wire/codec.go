// Package wire is what a silo and its coordinator say to each other: the messages and services of wire.proto, and an
// encoding of the pieces of files that does not copy them.
package wire

import (
	"errors"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// ErrMessage is bytes that are not the message they should be.
var ErrMessage = errors.New("wire: malformed message")

// Encoder is a message that writes itself, as a rule without copying what is large in it.
type Encoder interface {
	// Encode returns the message in protobuf's encoding. gRPC frees the buffers.
	Encode() (mem.BufferSlice, error)
}

// Decoder is a message that reads itself.
type Decoder interface {
	// Decode reads the message. What it keeps of the buffers it must take references to.
	Decode(mem.BufferSlice) error
}

// Codec is protobuf's encoding, written by the messages themselves where they can. On the wire it cannot be told from
// gRPC's own.
type Codec struct{}

var _ encoding.CodecV2 = Codec{}

// standard is gRPC's own codec.
var standard = encoding.GetCodecV2(proto.Name)

// Marshal encodes a message.
func (Codec) Marshal(message any) (mem.BufferSlice, error) {
	if m, ok := message.(Encoder); ok {
		return m.Encode()
	}
	return standard.Marshal(message)
}

// Unmarshal decodes a message.
func (Codec) Unmarshal(data mem.BufferSlice, message any) error {
	if m, ok := message.(Decoder); ok {
		return m.Decode(data)
	}
	return standard.Unmarshal(data, message)
}

// Name is protobuf's.
func (Codec) Name() string { return proto.Name }

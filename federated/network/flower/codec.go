package flower

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec for all other messages
	"google.golang.org/grpc/mem"
)

// frame is a message as it is on the wire. A model is encoded once and the same bytes go to all clients; an update is read
// where it was received.
type frame struct {
	data mem.BufferSlice
}

// free lets go of a frame that was received.
func (f *frame) free() {
	f.data.Free()
	f.data = nil
}

// codec passes frames through and leaves all else to the codec for protobuf.
type codec struct {
	encoding.CodecV2
}

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Marshal is that of encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		return f.data, nil
	}
	return c.CodecV2.Marshal(v)
}

// Unmarshal is that of encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if f, ok := v.(*frame); ok {
		data.Ref()
		f.data = append(mem.BufferSlice(nil), data...)
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

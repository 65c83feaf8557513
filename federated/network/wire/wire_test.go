package wire_test

import (
	"bytes"
	"errors"
	"hash/crc32"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"grange/federated/network/wire"
)

// cut divides bytes into buffers of the given size, as frames arrive.
func cut(data []byte, size int) mem.BufferSlice {
	var out mem.BufferSlice
	for len(data) > 0 {
		n := min(size, len(data))
		out = append(out, mem.SliceBuffer(data[:n]))
		data = data[n:]
	}
	return out
}

func piece(offset uint64, data []byte) *wire.Piece {
	buffer := wire.Pool.Get(len(data))
	copy(*buffer, data)
	return wire.NewPiece(offset, buffer)
}

// What is written by hand must be what protobuf writes, and the other way round.
func TestHandWrittenEncodingIsProtobuf(t *testing.T) {
	data := bytes.Repeat([]byte("grange"), 30_000)
	for _, offset := range []uint64{0, 1, 1 << 40} {
		for _, n := range []int{0, 1, 100, len(data)} {
			chunk := &wire.Chunk{Offset: offset, Checksum: crc32.Checksum(data[:n], crc32.MakeTable(crc32.Castagnoli)), Data: data[:n]}
			same(t, piece(offset, data[:n]), chunk)
			same(t, wire.UploadPart(piece(offset, data[:n])), &wire.UploadRequest{What: &wire.UploadRequest_Chunk{Chunk: chunk}})
		}
	}
	header := &wire.UploadHeader{Run: "run", Round: 3, Ticket: data[:16], Size: 9, Checksum: 8, Examples: 7, Loss: 0.5}
	same(t, &wire.Part{Header: header}, &wire.UploadRequest{What: &wire.UploadRequest_Header{Header: header}})
}

func same(t *testing.T, message wire.Encoder, standard proto.Message) {
	t.Helper()
	encoded, err := wire.Codec{}.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(standard)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded.Materialize(), want) {
		t.Errorf("%v: written by hand as % x", standard, encoded.Materialize())
	}
}

func TestPieceIsReadInAnyCut(t *testing.T) {
	data := bytes.Repeat([]byte("silo"), 5000)
	encoded, err := piece(77, data).Encode()
	if err != nil {
		t.Fatal(err)
	}
	whole := encoded.Materialize()
	for _, size := range []int{1, 2, 3, 7, 16384, len(whole)} {
		var got wire.Piece
		if err := (wire.Codec{}).Unmarshal(cut(whole, size), &got); err != nil {
			t.Fatal(err)
		}
		if got.Offset != 77 || !got.Intact() || got.Len() != len(data) || !bytes.Equal(bytes.Join(got.Parts(), nil), data) {
			t.Errorf("in buffers of %d bytes: another piece", size)
		}
		got.Free()
		got.Free()
	}
	whole[len(whole)-1] ^= 1
	var got wire.Piece
	if err := got.Decode(cut(whole, 100)); err != nil || got.Intact() {
		t.Errorf("a changed byte was not noticed: %v", err)
	}
}

func TestPieceCanBeSentOnce(t *testing.T) {
	p := piece(0, []byte("x"))
	if _, err := p.Encode(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Encode(); !errors.Is(err, wire.ErrMessage) {
		t.Errorf("sent twice: %v", err)
	}
	if _, err := (&wire.Part{}).Encode(); !errors.Is(err, wire.ErrMessage) {
		t.Errorf("sent empty: %v", err)
	}
}

func TestMalformedPieces(t *testing.T) {
	long, err := proto.Marshal(&wire.Chunk{Data: make([]byte, wire.MaxPiece+1)})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"unknown field":     {0x20, 1},
		"offset cut":        {0x08},
		"offset too long":   {0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
		"checksum cut":      {0x15, 1, 2},
		"order":             {0x15, 1, 2, 3, 4, 0x08, 1},
		"twice":             {0x08, 1, 0x08, 1},
		"data too short":    {0x1a, 5, 1, 2},
		"more after data":   {0x1a, 1, 1, 2},
		"data without size": {0x1a},
		"too large":         long,
	} {
		var p wire.Piece
		if err := p.Decode(cut(data, 3)); !errors.Is(err, wire.ErrMessage) || p.Parts() != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, data := range map[string][]byte{
		"empty":            {},
		"no length":        {0x12},
		"short":            {0x12, 9, 0x08},
		"unknown field":    {0x1a, 1, 0},
		"malformed header": {0x0a, 2, 0x0a, 9},
		"malformed chunk":  {0x12, 2, 0x20, 1},
		"long header":      append([]byte{0x0a, 0x81, 0x20}, make([]byte, 4097)...),
	} {
		var p wire.Part
		if err := p.Decode(cut(data, 3)); err != nil || !errors.Is(p.Malformed, wire.ErrMessage) || p.Header != nil {
			t.Errorf("%s: %v, %v", name, err, p.Malformed)
		}
	}
}

// What the hand-written decoder takes, protobuf takes too, and finds the same in it.
func FuzzPart(f *testing.F) {
	for _, p := range []*wire.Part{
		wire.UploadPart(piece(5, []byte("hello"))), wire.UploadPart(piece(0, nil)),
		{Header: &wire.UploadHeader{Run: "r", Round: 1, Ticket: make([]byte, 16), Size: 5}},
	} {
		encoded, err := p.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded.Materialize(), 3)
	}
	f.Add([]byte{0x12, 2, 0x1a, 0}, 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = min(max(size, 1), 1<<14)
		var part wire.Part
		if err := part.Decode(cut(data, size)); err != nil {
			t.Fatal(err)
		}
		if part.Malformed == nil {
			var want wire.UploadRequest
			if err := proto.Unmarshal(data, &want); err != nil {
				t.Fatalf("protobuf does not take it: %v", err)
			}
			if part.Header != nil {
				if !proto.Equal(part.Header, want.GetHeader()) {
					t.Fatalf("header %v, protobuf reads %v", part.Header, want.GetHeader())
				}
			} else {
				equal(t, &part.Piece, want.GetChunk())
			}
		} else if !errors.Is(part.Malformed, wire.ErrMessage) {
			t.Fatalf("unexpected error %v", part.Malformed)
		}
		part.Free()
		var alone wire.Piece
		if err := alone.Decode(cut(data, size)); err == nil {
			var want wire.Chunk
			if err := proto.Unmarshal(data, &want); err != nil {
				t.Fatalf("protobuf does not take it: %v", err)
			}
			equal(t, &alone, &want)
		}
		alone.Free()
	})
}

func equal(t *testing.T, got *wire.Piece, want *wire.Chunk) {
	t.Helper()
	if got.Offset != want.GetOffset() || got.Checksum != want.GetChecksum() || !bytes.Equal(bytes.Join(got.Parts(), nil), want.GetData()) {
		t.Fatalf("another chunk than protobuf reads: %v", want)
	}
}

package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// MaxPiece is the most bytes of a file in one message, and what is lost at most when a connection breaks. Larger ones were
// not faster.
const MaxPiece = 256 << 10

// MaxMessage is the largest message that either side takes: more than a piece, or terms with a large transition matrix.
const MaxMessage = 1 << 20

// castagnoli is the polynomial that processors compute with.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Pool is where buffers for pieces come from. Unlike gRPC's pools it does not clear them.
var Pool mem.BufferPool = &pool{}

type pool struct{ free sync.Pool }

// Get returns a buffer of some length, up to MaxPiece.
func (p *pool) Get(length int) *[]byte {
	if buffer, ok := p.free.Get().(*[]byte); ok && length <= cap(*buffer) {
		*buffer = (*buffer)[:length]
		return buffer
	}
	buffer := make([]byte, length, max(length, MaxPiece))
	return &buffer
}

// Put takes a buffer back.
func (p *pool) Put(buffer *[]byte) {
	if cap(*buffer) >= MaxPiece {
		p.free.Put(buffer)
	}
}

// Piece is a Chunk that was not copied: its data lies in buffers that gRPC lent.
type Piece struct {
	// Offset is where in the file it begins.
	Offset uint64
	// Checksum is what the sender says that the CRC-32C of the data is.
	Checksum uint32
	// parts are the data, held by reader or, when it is to be sent, by own.
	parts  [][]byte
	reader *mem.Reader
	own    mem.Buffer
}

// NewPiece makes a piece of a buffer from Pool, to be sent once: sending gives the buffer back.
func NewPiece(offset uint64, buffer *[]byte) *Piece {
	return &Piece{
		Offset: offset, Checksum: crc32.Checksum(*buffer, castagnoli),
		parts: [][]byte{*buffer}, own: mem.NewBuffer(buffer, Pool),
	}
}

// SharedPiece makes a piece of data that nobody changes, to be sent once. The checksum is that of the data.
func SharedPiece(offset uint64, checksum uint32, data []byte) *Piece {
	return &Piece{Offset: offset, Checksum: checksum, parts: [][]byte{data}, own: mem.SliceBuffer(data)}
}

// Checksum is the CRC-32C of data.
func Checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// Parts are the data, one after another. They may be read until Free is called.
func (p *Piece) Parts() [][]byte { return p.parts }

// Len is how many bytes of data there are.
func (p *Piece) Len() int {
	length := 0
	for _, part := range p.parts {
		length += len(part)
	}
	return length
}

// Intact reports whether the data has its checksum.
func (p *Piece) Intact() bool {
	sum := uint32(0)
	for _, part := range p.parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum == p.Checksum
}

// Free gives the data back. It may be called again.
func (p *Piece) Free() {
	if p.reader != nil {
		_ = p.reader.Close() // always nil
		p.reader = nil
	}
	if p.own != nil {
		p.own.Free()
		p.own = nil
	}
	p.parts = nil
}

// The fields of a Chunk as tags, and those of an UploadRequest.
const (
	tagOffset   = 1<<3 | byte(protowire.VarintType)
	tagChecksum = 2<<3 | byte(protowire.Fixed32Type)
	tagData     = 3<<3 | byte(protowire.BytesType)
	tagHeader   = 1<<3 | byte(protowire.BytesType)
	tagChunk    = 2<<3 | byte(protowire.BytesType)
)

// prefix is all of the encoded Chunk but the data itself.
func (p *Piece) prefix() []byte {
	b := make([]byte, 0, 48)
	if p.Offset != 0 {
		b = protowire.AppendVarint(append(b, tagOffset), p.Offset)
	}
	if p.Checksum != 0 {
		b = protowire.AppendFixed32(append(b, tagChecksum), p.Checksum)
	}
	if n := p.Len(); n != 0 {
		b = protowire.AppendVarint(append(b, tagData), uint64(n))
	}
	return b
}

// take hands the data of a piece that is sent over to gRPC.
func (p *Piece) take() mem.Buffer {
	own := p.own
	p.own, p.parts = nil, nil
	return own
}

// Encode writes a Chunk. The piece is empty thereafter.
func (p *Piece) Encode() (mem.BufferSlice, error) {
	if p.own == nil {
		return nil, fmt.Errorf("%w: a piece can be sent once", ErrMessage)
	}
	prefix := p.prefix()
	return mem.BufferSlice{mem.SliceBuffer(prefix), p.take()}, nil
}

// Decode reads a Chunk. Fields must come in order and once, as every encoder writes them.
func (p *Piece) Decode(data mem.BufferSlice) error {
	p.Free()
	return p.decode(data.Reader())
}

// decode reads a Chunk from the rest of a reader, which the piece keeps.
func (p *Piece) decode(reader *mem.Reader) error {
	*p = Piece{reader: reader}
	if err := p.fields(); err != nil {
		p.Free()
		return err
	}
	return nil
}

func (p *Piece) fields() error {
	last := byte(0)
	for p.reader.Remaining() > 0 {
		tag, err := p.reader.ReadByte()
		if err != nil || tag <= last {
			return fmt.Errorf("%w: field %#x in a chunk", ErrMessage, tag)
		}
		last = tag
		switch tag {
		case tagOffset:
			if p.Offset, err = binary.ReadUvarint(p.reader); err != nil {
				return fmt.Errorf("%w: offset: %w", ErrMessage, err)
			}
		case tagChecksum:
			var b [4]byte
			if _, err := io.ReadFull(p.reader, b[:]); err != nil {
				return fmt.Errorf("%w: checksum: %w", ErrMessage, err)
			}
			p.Checksum = binary.LittleEndian.Uint32(b[:])
		case tagData:
			return p.data()
		default:
			return fmt.Errorf("%w: field %#x in a chunk", ErrMessage, tag)
		}
	}
	return nil
}

// data takes the rest of the message as the data of the piece.
func (p *Piece) data() error {
	length, err := binary.ReadUvarint(p.reader)
	if err != nil {
		return fmt.Errorf("%w: length: %w", ErrMessage, err)
	}
	if length > MaxPiece || length != uint64(p.reader.Remaining()) {
		return fmt.Errorf("%w: %d bytes of data announced, %d sent, %d allowed", ErrMessage, length, p.reader.Remaining(), MaxPiece)
	}
	if p.parts, err = p.reader.Peek(int(length), nil); err != nil {
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}

// Part is an UploadRequest that was not copied: a header, or a piece.
type Part struct {
	Header *UploadHeader
	Piece  Piece
	// Malformed is what is wrong with a part that was received. gRPC would tell the sender and nobody else.
	Malformed error
}

// Free gives the piece's data back. It may be called again.
func (p *Part) Free() { p.Piece.Free() }

// UploadPart makes a piece a part of an upload. The piece is empty thereafter.
func UploadPart(piece *Piece) *Part {
	part := &Part{Piece: *piece}
	*piece = Piece{}
	return part
}

// Encode writes an UploadRequest. The piece in it is empty thereafter.
func (p *Part) Encode() (mem.BufferSlice, error) {
	if p.Header != nil {
		return standard.Marshal(&UploadRequest{What: &UploadRequest_Header{Header: p.Header}})
	}
	if p.Piece.own == nil {
		return nil, fmt.Errorf("%w: a piece can be sent once", ErrMessage)
	}
	prefix := p.Piece.prefix()
	outer := protowire.AppendVarint([]byte{tagChunk}, uint64(len(prefix)+p.Piece.Len()))
	return mem.BufferSlice{mem.SliceBuffer(append(outer, prefix...)), p.Piece.take()}, nil
}

// maxHeader bounds an upload's header.
const maxHeader = 4096

// Decode reads an UploadRequest: exactly one field, as every encoder writes it. What is wrong with it is in Malformed.
func (p *Part) Decode(data mem.BufferSlice) error {
	p.Piece.Free()
	p.Header = nil
	p.Malformed = p.decode(data.Reader())
	return nil
}

func (p *Part) decode(reader *mem.Reader) error {
	tag, length, err := outer(reader)
	switch {
	case err != nil:
	case tag == tagChunk:
		return p.Piece.decode(reader)
	case tag == tagHeader && length <= maxHeader:
		text := make([]byte, length)
		if _, err = io.ReadFull(reader, text); err == nil {
			p.Header = &UploadHeader{}
			err = proto.Unmarshal(text, p.Header)
		}
	default:
		err = fmt.Errorf("field %#x of %d bytes in an upload", tag, length)
	}
	_ = reader.Close() // always nil
	if err != nil {
		p.Header = nil
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}

// outer reads the tag and the length of the one field of a message.
func outer(reader *mem.Reader) (tag byte, length uint64, err error) {
	if tag, err = reader.ReadByte(); err != nil {
		return 0, 0, err
	}
	if length, err = binary.ReadUvarint(reader); err != nil {
		return 0, 0, err
	}
	if length > math.MaxInt32 || int(length) != reader.Remaining() {
		return 0, 0, fmt.Errorf("%d bytes announced, %d sent", length, reader.Remaining())
	}
	return tag, length, nil
}

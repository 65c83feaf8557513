package silo

import (
	"fmt"
	"io"
	"math"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"grange/federated/network/wire"
	"grange/internal/littleendian"
	"grange/model"
)

// content is the file of a model that is in memory anyway. Nobody may change the model while it is sent.
type content struct {
	header, values []byte
	// checksums are those of the pieces of the values.
	checksums []uint32
}

func newContent(header []byte, weights *model.Weights) *content {
	c := &content{header: header, values: littleendian.Bytes(weights.Flat)}
	for at := 0; at < len(c.values); at += wire.MaxPiece {
		c.checksums = append(c.checksums, wire.Checksum(c.values[at:min(at+wire.MaxPiece, len(c.values))]))
	}
	return c
}

// send sends the file from an offset to its end, without copying it.
func (c *content) send(offset uint64, alive func(), pass func(*wire.Piece) error) error {
	begin := uint64(len(c.header))
	for offset < begin+uint64(len(c.values)) {
		piece := c.piece(offset)
		n := uint64(piece.Len())
		if err := pass(piece); err != nil {
			return err
		}
		alive()
		offset += n
	}
	return nil
}

// piece is the piece that begins at an offset: the rest of the header, or of one of the pieces of the values.
func (c *content) piece(offset uint64) *wire.Piece {
	begin := uint64(len(c.header))
	if offset < begin {
		data := c.header[offset:min(offset+wire.MaxPiece, begin)]
		return wire.SharedPiece(offset, wire.Checksum(data), data)
	}
	number := (offset - begin) / wire.MaxPiece
	data := c.values[offset-begin : min((number+1)*wire.MaxPiece, uint64(len(c.values)))]
	checksum := c.checksums[number]
	if (offset-begin)%wire.MaxPiece != 0 {
		checksum = wire.Checksum(data)
	}
	return wire.SharedPiece(offset, checksum, data)
}

// send sends a file from an offset to its end.
func send(file *os.File, offset uint64, alive func(), pass func(*wire.Piece) error) error {
	if offset > math.MaxInt64 {
		return status.Error(codes.OutOfRange, "the offset is beyond all files")
	}
	for {
		data := wire.Pool.Get(wire.MaxPiece)
		n, err := file.ReadAt(*data, int64(offset))
		if n == 0 {
			wire.Pool.Put(data)
			if err == io.EOF {
				return nil
			}
			return fmt.Errorf("reading a file to send: %w", err)
		}
		*data = (*data)[:n]
		piece := wire.NewPiece(offset, data)
		err = pass(piece)
		piece.Free()
		if err != nil {
			return err
		}
		alive()
		offset += uint64(n)
	}
}

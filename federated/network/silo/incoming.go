package silo

import (
	"bytes"
	"errors"
	"fmt"

	"grange/federated/network/objects"
	"grange/federated/network/wire"
	"grange/internal/littleendian"
	"grange/model"
)

// errDamaged is a piece or a model that did not arrive as it was sent. It is asked for again.
var errDamaged = errors.New("silo: damaged on the way")

// incoming is a model that arrives in pieces. It is read as it comes, so that it takes no more memory than its weights.
// Every piece has a checksum, and TLS vouches for who sent it; the digest says which model it is.
type incoming struct {
	digest  objects.Digest
	header  []byte // what its file begins with
	weights *model.Weights
	size    int64
	// have is how many bytes of the file are there.
	have int64
	// rest are the first bytes of a value whose others have not come.
	rest []byte
}

func newIncoming(spec model.Spec) (*incoming, error) {
	header, size, err := modelFile(spec)
	if err != nil {
		return nil, err
	}
	return &incoming{header: header, weights: model.NewWeights(spec), size: size}, nil
}

// begin makes ready for a model. What is there of the same one stays.
func (in *incoming) begin(digest objects.Digest) {
	if in.digest != digest {
		in.digest = digest
		in.reset()
	}
}

func (in *incoming) reset() { in.have, in.rest = 0, in.rest[:0] }

// whole reports whether everything is there.
func (in *incoming) whole() bool { return in.have == in.size }

// add takes the next piece.
func (in *incoming) add(piece *wire.Piece) error {
	switch {
	case piece.Offset != uint64(in.have):
		return fmt.Errorf("%w: a piece begins at %d, expected %d", errDamaged, piece.Offset, in.have)
	case int64(piece.Len()) > in.size-in.have:
		return fmt.Errorf("%w: more than the %d bytes of the model", errDamaged, in.size)
	case !piece.Intact():
		return fmt.Errorf("%w: the checksum of a piece differs", errDamaged)
	}
	for _, part := range piece.Parts() {
		if err := in.read(part); err != nil {
			in.reset()
			return err
		}
	}
	return nil
}

// read takes the next bytes of the file.
func (in *incoming) read(part []byte) error {
	at := in.have
	in.have += int64(len(part))
	if at < int64(len(in.header)) {
		n := min(len(part), len(in.header)-int(at))
		if !bytes.Equal(part[:n], in.header[at:int(at)+n]) {
			return fmt.Errorf("%w: the model has other tensors than the terms say", ErrTerms)
		}
		part, at = part[n:], at+int64(n)
	}
	next := int(at-int64(len(in.header))) / 4
	for len(in.rest) > 0 && len(part) > 0 {
		in.rest, part = append(in.rest, part[0]), part[1:]
		if len(in.rest) == 4 {
			littleendian.Decode(in.weights.Flat[next:next+1], in.rest)
			in.rest, next = in.rest[:0], next+1
		}
	}
	values := in.weights.Flat[next : next+len(part)/4]
	littleendian.Decode(values, part)
	in.rest = append(in.rest, part[4*len(values):]...)
	return nil
}

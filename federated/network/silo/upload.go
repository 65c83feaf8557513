package silo

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/federated/network/wire"
)

// Upload takes an update, and lets the Federation judge it.
func (s *Server) Upload(stream grpc.BidiStreamingServer[wire.UploadRequest, wire.UploadResponse]) error {
	member, err := s.member(stream.Context())
	if err != nil {
		return err
	}
	ctx, leave, err := s.seats[member].uploading.enter(stream.Context())
	if err != nil {
		return asStatus(err)
	}
	// The transfer goes on for a moment after this call returns, and leaves last.
	return watch(ctx, s.config.Pace.Idle, func(alive func()) error {
		defer leave()
		return s.upload(ctx, stream, member, alive)
	})
}

func (s *Server) upload(ctx context.Context, stream grpc.BidiStreamingServer[wire.UploadRequest, wire.UploadResponse],
	member int, alive func()) error {
	var part wire.Part
	defer part.Free()
	if err := stream.RecvMsg(&part); err != nil {
		return err
	}
	header := part.Header
	if header == nil {
		return status.Error(codes.InvalidArgument, "an upload begins with its header")
	}
	if _, err := s.caller(ctx, header.GetRun()); err != nil {
		return err
	}
	if len(header.GetTicket()) != ticketSize || header.GetSize() != uint64(s.size) {
		return s.refuse(ctx, stream, member, header, fmt.Errorf("%w: a file of %d bytes with a ticket of %d, expected %d and %d",
			federated.ErrWeights, header.GetSize(), len(header.GetTicket()), s.size, ticketSize))
	}
	if err := s.config.Federation.Wanted(int(header.GetRound()), member); err != nil {
		return s.verdict(stream, err)
	}
	partial, err := s.config.Federation.Objects().Receive(s.name(member), string(header.GetTicket()), s.size)
	if err != nil {
		return asStatus(err)
	}
	digest, err := s.take(ctx, stream, partial, header.GetChecksum(), alive)
	if closed := partial.Close(); err == nil && closed != nil {
		err = fmt.Errorf("%w: %w", objects.ErrWrite, closed)
	}
	if status.Code(err) == codes.ResourceExhausted || errors.Is(err, wire.ErrMessage) || errors.Is(err, objects.ErrSize) {
		return s.refuse(ctx, stream, member, header, fmt.Errorf("%w: %w", federated.ErrWeights, err))
	}
	if err != nil {
		return asStatus(err)
	}
	alive()
	return s.verdict(stream, s.config.Federation.Deliver(ctx, network.Delivery{
		Round: int(header.GetRound()), Member: member, Update: digest, Examples: count(header.GetExamples()), Loss: header.GetLoss(),
	}))
}

// take takes all pieces that are missing.
func (s *Server) take(ctx context.Context, stream grpc.BidiStreamingServer[wire.UploadRequest, wire.UploadResponse],
	partial *objects.Partial, checksum uint32, alive func()) (digest objects.Digest, err error) {
	begin := &wire.UploadResponse{What: &wire.UploadResponse_Offset{Offset: uint64(partial.Offset())}}
	if err := stream.Send(begin); err != nil {
		return digest, err
	}
	var part wire.Part
	defer part.Free()
	for partial.Offset() < s.size {
		if err := ctx.Err(); err != nil {
			return digest, context.Cause(ctx)
		}
		if err := stream.RecvMsg(&part); err != nil {
			if err == io.EOF {
				err = status.Error(codes.DataLoss, "the upload ended too early")
			}
			return digest, err
		}
		if part.Malformed != nil {
			return digest, part.Malformed
		}
		if part.Header != nil || part.Piece.Len() == 0 {
			return digest, fmt.Errorf("%w: expected a piece of the file", wire.ErrMessage)
		}
		if !part.Piece.Intact() {
			return digest, status.Error(codes.DataLoss, "a piece was damaged on the way")
		}
		offset := count(part.Piece.Offset)
		for _, data := range part.Piece.Parts() {
			if err := partial.Add(int64(offset), data); err != nil {
				return digest, err
			}
			offset += len(data)
		}
		alive()
	}
	return partial.Commit(checksum)
}

// refuse has the Federation put a member out for the round because of what it sent.
func (s *Server) refuse(ctx context.Context, stream grpc.BidiStreamingServer[wire.UploadRequest, wire.UploadResponse],
	member int, header *wire.UploadHeader, reason error) error {
	return s.verdict(stream, s.config.Federation.Refuse(ctx, int(header.GetRound()), member, reason))
}

// verdict tells what became of an update.
func (s *Server) verdict(stream grpc.BidiStreamingServer[wire.UploadRequest, wire.UploadResponse], err error) error {
	verdict := &wire.Verdict{Outcome: wire.Verdict_ACCEPTED}
	switch {
	case err == nil:
	case errors.Is(err, network.ErrRefused):
		verdict = &wire.Verdict{Outcome: wire.Verdict_REFUSED, Reason: cut(err.Error())}
	case errors.Is(err, network.ErrStale):
		verdict = &wire.Verdict{Outcome: wire.Verdict_STALE, Reason: cut(err.Error())}
	default:
		return asStatus(err)
	}
	return stream.Send(&wire.UploadResponse{What: &wire.UploadResponse_Verdict{Verdict: verdict}})
}

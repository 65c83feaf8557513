package silo

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"grange/federated/network/wire"
)

// Address reads where a coordinator is: https://HOST:PORT, or HOST:PORT.
func Address(text string) (string, error) {
	address := text
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil {
			return "", fmt.Errorf("%w: %.200q is no address, expected https://HOST:PORT", ErrFolder, text)
		}
		address = u.Host
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return "", fmt.Errorf("%w: %.200q is no address, expected https://HOST:PORT", ErrFolder, text)
	}
	return address, nil
}

// dial makes a connection, which is opened when it is first needed.
func dial(address string, config *tls.Config, pace Pace) (*grpc.ClientConn, error) {
	return grpc.NewClient("dns:///"+address,
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(wire.Codec{}), grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage)),
		grpc.WithKeepaliveParams(pace.client()),
		// The runner says when to try again; gRPC's own pauses only have to be no longer.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: pace.FirstRetry, Multiplier: 1, MaxDelay: pace.FirstRetry},
			MinConnectTimeout: pace.Timeout,
		}),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(2*window),
		grpc.WithReadBufferSize(buffer),
		grpc.WithWriteBufferSize(buffer),
	)
}

// Enrol exchanges a token for a certificate. The TLS configuration must make sure that the other end is the coordinator
// of the token.
func Enrol(ctx context.Context, address string, config *tls.Config, token string, request []byte) (member string, certificates []byte, err error) {
	pace := Pace{}.withDefaults()
	// gRPC keeps only the words of a failed handshake.
	config = config.Clone()
	verify := config.VerifyConnection
	var mutex sync.Mutex
	var distrust error
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if verify == nil {
			return nil
		}
		err := verify(state)
		mutex.Lock()
		defer mutex.Unlock()
		distrust = err
		return err
	}
	connection, err := dial(address, config, pace)
	if err != nil {
		return "", nil, err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(ctx, pace.Idle)
	defer cancel()
	response, err := wire.NewEnrolmentClient(connection).Enrol(ctx, &wire.EnrolRequest{Token: token, Request: request})
	if err != nil {
		mutex.Lock()
		defer mutex.Unlock()
		if distrust != nil {
			return "", nil, distrust
		}
		if err = refused(err); !final(err) && ctx.Err() == nil {
			err = fmt.Errorf("%w: %s", ErrUnreachable, words(err))
		}
		return "", nil, err
	}
	return response.GetMember(), response.GetCertificates(), nil
}

// refused makes an error of what a coordinator answered, one of this package's if trying again is of no use.
func refused(err error) error {
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	switch s.Code() {
	case codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.InvalidArgument, codes.Unimplemented,
		codes.OutOfRange:
		return fmt.Errorf("%w: %s", ErrRejected, s.Message())
	case codes.AlreadyExists:
		return ErrElsewhere
	}
	return err
}

// final reports whether an error will be the same next time.
func final(err error) bool {
	for _, e := range []error{ErrTerms, ErrRejected, ErrElsewhere, ErrRun, ErrFolder, ErrUnreachable} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// lively cancels a context when nothing has moved for some time.
func lively(ctx context.Context, idle time.Duration) (_ context.Context, alive func(), stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(idle, func() { cancel(errIdle) })
	return ctx, func() { timer.Reset(idle) }, func() {
		timer.Stop()
		cancel(nil)
	}
}

// download gets the rest of a model.
func download(ctx context.Context, client wire.FederationClient, in *incoming, idle time.Duration) error {
	ctx, alive, stop := lively(ctx, idle)
	defer stop()
	stream, err := client.Download(ctx, &wire.DownloadRequest{Model: in.digest[:], Offset: uint64(in.have)})
	if err != nil {
		return refused(err)
	}
	var piece wire.Piece
	defer piece.Free()
	for {
		err := stream.RecvMsg(&piece)
		if err == io.EOF && !in.whole() {
			return fmt.Errorf("%w: %d of %d bytes came", errDamaged, in.have, in.size)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return refused(moved(ctx, err))
		}
		if err := in.add(&piece); err != nil {
			return err
		}
		alive()
	}
}

// moved says why a transfer ended, if it was for standing still.
func moved(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errIdle) {
		return errIdle
	}
	return err
}

// upload sends what the coordinator does not have of an update, and returns its verdict. The rest of the file from an
// offset on comes from rest.
func upload(ctx context.Context, client wire.FederationClient, u *update, idle time.Duration,
	rest func(offset uint64, alive func(), pass func(*wire.Piece) error) error) (*wire.Verdict, error) {
	ctx, alive, stop := lively(ctx, idle)
	defer stop()
	stream, err := client.Upload(ctx)
	if err != nil {
		return nil, refused(err)
	}
	answer := func() (*wire.UploadResponse, error) {
		response, err := stream.Recv()
		if err != nil {
			return nil, refused(moved(ctx, err))
		}
		alive()
		return response, nil
	}
	if err := stream.SendMsg(&wire.Part{Header: u.header()}); err != nil && err != io.EOF {
		return nil, refused(moved(ctx, err))
	}
	response, err := answer()
	if err != nil {
		return nil, err
	}
	if response.GetVerdict() == nil {
		err := rest(response.GetOffset(), alive, func(piece *wire.Piece) error {
			part := wire.UploadPart(piece)
			defer part.Free() // if it was not sent
			return stream.SendMsg(part)
		})
		if err != nil && err != io.EOF { // EOF: the coordinator has answered already
			return nil, refused(moved(ctx, err))
		}
		if response, err = answer(); err != nil {
			return nil, err
		}
	}
	if verdict := response.GetVerdict(); verdict != nil {
		return verdict, nil
	}
	return nil, fmt.Errorf("%w: it answered an upload with %v", ErrRejected, response)
}

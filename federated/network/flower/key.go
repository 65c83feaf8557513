package flower

import (
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"grange/federated/network/identity"
)

// Keys knows the keys of SuperNodes. An identity.Registrar does.
type Keys interface {
	// Node is the SuperNode with a public key, PEM or the DER in it, or identity.ErrRevoked if there is none.
	Node(ctx context.Context, key []byte) (identity.Node, error)
}

// What a SuperNode signs its calls with, as metadata of gRPC.
const (
	metadataKey       = "flwr-public-key-bin"
	metadataTime      = "flwr-timestamp"
	metadataSignature = "flwr-signature-bin"
)

// How old a signature may be: Flower's servers allow five minutes, and five seconds for clocks that differ.
const (
	oldest   = 305 * time.Second
	youngest = -5 * time.Second
)

// maxKey bounds a public key, a signature and a time stamp.
const maxKey = 4096

// enrolHint says what to do about a key that nobody knows.
const enrolHint = "Try: flower-supernode --auth-supernode-private-key KEY, after grange coordinator enrol-key DIR NAME --key KEY.pub"

// knownKey is where the context of a call has the SuperNode, if the signature has been checked already.
type knownKey struct{}

// authenticate says which SuperNode calls, by the signature of the call.
func (f *fleet) authenticate(ctx context.Context) (identity.Node, error) {
	node, done := ctx.Value(knownKey{}).(identity.Node)
	if done {
		return node, nil
	}
	if from, ok := peer.FromContext(ctx); ok && from.AuthInfo != nil {
		if _, secure := from.AuthInfo.(credentials.TLSInfo); !secure {
			return node, status.Error(codes.FailedPrecondition,
				"SuperNodes need TLS. Try: flower-supernode --root-certificates AUTHORITY.pem, without --insecure")
		}
	}
	given, _ := metadata.FromIncomingContext(ctx)
	one := func(name string) (string, error) {
		if values := given.Get(name); len(values) == 1 && len(values[0]) <= maxKey {
			return values[0], nil
		}
		return "", status.Errorf(codes.Unauthenticated, "the call is not signed: %s is missing. %s", name, enrolHint)
	}
	text, err := one(metadataKey)
	if err != nil {
		return node, err
	}
	stamp, err := one(metadataTime)
	if err != nil {
		return node, err
	}
	signature, err := one(metadataSignature)
	if err != nil {
		return node, err
	}
	key, err := publicKey(text)
	if err != nil {
		return node, status.Error(codes.Unauthenticated, err.Error())
	}
	sum := sha256.Sum256([]byte(stamp))
	if !ecdsa.VerifyASN1(key, sum[:], []byte(signature)) {
		return node, status.Error(codes.Unauthenticated, "the signature of the call is wrong")
	}
	if err := f.fresh(stamp); err != nil {
		return node, err
	}
	node, err = f.options.Keys.Node(ctx, []byte(text))
	switch {
	case errors.Is(err, identity.ErrRevoked):
		return node, status.Errorf(codes.FailedPrecondition, "this SuperNode's key is not enrolled. %s", enrolHint)
	case err != nil:
		return node, status.Error(codes.Unavailable, err.Error())
	}
	return node, nil
}

// publicKey reads a key as SuperNodes send it.
func publicKey(text string) (*ecdsa.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the public key is not PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the public key cannot be read: %w", err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return nil, errors.New("the public key is not ECDSA")
	}
	return key, nil
}

// fresh checks the time of a signature.
func (f *fleet) fresh(stamp string) error {
	signed, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return status.Error(codes.Unauthenticated, "the time of the signature cannot be read")
	}
	age := f.options.Now().Sub(signed)
	if age > youngest && age < oldest {
		return nil
	}
	direction := "behind"
	if age < 0 {
		direction, age = "ahead of", -age
	}
	return status.Errorf(codes.FailedPrecondition, "the clock of this machine is %v %s the coordinator's, or the call took that "+
		"long; Flower's signatures are good from %v before to %v after. Try: set the clock, as with NTP",
		age.Round(time.Second), direction, -youngest, oldest)
}

package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"google.golang.org/grpc/credentials"
)

// Plain is the credentials.AuthInfo of a connection without TLS.
type Plain struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (Plain) AuthType() string { return "plain" }

// Credentials are those of a gRPC server behind a Listener, which has done the handshake already. The peer of a call has
// a credentials.TLSInfo, or Plain.
func Credentials() credentials.TransportCredentials { return passed{} }

type passed struct{}

// ServerHandshake implements credentials.TransportCredentials.
func (passed) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return conn, Plain{credentials.CommonAuthInfo{SecurityLevel: credentials.NoSecurity}}, nil
	}
	return conn, credentials.TLSInfo{
		State:          secure.ConnectionState(),
		CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (passed) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("listen: credentials for servers only")
}

// Info implements credentials.TransportCredentials.
func (passed) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone implements credentials.TransportCredentials.
func (p passed) Clone() credentials.TransportCredentials { return p }

// OverrideServerName implements credentials.TransportCredentials. Only clients have use for it.
func (passed) OverrideServerName(string) error { return nil }

// Package flower lets Flower's clients take part in a federation as they are, without a change to their code.
//
// There are two ways in. Join is the stream that flwr.client.start_client opens, in every release since 1.0: it says nothing
// of who the client is, so it is for trusted networks and has to be switched on. Fleet is what flower-supernode calls, in
// releases since 1.23: every call is signed with a key that was enrolled before. Newer SuperNodes make the same calls over
// HTTP, which Handler serves.
//
// To the federation a Flower client is a member like any other. It is sent the global model as a list of numpy arrays
// (package layout), and what it sends back becomes an update in a file; whether that update is any good is for the
// federation to say.
package flower

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc"

	"grange/federated/network"
	"grange/federated/network/flower/layout"
	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/protocol"
	"grange/model"
)

// ErrOptions is an option that cannot be used.
var ErrOptions = errors.New("flower: invalid option")

// ErrReply is an answer of a client's that is no update. It is a network.ErrMalformed.
var ErrReply error = malformed{}

type malformed struct{}

func (malformed) Error() string { return "flower: the client's answer cannot be used" }

func (malformed) Is(target error) bool { return target == network.ErrMalformed }

// Style says how a training message for a SuperNode is laid out.
type Style string

// The styles. New apps read the records "arrays" and "config", a NumPyClient reads "fitins.parameters" and "fitins.config". A
// server cannot know which an app reads, but one message can hold both: the arrays themselves are sent once.
const (
	Both    Style = "both"
	Records Style = "records"
	NumPy   Style = "numpy"
)

// Seat is a place for one client of start_client.
type Seat struct {
	// Member is the member whose place it is.
	Member string
	// Address, if valid, is where its client has to come from.
	Address netip.Addr
}

// Options say how Flower's clients take part. The zero value lets none in.
type Options struct {
	// Legacy are the members whose clients use start_client, in the order in which places are given to clients that
	// connect. Default: none.
	Legacy []Seat
	// App is an app's bundle, as flwr build makes it, for SuperNodes to run. Default: none, and no SuperNodes.
	App []byte
	// Keys knows the keys of SuperNodes. It is needed with App.
	Keys Keys
	// Data is how many data points each member has, in the order of the federation: a Flower client contributes as many as
	// it says in every round, up to this.
	Data []int
	// Layout names how models look to clients. Default: layout.Torch.
	Layout string
	// Style is that of messages to SuperNodes. Default: Both.
	Style Style
	// RunConfig changes settings of the app, as flwr run --run-config would. Default: none.
	RunConfig map[string]string
	// Folder is where pieces of updates from SuperNodes are kept until they are complete; what is in it is removed.
	// It is needed with App.
	Folder string
	// Log is told of clients that come and go. Default: nobody.
	Log *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// ParseSeats reads a list of places: NAME or NAME=ADDRESS, separated by commas.
func ParseSeats(text string) ([]Seat, error) {
	var seats []Seat
	for _, word := range strings.Split(text, ",") {
		name, address, bound := strings.Cut(strings.TrimSpace(word), "=")
		seat := Seat{Member: strings.TrimSpace(name)}
		if seat.Member == "" {
			return nil, fmt.Errorf("%w: %q has a place without a name, expected NAME or NAME=ADDRESS", ErrOptions, text)
		}
		if bound {
			var err error
			if seat.Address, err = netip.ParseAddr(strings.TrimSpace(address)); err != nil {
				return nil, fmt.Errorf("%w: %q is no IP address for the client of %s", ErrOptions, address, seat.Member)
			}
			seat.Address = seat.Address.Unmap()
		}
		seats = append(seats, seat)
	}
	return seats, nil
}

// Enabled says whether any Flower client may take part.
func (o Options) Enabled() bool { return len(o.Legacy) > 0 || len(o.App) > 0 }

// Plaintext says whether connections without TLS are to be taken: start_client makes them unless it is given a certificate.
func (o Options) Plaintext() bool { return len(o.Legacy) > 0 }

// fleetMessage is the largest message of a SuperNode: a piece of an array and what is around it.
const fleetMessage = 6 << 20

// largest is the largest message that a client may send: an update in double precision, and some talk around it.
func (o Options) largest(spec model.Spec) int {
	if len(o.Legacy) == 0 {
		return fleetMessage
	}
	return max(fleetMessage, 8*spec.Size()+(len(spec.Tensors)+len(spec.Layers))*npy.MaxHeader+maxTalk)
}

// ServerOptions are what the gRPC server needs for Register.
func ServerOptions(spec model.Spec, o Options) []grpc.ServerOption {
	return []grpc.ServerOption{grpc.ForceServerCodecV2(newCodec()), grpc.MaxRecvMsgSize(o.largest(spec))}
}

// Server serves Flower's clients.
type Server struct {
	federation *network.Federation
	options    Options
	spec       model.Spec
	layout     *layout.Layout
	models     models
	joins      *joins
	fleet      *fleet
}

// New makes a server for the members of a federation that use Flower.
func New(federation *network.Federation, options Options) (*Server, error) {
	if options.Layout == "" {
		options.Layout = layout.Torch
	}
	if options.Style == "" {
		options.Style = Both
	}
	if options.Log == nil {
		options.Log = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	config := federation.Config()
	if len(options.Data) != len(config.Members) {
		return nil, fmt.Errorf("%w: data counts of %d members, and there are %d", ErrOptions, len(options.Data), len(config.Members))
	}
	switch options.Style {
	case Both, Records, NumPy:
	default:
		return nil, fmt.Errorf("%w: style %.40q, expected %s, %s or %s", ErrOptions, options.Style, Both, Records, NumPy)
	}
	s := &Server{federation: federation, options: options, spec: config.Spec}
	var err error
	if s.layout, err = layout.New(options.Layout, s.spec); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	s.models.layout = s.layout
	if s.models.header, err = model.SafetensorsHeader(s.spec.Tensors, nil); err != nil {
		return nil, err
	}
	if len(options.Legacy) > 0 {
		if s.joins, err = newJoins(s); err != nil {
			return nil, err
		}
	}
	if len(options.App) > 0 {
		if s.fleet, err = newFleet(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Register makes a gRPC server, which has ServerOptions, serve what the options ask for. Calls of FlowerService and Fleet need
// no client certificate.
func (s *Server) Register(server grpc.ServiceRegistrar) {
	if s.joins != nil {
		protocol.RegisterFlowerServiceServer(server, s.joins)
	}
	if s.fleet != nil {
		protocol.RegisterFleetServer(server, s.fleet)
	}
}

// Handler serves SuperNodes that use HTTP, under /v1/fleet/; it is nil if there are none.
func (s *Server) Handler() http.Handler {
	if s.fleet == nil {
		return nil
	}
	return s.fleet.handler()
}

// Close says that members are gone whose presence rested on heartbeats.
func (s *Server) Close() {
	if s.fleet != nil {
		s.fleet.close()
	}
}

// declaration is what is recorded of a member that takes part by Flower.
func (s *Server) declaration(member int, transport, software string) network.Declaration {
	return network.Declaration{
		Member: member, Contribution: s.options.Data[member], Data: s.options.Data[member],
		Transport: transport, Software: software,
	}
}

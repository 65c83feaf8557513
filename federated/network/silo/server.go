package silo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"grange/dataset"
	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/federated/network/wire"
)

// ServerConfig is what a Server needs.
type ServerConfig struct {
	// Federation is what silos take part in.
	Federation *network.Federation
	// Identify says which member calls, from the certificate that it has proved to hold.
	Identify func(context.Context) (member string, err error)
	// Enrol exchanges a token and a request for a certificate (DER) for the certificate and the authority's (PEM). An
	// error is for whoever asks, and counts as a refusal unless it is a status of gRPC. Default: nobody is enrolled.
	Enrol func(ctx context.Context, token string, request []byte) (member string, certificates []byte, err error)
	// Data describes the coordinator's data, and Split and Holdings say how they are dealt in a trial, one per member.
	Data     Description
	Split    dataset.Split
	Holdings []dataset.Holding
	// Pace says how patient to be.
	Pace Pace
	// Log is told what happens. Default: nobody.
	Log *slog.Logger
}

// Server is the coordinator's end.
type Server struct {
	wire.UnimplementedEnrolmentServer
	wire.UnimplementedFederationServer

	config ServerConfig
	run    string
	header []byte // what the file of every model begins with
	size   int64
	// seats are by member.
	seats []seat

	mutex sync.Mutex
	// latest is the model that was assigned last, and digest that of its file.
	latest *content
	digest objects.Digest
}

// seat is what the server knows of a member's connections.
type seat struct {
	// working and uploading belong to one call at a time.
	working, uploading slot
	mutex              sync.Mutex
	// assigned is the model that the member was told to train.
	assigned objects.Digest
}

// NewServer makes a Server. Register it, on a gRPC server with ServerOptions.
func NewServer(config ServerConfig) (*Server, error) {
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	config.Pace = config.Pace.withDefaults()
	federation := config.Federation.Config()
	if len(config.Holdings) != len(federation.Members) {
		return nil, fmt.Errorf("%w: %d holdings for %d members", ErrTerms, len(config.Holdings), len(federation.Members))
	}
	run, err := runID(federation.RunInfo)
	if err != nil {
		return nil, err
	}
	header, size, err := modelFile(federation.Spec)
	if err != nil {
		return nil, err
	}
	s := &Server{config: config, run: run, header: header, size: size, seats: make([]seat, len(federation.Members))}
	// Terms that silos would not take are noticed here.
	for member := range federation.Members {
		m, err := s.terms(member).message()
		if err == nil {
			_, err = readTerms(m)
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// ServerOptions are what the gRPC server should be made with. Options that come after them go before them.
func ServerOptions(pace Pace) []grpc.ServerOption {
	parameters, policy := pace.withDefaults().server()
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(wire.Codec{}),
		grpc.MaxRecvMsgSize(wire.MaxMessage),
		grpc.MaxHeaderListSize(16 << 10),
		grpc.MaxConcurrentStreams(16),
		grpc.ConnectionTimeout(pace.withDefaults().Idle),
		grpc.KeepaliveParams(parameters),
		grpc.KeepaliveEnforcementPolicy(policy),
		grpc.StaticStreamWindowSize(window),
		grpc.StaticConnWindowSize(2 * window),
		grpc.ReadBufferSize(buffer),
		grpc.WriteBufferSize(buffer),
	}
}

// OpenServer comes after ServerOptions for a gRPC server that is open to everybody: a connection on which nothing is asked for
// five minutes is ended. Clients make another when they need it.
func OpenServer(pace Pace) grpc.ServerOption {
	parameters, _ := pace.withDefaults().server()
	parameters.MaxConnectionIdle = 5 * time.Minute
	return grpc.KeepaliveParams(parameters)
}

// Register offers the services on a gRPC server.
func (s *Server) Register(server grpc.ServiceRegistrar) {
	wire.RegisterEnrolmentServer(server, s)
	wire.RegisterFederationServer(server, s)
}

// Enrol exchanges a token for a certificate.
func (s *Server) Enrol(ctx context.Context, request *wire.EnrolRequest) (*wire.EnrolResponse, error) {
	const maxRequest = 16 << 10
	if s.config.Enrol == nil {
		return nil, status.Error(codes.Unimplemented, "nobody is enrolled here")
	}
	if len(request.GetToken()) > maxText || len(request.GetRequest()) > maxRequest {
		return nil, status.Error(codes.InvalidArgument, "the token or the request is too long")
	}
	member, certificates, err := s.config.Enrol(ctx, request.GetToken(), request.GetRequest())
	if err != nil {
		s.config.Log.Warn("enrolment refused", "reason", err)
		if _, ok := status.FromError(err); ok {
			return nil, err
		}
		return nil, status.Error(codes.PermissionDenied, err.Error())
	}
	s.config.Log.Info("enrolled", "member", member)
	return &wire.EnrolResponse{Certificates: certificates, Member: member}, nil
}

// member is who calls.
func (s *Server) member(ctx context.Context) (int, error) {
	name, err := s.config.Identify(ctx)
	if errors.Is(err, network.ErrRecord) {
		return 0, asStatus(err) // who it is cannot be found out now
	}
	if err != nil {
		return 0, status.Error(codes.Unauthenticated, err.Error())
	}
	member, err := s.config.Federation.Member(name)
	if err != nil {
		s.config.Federation.TurnAway(name)
		return 0, status.Error(codes.PermissionDenied, err.Error())
	}
	return member, nil
}

// caller is who calls, and that it means this run.
func (s *Server) caller(ctx context.Context, run string) (int, error) {
	member, err := s.member(ctx)
	if err == nil && run != s.run {
		err = status.Errorf(codes.Aborted, "run %.40q is not under way here; join again", run)
	}
	return member, err
}

func (s *Server) name(member int) string { return s.config.Federation.Config().Members[member] }

func (s *Server) terms(member int) Terms {
	c := s.config.Federation.Config()
	t := Terms{
		Run: s.run, Scenario: c.Name, Member: member, Name: c.Members[member], Rounds: c.Rounds, Local: c.Local, Seed: c.Seed,
		Spec: c.Spec, Data: s.config.Data, Deal: Deal{Split: s.config.Split, Noise: s.config.Holdings[member].Noise},
	}
	for _, holding := range s.config.Holdings {
		t.Deal.Data = append(t.Deal.Data, holding.Data)
	}
	return t
}

// Join tells a member the terms.
func (s *Server) Join(ctx context.Context, request *wire.JoinRequest) (*wire.Terms, error) {
	member, err := s.member(ctx)
	if err != nil {
		return nil, err
	}
	s.config.Log.Info("joined", "member", s.name(member), "software", cut(request.GetSoftware()))
	return s.terms(member).message()
}

// Declare takes a member's declaration.
func (s *Server) Declare(ctx context.Context, request *wire.Declaration) (*wire.DeclareResponse, error) {
	member, err := s.caller(ctx, request.GetRun())
	if err != nil {
		return nil, err
	}
	err = s.config.Federation.Declare(ctx, network.Declaration{
		Member: member, Contribution: count(request.GetContribution()), Data: count(request.GetData()), Transport: "grange",
		Software: cut(request.GetSoftware()), Kernel: cut(request.GetKernel()),
	})
	if err != nil {
		return nil, asStatus(err)
	}
	return &wire.DeclareResponse{}, nil
}

// Work tells a member what to do whenever it asks.
func (s *Server) Work(stream grpc.BidiStreamingServer[wire.Ready, wire.Assignment]) error {
	member, err := s.member(stream.Context())
	if err != nil {
		return err
	}
	ctx, leave, err := s.seats[member].working.enter(stream.Context())
	if err != nil {
		return asStatus(err)
	}
	defer leave()
	defer s.config.Federation.Connect(member)()
	for {
		ready, err := receive(ctx, stream)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return asStatus(err)
		}
		if _, err := s.caller(ctx, ready.GetRun()); err != nil {
			return err
		}
		next, err := s.config.Federation.Next(ctx, member)
		if err != nil {
			return asStatus(err)
		}
		if err := stream.Send(s.assign(member, next)); err != nil || next.Done {
			return err
		}
	}
}

// receive waits for a message, or the end of a context that is shorter than the stream's.
func receive[Request, Response any](ctx context.Context, stream grpc.BidiStreamingServer[Request, Response]) (*Request, error) {
	type received struct {
		message *Request
		err     error
	}
	answer := make(chan received, 1)
	go func() {
		message, err := stream.Recv()
		answer <- received{message, err}
	}()
	select {
	case r := <-answer:
		return r.message, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Server) assign(member int, next network.Assignment) *wire.Assignment {
	if next.Done {
		return &wire.Assignment{What: &wire.Assignment_Done{Done: &wire.Done{Failure: cut(next.Failed)}}}
	}
	seat := &s.seats[member]
	seat.mutex.Lock()
	seat.assigned = next.Model
	seat.mutex.Unlock()
	s.mutex.Lock()
	if s.latest == nil || s.digest != next.Model {
		s.latest, s.digest = newContent(s.header, next.Task.Global), next.Model
	}
	s.mutex.Unlock()
	return &wire.Assignment{What: &wire.Assignment_Task{Task: &wire.Task{
		Round: uint32(next.Task.Round), Model: next.Model[:], Contribution: uint64(next.Task.Contribution),
	}}}
}

// Download sends a member the model it is to train, and no other file.
func (s *Server) Download(request *wire.DownloadRequest, stream grpc.ServerStreamingServer[wire.Chunk]) error {
	member, err := s.member(stream.Context())
	if err != nil {
		return err
	}
	digest, err := readDigest(request.GetModel())
	if err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	seat := &s.seats[member]
	seat.mutex.Lock()
	assigned := seat.assigned
	seat.mutex.Unlock()
	if digest != assigned {
		return status.Error(codes.NotFound, "this is not the model to train; ask for the next task")
	}
	pass := func(piece *wire.Piece) error { return stream.SendMsg(piece) }
	s.mutex.Lock()
	latest := s.latest
	if s.digest != digest {
		latest = nil
	}
	s.mutex.Unlock()
	if latest != nil {
		return watch(stream.Context(), s.config.Pace.Idle, func(alive func()) error { return latest.send(request.GetOffset(), alive, pass) })
	}
	file, err := s.config.Federation.Objects().Open(digest)
	if err != nil {
		return asStatus(err)
	}
	return watch(stream.Context(), s.config.Pace.Idle, func(alive func()) error {
		defer file.Close()
		return send(file, request.GetOffset(), alive, pass)
	})
}

// Fail takes note that a member cannot train in a round.
func (s *Server) Fail(ctx context.Context, request *wire.FailRequest) (*wire.FailResponse, error) {
	member, err := s.caller(ctx, request.GetRun())
	if err != nil {
		return nil, err
	}
	err = s.config.Federation.Fail(ctx, int(request.GetRound()), member, cut(request.GetReason()))
	if err != nil && !errors.Is(err, network.ErrStale) {
		return nil, asStatus(err)
	}
	return &wire.FailResponse{}, nil
}

// asStatus tells a silo what an error means for it: try again, or not.
func asStatus(err error) error {
	if s, ok := status.FromError(err); ok {
		return s.Err()
	}
	code := codes.FailedPrecondition
	switch {
	case errors.Is(err, errTaken):
		code = codes.AlreadyExists
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, errIdle):
		code = codes.DeadlineExceeded
	case network.FaultOf(err) == network.Ours:
		code = codes.Unavailable
	case errors.Is(err, network.ErrUnknown):
		code = codes.PermissionDenied
	case errors.Is(err, objects.ErrDigest), errors.Is(err, objects.ErrOffset):
		code = codes.DataLoss
	}
	return status.Error(code, err.Error())
}

// count makes a number from outside an int; one that is too large stays too large for everything.
func count(n uint64) int { return int(min(n, math.MaxInt64)) }

// cut shortens a text from outside, at a character's boundary.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && text[end]&0xc0 == 0x80 {
		end--
	}
	return text[:end]
}

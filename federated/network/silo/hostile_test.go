package silo_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"grange/federated/network"
	"grange/federated/network/silo"
	"grange/federated/network/wire"
)

// stranger speaks the protocol by hand, as somebody who wrote a client of his own.
type stranger struct {
	t      *testing.T
	client wire.FederationClient
	terms  *wire.Terms
	model  []byte // what it was told to train, as a file
	round  uint32
}

func (w *world) dial(t *testing.T, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	connection, err := grpc.NewClient("dns:///"+w.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return connection
}

// stranger joins as a member and gets its first task.
func (w *world) stranger(t *testing.T, member int) *stranger {
	t.Helper()
	s := &stranger{t: t, client: wire.NewFederationClient(w.dial(t, w.authority.client(t, w.job.Members[member].Name)))}
	var err error
	if s.terms, err = s.client.Join(t.Context(), &wire.JoinRequest{}); err != nil {
		t.Fatal(err)
	}
	declaration := &wire.Declaration{Run: s.terms.Run, Contribution: 100, Data: 500}
	if _, err := s.client.Declare(t.Context(), declaration); err != nil {
		t.Fatal(err)
	}
	work, err := s.client.Work(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := work.Send(&wire.Ready{Run: s.terms.Run}); err != nil {
		t.Fatal(err)
	}
	assignment, err := work.Recv()
	if err != nil {
		t.Fatal(err)
	}
	s.round = assignment.GetTask().GetRound()
	stream, err := s.client.Download(t.Context(), &wire.DownloadRequest{Model: assignment.GetTask().GetModel()})
	if err != nil {
		t.Fatal(err)
	}
	for {
		chunk, err := stream.Recv()
		if err == io.EOF {
			return s
		}
		if err != nil {
			t.Fatal(err)
		}
		s.model = append(s.model, chunk.Data...)
	}
}

// trained is a file that might be an update: the model with one value changed.
func (s *stranger) trained(value float32) []byte {
	file := bytes.Clone(s.model)
	binary.LittleEndian.PutUint32(file[len(file)-4:], math.Float32bits(value))
	return file
}

func checksum(data []byte) uint32 { return crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)) }

// upload uploads a file as honestly as the changes to its header and chunks let it.
func (s *stranger) upload(file []byte, header func(*wire.UploadHeader), chunk func(*wire.Chunk)) (*wire.Verdict, error) {
	stream, err := s.client.Upload(s.t.Context())
	if err != nil {
		return nil, err
	}
	h := &wire.UploadHeader{
		Run: s.terms.Run, Round: s.round, Ticket: bytes.Repeat([]byte{7}, 16), Size: uint64(len(file)), Checksum: checksum(file),
		Examples: 100, Loss: 0.5,
	}
	if header != nil {
		header(h)
	}
	if err := stream.Send(&wire.UploadRequest{What: &wire.UploadRequest_Header{Header: h}}); err != nil {
		return nil, err
	}
	response, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if response.GetVerdict() != nil {
		return response.GetVerdict(), nil
	}
	for at := response.GetOffset(); at < uint64(len(file)); at += wire.MaxPiece {
		data := file[at:min(at+wire.MaxPiece, uint64(len(file)))]
		c := &wire.Chunk{Offset: at, Checksum: checksum(data), Data: data}
		if chunk != nil {
			chunk(c)
		}
		if err := stream.Send(&wire.UploadRequest{What: &wire.UploadRequest_Chunk{Chunk: c}}); err != nil {
			break // the answer says why
		}
	}
	if response, err = stream.Recv(); err != nil {
		return nil, err
	}
	return response.GetVerdict(), nil
}

// Whatever a member sends, it is refused by name and recorded, and the round goes on.
func TestHostileUpdates(t *testing.T) {
	for name, test := range map[string]struct {
		file    func(*stranger) []byte
		header  func(*wire.UploadHeader)
		chunk   func(*wire.Chunk)
		outcome wire.Verdict_Outcome
		code    codes.Code
		reason  string
	}{
		"not finite":       {file: func(s *stranger) []byte { return s.trained(float32(math.NaN())) }, outcome: wire.Verdict_REFUSED, reason: "not finite"},
		"infinite":         {file: func(s *stranger) []byte { return s.trained(float32(math.Inf(-1))) }, outcome: wire.Verdict_REFUSED, reason: "not finite"},
		"free rider":       {file: func(s *stranger) []byte { return s.model }, outcome: wire.Verdict_REFUSED, reason: "nothing was trained"},
		"other names":      {file: func(s *stranger) []byte { return bytes.Replace(s.trained(1), []byte("output"), []byte("input_"), 1) }, outcome: wire.Verdict_REFUSED, reason: "names or shapes"},
		"too many":         {header: func(h *wire.UploadHeader) { h.Examples = 101 }, outcome: wire.Verdict_REFUSED, reason: "101 data points"},
		"far too many":     {header: func(h *wire.UploadHeader) { h.Examples = math.MaxUint64 }, outcome: wire.Verdict_REFUSED, reason: "data points"},
		"infinite loss":    {header: func(h *wire.UploadHeader) { h.Loss = math.Inf(1) }, outcome: wire.Verdict_REFUSED, reason: "loss"},
		"too large":        {header: func(h *wire.UploadHeader) { h.Size = 1 << 40 }, outcome: wire.Verdict_REFUSED, reason: "1099511627776 bytes"},
		"too small":        {header: func(h *wire.UploadHeader) { h.Size = 10 }, outcome: wire.Verdict_REFUSED, reason: "10 bytes"},
		"no ticket":        {header: func(h *wire.UploadHeader) { h.Ticket = nil }, outcome: wire.Verdict_REFUSED, reason: "ticket"},
		"round to come":    {header: func(h *wire.UploadHeader) { h.Round++ }, outcome: wire.Verdict_STALE, reason: "round 1 is under way"},
		"round of never":   {header: func(h *wire.UploadHeader) { h.Round = math.MaxUint32 }, outcome: wire.Verdict_STALE, reason: "round"},
		"another run":      {header: func(h *wire.UploadHeader) { h.Run = "other" }, code: codes.Aborted},
		"damaged":          {chunk: func(c *wire.Chunk) { c.Checksum++ }, code: codes.DataLoss},
		"damaged as whole": {header: func(h *wire.UploadHeader) { h.Checksum++ }, code: codes.DataLoss},
		"out of order":     {chunk: func(c *wire.Chunk) { c.Offset += 4 }, code: codes.DataLoss},
		"empty piece":      {chunk: func(c *wire.Chunk) { c.Data, c.Checksum = nil, 0 }, outcome: wire.Verdict_REFUSED, reason: "malformed"},
		"huge piece":       {chunk: func(c *wire.Chunk) { c.Data = make([]byte, wire.MaxPiece+1) }, outcome: wire.Verdict_REFUSED, reason: "malformed"},
		"huge message":     {chunk: func(c *wire.Chunk) { c.Data = make([]byte, 2*wire.MaxMessage) }, code: codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "softmax", 1, member("a", 500, 100, 0), member("b", 500, 100, 0))
			w.t = t
			w.start()
			var group sync.WaitGroup
			run(t, &group, w.extra(1))
			s := w.stranger(t, 0)
			file := s.trained(1)
			if test.file != nil {
				file = test.file(s)
			}
			verdict, err := s.upload(file, test.header, test.chunk)
			if status.Code(err) != test.code || verdict.GetOutcome() != test.outcome || !strings.Contains(verdict.GetReason(), test.reason) {
				t.Errorf("got %v, %v", verdict, err)
			}
			out := test.outcome == wire.Verdict_REFUSED || test.code == codes.ResourceExhausted
			if !out {
				// Nothing was lost: the member is not out.
				if verdict, err := s.upload(s.trained(1), nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_ACCEPTED {
					t.Errorf("the update itself: %v, %v", verdict, err)
				}
			}
			networked := <-w.result
			if networked.err != nil {
				t.Fatal(networked.err)
			}
			group.Wait()
			if absent := networked.result.Rounds[0].Absent; (len(absent) == 1) != out {
				t.Errorf("absent: %v", absent)
			}
		})
	}
}

// An update that is delivered twice counts once, in its round and after it; another one in its place is of no use.
func duplicateDelivery(t *testing.T) {
	w := newWorld(t, "softmax", 2, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := make(chan error, 1)
	b := w.extra(1)
	declared := make(chan struct{}, 100)
	b.Observe = func(silo.Step) { declared <- struct{}{} }
	hold := make(chan struct{})
	c := &counting{before: func(int) { <-hold }}
	go func() { first <- c.count(b).Run(ctx) }()
	<-declared
	s := w.stranger(t, 0)
	for range 2 {
		if verdict, err := s.upload(s.trained(1), nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_ACCEPTED {
			t.Errorf("%v, %v", verdict, err)
		}
	}
	if verdict, err := s.upload(s.trained(2), nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_STALE {
		t.Errorf("another update: %v, %v", verdict, err)
	}
	close(hold)
	again := w.stranger(t, 0) // waits for the second round
	if again.round != 2 {
		t.Fatalf("round %d", again.round)
	}
	if verdict, err := s.upload(s.trained(1), nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_ACCEPTED {
		t.Errorf("the answer to a repeated update of round 1 is %v, %v", verdict, err)
	}
	if verdict, err := s.upload(s.trained(3), nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_STALE {
		t.Errorf("a late update of round 1: %v, %v", verdict, err)
	}
	if verdict, err := again.upload(again.trained(4), nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_ACCEPTED {
		t.Errorf("%v, %v", verdict, err)
	}
	networked := <-w.result
	if networked.err != nil {
		t.Fatal(networked.err)
	}
	for _, round := range networked.result.Rounds {
		if len(round.Absent) > 0 {
			t.Errorf("round %d went on without %v", round.Round, round.Absent)
		}
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// A member that sends one update after another fills nothing: neither when they are refused, nor when they come too late.
func TestFlood(t *testing.T) {
	w := newWorld(t, "softmax", 1, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	// A stranger waits for the first round, which waits for everybody.
	if err := w.federation.Declare(t.Context(), network.Declaration{Member: 1, Contribution: 100, Data: 500, Transport: "grange"}); err != nil {
		t.Fatal(err)
	}
	s, other := w.stranger(t, 0), w.stranger(t, 1)
	files := func() int {
		t.Helper()
		list, err := filepath.Glob(filepath.Join(w.folder, "objects", "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	flood := func(s *stranger, outcome wire.Verdict_Outcome, value func(i int) float32) {
		t.Helper()
		for i := range 20 {
			ticket := func(h *wire.UploadHeader) { h.Ticket[0] = byte(i) }
			if verdict, err := s.upload(s.trained(value(i)), ticket, nil); err != nil || verdict.GetOutcome() != outcome {
				t.Errorf("%v, %v", verdict, err)
			}
		}
	}
	flood(s, wire.Verdict_REFUSED, func(i int) float32 { return math.Float32frombits(math.Float32bits(float32(math.NaN())) + uint32(i)) })
	if n := files(); n != 1 {
		t.Errorf("%d files after updates that were refused, want the model alone", n)
	}
	if verdict, err := other.upload(other.trained(1), nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_ACCEPTED {
		t.Errorf("%v, %v", verdict, err)
	}
	if networked := <-w.result; networked.err != nil {
		t.Fatal(networked.err)
	}
	flood(s, wire.Verdict_STALE, func(i int) float32 { return float32(2 + i) })
	flood(other, wire.Verdict_STALE, func(i int) float32 { return float32(2 + i) })
	if n := files(); n != 2 {
		t.Errorf("%d files after the run, want the two models", n)
	}
}

// An upload that hangs, as on a connection that is long dead, does not keep its member from uploading again.
func TestHangingUpload(t *testing.T) {
	w := newWorld(t, "softmax", 1, member("a", 500, 100, 0))
	w.server.Pace.Idle = time.Hour
	w.start()
	s := w.stranger(t, 0)
	file := s.trained(1)
	hanging, err := s.client.Upload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	header := &wire.UploadHeader{Run: s.terms.Run, Round: s.round, Ticket: make([]byte, 16), Size: uint64(len(file)), Examples: 100}
	if err := hanging.Send(&wire.UploadRequest{What: &wire.UploadRequest_Header{Header: header}}); err != nil {
		t.Fatal(err)
	}
	if _, err := hanging.Recv(); err != nil {
		t.Fatal(err)
	}
	if verdict, err := s.upload(file, nil, nil); err != nil || verdict.GetOutcome() != wire.Verdict_ACCEPTED {
		t.Errorf("%v, %v", verdict, err)
	}
	if _, err := hanging.Recv(); status.Code(err) != codes.AlreadyExists {
		t.Errorf("the upload that hung ended with %v", err)
	}
	if networked := <-w.result; networked.err != nil {
		t.Error(networked.err)
	}
}

// What a member may not do.
func TestNotAllowed(t *testing.T) {
	w := newWorld(t, "softmax", 1, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	expect := func(what string, err error, want codes.Code) {
		t.Helper()
		if status.Code(err) != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	nobody := wire.NewFederationClient(w.dial(t, &tls.Config{RootCAs: w.authority.pool(), ServerName: "coordinator", MinVersion: tls.VersionTLS13}))
	_, err := nobody.Join(t.Context(), &wire.JoinRequest{})
	expect("no certificate", err, codes.Unauthenticated)
	other := wire.NewFederationClient(w.dial(t, w.authority.client(t, "c")))
	_, err = other.Join(t.Context(), &wire.JoinRequest{})
	expect("not a member", err, codes.PermissionDenied)
	_, err = wire.NewEnrolmentClient(w.dial(t, w.authority.client(t, "c"))).Enrol(t.Context(), &wire.EnrolRequest{})
	expect("no enrolment here", err, codes.Unimplemented)

	group := &sync.WaitGroup{}
	run(t, group, w.extra(1))
	s := w.stranger(t, 0)
	_, err = s.client.Declare(t.Context(), &wire.Declaration{Run: s.terms.Run, Contribution: 200, Data: 500})
	expect("another contribution", err, codes.FailedPrecondition)
	_, err = s.client.Declare(t.Context(), &wire.Declaration{Run: s.terms.Run, Contribution: math.MaxUint64, Data: math.MaxUint64})
	expect("an absurd contribution", err, codes.FailedPrecondition)
	for what, request := range map[string]*wire.DownloadRequest{
		"no digest":      {},
		"another digest": {Model: make([]byte, 32)},
	} {
		stream, err := s.client.Download(t.Context(), request)
		if err == nil {
			_, err = stream.Recv()
		}
		if code := status.Code(err); code != codes.InvalidArgument && code != codes.NotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	stream, err := s.client.Upload(t.Context())
	if err == nil {
		err = stream.Send(&wire.UploadRequest{What: &wire.UploadRequest_Chunk{Chunk: &wire.Chunk{Data: []byte("x")}}})
	}
	if err == nil {
		_, err = stream.Recv()
	}
	expect("no header", err, codes.InvalidArgument)
	if _, err := s.client.Fail(t.Context(), &wire.FailRequest{Run: s.terms.Run, Round: 1, Reason: strings.Repeat("ä", 1000)}); err != nil {
		t.Error(err)
	}
	networked := <-w.result
	if networked.err != nil {
		t.Fatal(networked.err)
	}
	group.Wait()
	absent := networked.result.Rounds[0].Absent
	if len(absent) != 1 || len(absent[0].Reason) > 400 {
		t.Errorf("absent: %v", absent)
	}
}

// Of two processes with one identity the first stops.
func TestElsewhere(t *testing.T) {
	w := newWorld(t, "softmax", 1, member("a", 500, 100, 0), member("b", 500, 100, 0))
	w.start()
	first := make(chan error, 1)
	waiting := make(chan struct{}, 100)
	a := w.silo(0)
	a.Observe = func(s silo.Step) {
		if s.Action == silo.Waiting {
			waiting <- struct{}{}
		}
	}
	go func() { first <- a.Run(t.Context()) }()
	<-waiting
	for !w.federation.Status().Members[0].Connected {
		time.Sleep(5 * time.Millisecond)
	}
	var group sync.WaitGroup
	run(t, &group, w.silo(0))
	if err := <-first; !errors.Is(err, silo.ErrElsewhere) {
		t.Errorf("the first silo ended with %v", err)
	}
	run(t, &group, w.silo(1))
	w.expect()
	group.Wait()
}

// A run that failed at the coordinator ends the silos' too, and says so.
func TestRunFails(t *testing.T) {
	w := newWorld(t, "softmax", 1, member("a", 500, 100, 0))
	w.start()
	s := w.silo(0)
	s.Prepare = func(context.Context, silo.Terms) (*silo.Prepared, error) {
		return &silo.Prepared{Trainer: broken{}, Contribution: 100, Data: 500}, nil
	}
	var failed []string
	s.Observe = func(step silo.Step) {
		if step.Action == silo.Failed {
			failed = append(failed, step.Reason)
		}
	}
	if err := s.Run(t.Context()); !errors.Is(err, silo.ErrRun) {
		t.Errorf("the silo ended with %v", err)
	}
	networked := <-w.result
	if networked.err == nil || strings.Contains(networked.err.Error(), "secret") {
		t.Errorf("the coordinator ended with %v", networked.err)
	}
	if len(failed) != 1 || !strings.Contains(failed[0], "secret") {
		t.Errorf("the silo itself was told %q", failed)
	}
}

package flower

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"grange/federated"
	"grange/federated/network/flower/layout"
	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/objects"
	"grange/model"
)

// cut makes a message arrive in pieces.
func cut(message []byte, size int) mem.BufferSlice {
	var pieces mem.BufferSlice
	for len(message) > 0 {
		n := min(len(message), max(1, size))
		pieces = append(pieces, mem.SliceBuffer(message[:n:n]))
		message = message[n:]
	}
	return pieces
}

func marshal(t testing.TB, message proto.Message) []byte {
	t.Helper()
	encoded, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func fitResult(arrays ...[]byte) *protocol.ClientMessage {
	return &protocol.ClientMessage{Msg: &protocol.ClientMessage_FitRes_{FitRes: &protocol.ClientMessage_FitRes{
		Status: &protocol.Status{Message: "Success"}, NumExamples: 12,
		Parameters: &protocol.Parameters{Tensors: arrays, TensorType: "numpy.ndarray"},
		Metrics:    map[string]*protocol.Scalar{"loss": {Scalar: &protocol.Scalar_Double{Double: 2}}},
	}}}
}

// compare reads an answer as it arrives and as protobuf does, and both see the same.
func compare(t *testing.T, message []byte, piece, arrays int) error {
	data := cut(message, piece)
	a, err := parseAnswer(data, arrays)
	if err != nil {
		if !errors.Is(err, ErrReply) {
			t.Fatal(err)
		}
		return err
	}
	var want protocol.ClientMessage
	if err := proto.Unmarshal(message, &want); err != nil {
		if a.leaving {
			return nil // what else is in a goodbye is not looked at
		}
		t.Fatalf("taken, but protobuf says %v", err)
	}
	if a.leaving {
		if want.GetDisconnectRes() == nil {
			t.Fatal("taken for a goodbye")
		}
		return nil
	}
	res := want.GetFitRes()
	tensors := res.GetParameters().GetTensors()
	if len(a.arrays) != len(tensors) || a.talk.GetNumExamples() != res.GetNumExamples() {
		t.Fatalf("%d arrays and %d examples, expected %d and %d", len(a.arrays), a.talk.GetNumExamples(), len(tensors), res.GetNumExamples())
	}
	next, done := arrayFiles(data, a, make([]int, len(tensors)))
	defer done()
	var buffer []byte
	for i, tensor := range tensors {
		if len(tensor) > 8+npy.MaxHeader {
			return nil
		}
		file, err := next(i, &buffer)
		if err != nil || !bytes.Equal(file, tensor) {
			t.Fatalf("array %d differs: %v", i, err)
		}
	}
	return nil
}

func TestAnswers(t *testing.T) {
	goodbye := marshal(t, &protocol.ClientMessage{Msg: &protocol.ClientMessage_DisconnectRes_{DisconnectRes: &protocol.ClientMessage_DisconnectRes{Reason: 4}}})
	good := marshal(t, fitResult([]byte("one"), []byte("two, longer")))
	for piece := 1; piece < 20; piece++ {
		if err := compare(t, good, piece, 2); err != nil {
			t.Error(err)
		}
		if err := compare(t, goodbye, piece, 2); err != nil {
			t.Error(err)
		}
	}
	other := fitResult()
	other.GetFitRes().Parameters.TensorType = "pickle"
	talkative := fitResult()
	talkative.GetFitRes().Status.Message = string(bytes.Repeat([]byte("x"), maxTalk))
	for name, message := range map[string][]byte{
		"nothing":     nil,
		"twice":       append(bytes.Clone(good), good...),
		"cut off":     good[:len(good)-1],
		"more arrays": marshal(t, fitResult(nil, nil, nil)),
		"pickle":      marshal(t, other),
		"talk":        marshal(t, talkative),
		"properties":  {2<<3 | 2, 0},
		"number":      {4 << 3, 1},
		"claims":      {4<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"endless":     {4<<3 | 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if err := compare(t, message, 3, 2); !errors.Is(err, ErrReply) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := parseAnswer(cut(marshal(t, fitResult(make([]byte, 100_000))), 999), 1)
	if err != nil {
		t.Fatal(err)
	}
	next, done := arrayFiles(cut(nil, 1), a, []int{3})
	defer done()
	var buffer []byte
	if _, err := next(0, &buffer); !errors.Is(err, ErrReply) {
		t.Errorf("an array that is too large: %v", err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(marshal(f, fitResult([]byte("one"), []byte("two"))), uint8(3))
	f.Add(marshal(f, fitResult()), uint8(100))
	f.Add(marshal(f, &protocol.ClientMessage{Msg: &protocol.ClientMessage_DisconnectRes_{}}), uint8(1))
	f.Fuzz(func(t *testing.T, message []byte, piece uint8) { _ = compare(t, message, int(piece), 2) })
}

func FuzzApp(f *testing.F) {
	f.Add([]byte("[project]\nname = \"a\"\nversion = '1'\n[tool.flwr.app]\npublisher=\"b\" # so\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := parseApp(text); err != nil && !errors.Is(err, ErrOptions) {
			t.Fatal(err)
		}
		if _, err := tomlStrings(bytes.NewReader(text)); err != nil && len(text) < maxProject {
			t.Fatal(err)
		}
	})
}

// The pieces of an instruction are one message.
func TestInstruction(t *testing.T) {
	spec, err := model.New("resnet18", model.Shape{Channels: 3, Height: 8, Width: 8}, 3)
	if err != nil {
		t.Fatal(err)
	}
	arrays, err := layout.New(layout.Torch, spec)
	if err != nil {
		t.Fatal(err)
	}
	weights := model.Init(spec, rand.New(rand.NewPCG(1, 2)))
	encoded := encode(arrays, objects.Digest{}, weights)
	frame := fitInstruction(encoded, federated.Task{Round: 4, Local: federated.Local{Rate: 0.5}})
	var message protocol.ServerMessage
	if err := proto.Unmarshal(frame.data.Materialize(), &message); err != nil {
		t.Fatal(err)
	}
	ins := message.GetFitIns()
	if len(ins.GetParameters().GetTensors()) != len(arrays.Arrays) || ins.Config["server_round"].GetSint64() != 4 || ins.Config["lr"].GetDouble() != 0.5 {
		t.Errorf("%v", ins.GetConfig())
	}
	for i, file := range ins.Parameters.Tensors {
		if !bytes.Equal(file, arrays.Append(nil, i, weights)) || !bytes.Equal(file, encoded.files[i]) {
			t.Errorf("array %d differs", i)
		}
	}
	if err := proto.Unmarshal(endInstruction().data.Materialize(), &message); err != nil || message.GetReconnectIns() == nil {
		t.Errorf("%v, %v", &message, err)
	}
}

// FuzzSignature reads any text as the key and the time of a call.
func FuzzSignature(f *testing.F) {
	f.Add("-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n", "2026-01-02T03:04:05.678901+00:00")
	calls := &fleet{Server: &Server{options: Options{Now: func() time.Time { return time.Unix(1.7e9, 0) }}}}
	f.Fuzz(func(t *testing.T, key, stamp string) {
		if parsed, err := publicKey(key); (parsed == nil) == (err == nil) {
			t.Fatal("neither a key nor an error")
		}
		_ = calls.fresh(stamp)
	})
}

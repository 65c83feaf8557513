package flower_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"grange/federated/network"
	"grange/federated/network/flower"
	"grange/federated/network/flower/layout"
	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/protocol"
	"grange/model"
)

// patience is how long tests wait for what must happen.
const patience = 5 * time.Minute

// fit answers an instruction to train.
type fit func(ins *protocol.ServerMessage_FitIns) *protocol.ClientMessage_FitRes

// plus is an answer as of a client that adds to every value.
func plus(t testing.TB, delta float32) fit {
	return func(ins *protocol.ServerMessage_FitIns) *protocol.ClientMessage_FitRes {
		res := &protocol.ClientMessage_FitRes{
			Status: &protocol.Status{}, NumExamples: holding, Parameters: &protocol.Parameters{TensorType: "numpy.ndarray"},
			Metrics: map[string]*protocol.Scalar{"loss": {Scalar: &protocol.Scalar_Double{Double: 0.5}}},
		}
		for _, file := range ins.Parameters.Tensors {
			header, start, err := npy.Parse(file)
			if err != nil {
				t.Error(err)
				return res
			}
			values := floats(file[start:])
			for i := range values {
				values[i] += delta
			}
			res.Parameters.Tensors = append(res.Parameters.Tensors, append(npy.AppendHeader(nil, npy.Float32, header.Shape), raw(values)...))
		}
		return res
	}
}

// join is a client of the Join stream. It returns how often it was asked to train, and how the conversation ended.
func join(ctx context.Context, t testing.TB, address string, answer fit) (int, error) {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	stream, err := protocol.NewFlowerServiceClient(connection).Join(ctx)
	if err != nil {
		return 0, err
	}
	for asked := 0; ; {
		instruction, err := stream.Recv()
		if err != nil {
			return asked, err
		}
		if instruction.GetReconnectIns() != nil {
			err := stream.Send(&protocol.ClientMessage{Msg: &protocol.ClientMessage_DisconnectRes_{
				DisconnectRes: &protocol.ClientMessage_DisconnectRes{Reason: 4}}})
			return asked, err
		}
		asked++
		res := answer(instruction.GetFitIns())
		if err := stream.Send(&protocol.ClientMessage{Msg: &protocol.ClientMessage_FitRes_{FitRes: res}}); err != nil {
			return asked, err
		}
	}
}

func seats(t testing.TB, text string) []flower.Seat {
	t.Helper()
	list, err := flower.ParseSeats(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A client gets the global model and what to do with it, and its answer is averaged with the others'.
func TestJoin(t *testing.T) {
	w := newWorld(t, "mlp", 3, "north", "flower")
	s := w.serve(t, flower.Options{Legacy: seats(t, "flower")})
	s.silos(t, "north")
	arrays, err := layout.New(layout.Torch, w.config.Spec)
	if err != nil {
		t.Fatal(err)
	}
	var first *protocol.ServerMessage_FitIns
	asked, err := join(t.Context(), t, s.address, func(ins *protocol.ServerMessage_FitIns) *protocol.ClientMessage_FitRes {
		if first == nil {
			first = ins
		}
		return plus(t, 0.01)(ins)
	})
	if err != nil || asked != 3 {
		t.Fatalf("asked %d times, %v", asked, err)
	}
	for i, file := range first.Parameters.Tensors {
		if string(file) != string(arrays.Append(nil, i, w.config.Initial)) {
			t.Errorf("array %d is not that of the initial model", i)
		}
	}
	config := first.Config
	if first.Parameters.TensorType != "numpy.ndarray" || config["server_round"].GetSint64() != 1 || config["local_epochs"].GetSint64() != 2 ||
		config["batch_size"].GetSint64() != 32 || config["lr"].GetDouble() != 0.05 || config["max_examples"].GetSint64() != holding {
		t.Errorf("config %v", config)
	}
	result := s.wait(t, patience)
	if len(result.Rounds) != 3 || len(result.Rounds[2].Absent) != 0 {
		t.Errorf("%+v", result.Rounds)
	}
	if got := s.notes(t, network.Accepted, "flower"); len(got) != 3 || got[0] != "300 examples, loss 0.5" {
		t.Errorf("%q", got)
	}
	if d := s.federation.Status().Members[1].Declaration; d == nil || d.Transport != "flower" || d.Contribution != holding {
		t.Errorf("%+v", d)
	}
}

// What a client sends that is no update is refused by name, and the round goes on without it.
func TestJoinRefusals(t *testing.T) {
	w := newWorld(t, "softmax", 9, "north", "flower")
	s := w.serve(t, flower.Options{Legacy: seats(t, "flower")})
	s.silos(t, "north")
	good := plus(t, 0.01)
	spoil := []func(*protocol.ClientMessage_FitRes){
		func(res *protocol.ClientMessage_FitRes) { res.Parameters.Tensors = res.Parameters.Tensors[:1] },
		func(res *protocol.ClientMessage_FitRes) {
			res.Parameters.Tensors = append(res.Parameters.Tensors, res.Parameters.Tensors[0])
		},
		func(res *protocol.ClientMessage_FitRes) { res.Parameters.Tensors[0] = res.Parameters.Tensors[1] },
		func(res *protocol.ClientMessage_FitRes) { res.Parameters.Tensors[0] = []byte("\x80\x04pickle") },
		func(res *protocol.ClientMessage_FitRes) {
			_, start, _ := npy.Parse(res.Parameters.Tensors[0])
			values := floats(res.Parameters.Tensors[0][start:])
			values[3] = float32(math.NaN())
			copy(res.Parameters.Tensors[0][start:], raw(values))
		},
		func(res *protocol.ClientMessage_FitRes) { res.NumExamples = holding + 1 },
		func(res *protocol.ClientMessage_FitRes) { res.NumExamples = -1 },
		func(res *protocol.ClientMessage_FitRes) {
			res.Status = &protocol.Status{Code: protocol.Code_FIT_NOT_IMPLEMENTED, Message: "cannot"}
		},
		nil, // the model as it was sent
	}
	reasons := []string{
		"1 arrays, expected 2", "more than 2 arrays", "array output.weight has shape [10], expected [10 784]", "not an array that can be read",
		"not finite", "301 data points, declared were 300", "0 data points", "FIT_NOT_IMPLEMENTED: cannot", "nothing was trained",
	}
	asked, err := join(t.Context(), t, s.address, func(ins *protocol.ServerMessage_FitIns) *protocol.ClientMessage_FitRes {
		res := good(ins)
		if change := spoil[ins.Config["server_round"].GetSint64()-1]; change != nil {
			change(res)
		} else {
			res.Parameters = ins.Parameters
		}
		return res
	})
	if err != nil || asked != len(spoil) {
		t.Fatalf("asked %d times, %v", asked, err)
	}
	result := s.wait(t, patience)
	for i, reason := range reasons {
		absent := result.Rounds[i].Absent
		if len(absent) != 1 || absent[0].Name != "flower" || !strings.Contains(absent[0].Reason, reason) {
			t.Errorf("round %d: %+v, expected %q", i+1, absent, reason)
		}
	}
}

// A client that is cut off in the middle gets its place and its task again.
func TestJoinAgain(t *testing.T) {
	w := newWorld(t, "softmax", 2, "north", "flower")
	s := w.serve(t, flower.Options{Legacy: seats(t, "flower")})
	s.silos(t, "north")
	ctx, cut := context.WithCancel(t.Context())
	_, err := join(ctx, t, s.address, func(*protocol.ServerMessage_FitIns) *protocol.ClientMessage_FitRes {
		cut()
		return nil
	})
	if err == nil {
		t.Fatal("the cut was not noticed")
	}
	for { // until the place is free
		asked, err := join(t.Context(), t, s.address, plus(t, 0.01))
		if status.Code(err) == codes.ResourceExhausted {
			continue
		}
		if err != nil || asked != 2 {
			t.Fatalf("asked %d times, %v", asked, err)
		}
		break
	}
	if result := s.wait(t, patience); len(result.Rounds[0].Absent)+len(result.Rounds[1].Absent) != 0 {
		t.Errorf("%+v", result.Rounds)
	}
}

// A coordinator that is stopped in the middle of a round goes on with a client that comes back.
func TestJoinAfterRestart(t *testing.T) {
	w := newWorld(t, "softmax", 3, "flower")
	options := flower.Options{Legacy: seats(t, "flower=127.0.0.1")}
	s := w.serve(t, options)
	_, err := join(t.Context(), t, s.address, func(ins *protocol.ServerMessage_FitIns) *protocol.ClientMessage_FitRes {
		if ins.Config["server_round"].GetSint64() == 2 {
			s.stop()
		}
		return plus(t, 0.01)(ins)
	})
	if err == nil {
		t.Fatal("the stop was not noticed")
	}
	s = w.serve(t, options)
	asked, err := join(t.Context(), t, s.address, plus(t, 0.01))
	if err != nil || asked != 2 {
		t.Fatalf("asked %d times after the restart, %v", asked, err)
	}
	if result := s.wait(t, patience); len(result.Rounds) != 3 {
		t.Errorf("%+v", result.Rounds)
	}
}

// There are as many places as members, and no more; a place bound to an address is for that address.
func TestSeats(t *testing.T) {
	w := newWorld(t, "softmax", 1, "north", "flower")
	s := w.serve(t, flower.Options{Legacy: seats(t, "flower=192.0.2.1")})
	if _, err := join(t.Context(), t, s.address, plus(t, 0.01)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("from another address: %v", err)
	}
	for text, wrong := range map[string]string{"": "without a name", "a,,b": "without a name", "a=here": "no IP address"} {
		if _, err := flower.ParseSeats(text); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, list := range [][]flower.Seat{{{Member: "nobody"}}, {{Member: "north"}, {Member: "north"}}} {
		if _, err := flower.New(s.federation, flower.Options{Legacy: list, Data: []int{1, 1}}); err == nil {
			t.Errorf("%v was taken", list)
		}
	}
}

// The largest message that is taken grows with the model.
func TestLargestMessage(t *testing.T) {
	spec, err := model.New("softmax", model.Shape{Channels: 1, Height: 28, Width: 28}, 10)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "softmax", 1, "flower")
	s := w.serve(t, flower.Options{Legacy: seats(t, "flower")})
	_, err = join(t.Context(), t, s.address, func(ins *protocol.ServerMessage_FitIns) *protocol.ClientMessage_FitRes {
		res := plus(t, 0.01)(ins)
		res.Parameters.Tensors[0] = make([]byte, 200*8*spec.Size())
		return res
	})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message of 200 times the size: %v", err)
	}
}

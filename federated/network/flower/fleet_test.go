package flower_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"grange/federated/network"
	"grange/federated/network/flower"
	"grange/federated/network/flower/layout"
	"grange/federated/network/flower/npy"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
)

// trained adds to the values of arrays.
func trained(t testing.TB, files [][]byte, delta float32) [][]byte {
	t.Helper()
	var list [][]byte
	for _, file := range files {
		header, start, err := npy.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		values := floats(file[start:])
		for i := range values {
			values[i] += delta
		}
		list = append(list, append(npy.AppendHeader(nil, npy.Float32, header.Shape), raw(values)...))
	}
	return list
}

// newStyle answers as new apps do, and numpyStyle as a NumPyClient.
func newStyle(t testing.TB, k *task, examples int64) *answer {
	names, files := k.arrays(t, "arrays")
	a := newAnswer()
	a.arrays("arrays", names, trained(t, files, 0.01), 100_000)
	a.metrics("metrics", map[string]int64{"num-examples": examples})
	return a
}

func numpyStyle(t testing.TB, k *task, examples, code int64) *answer {
	names, files := k.arrays(t, "fitins.parameters")
	a := newAnswer()
	a.arrays("fitres.parameters", names, trained(t, files, 0.01), record.ChunkSize)
	a.metrics("fitres.num_examples", map[string]int64{"num_examples": examples})
	a.record("fitres.metrics", record.ConfigRecord, &protocol.ConfigRecord{})
	a.record("fitres.status", record.ConfigRecord, &protocol.ConfigRecord{Items: []*protocol.ConfigRecord_Item{
		{Key: "code", Value: &protocol.ConfigRecordValue{Value: &protocol.ConfigRecordValue_Sint64{Sint64: code}}},
		{Key: "message", Value: &protocol.ConfigRecordValue{Value: &protocol.ConfigRecordValue_String_{String_: "so it is"}}}}})
	return a
}

func (s *serving) enrol(t testing.TB, member string) *superNode {
	t.Helper()
	n := newSuperNode(t)
	if _, err := s.registrar.EnrolKey(t.Context(), member, n.public); err != nil {
		t.Fatal(err)
	}
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// SuperNodes, over gRPC and over HTTP, take part with apps of either style.
func TestFleet(t *testing.T) {
	w := newWorld(t, "mlp", 3, "north", "grpc", "http")
	s := w.serve(t, flower.Options{App: bundle(t), RunConfig: map[string]string{"rate": "0.5", "epochs": "3", "name": "x", "fast": "true"}})
	s.silos(t, "north")
	first, second := s.enrol(t, "grpc"), s.enrol(t, "http")
	first.overGRPC(t, s)
	second.overHTTP(t, s)
	done := make(chan error, 2)
	for _, n := range []*superNode{first, second} {
		go func() {
			done <- func() error {
				if err := n.activate(t.Context()); err != nil {
					return err
				}
				for round := 1; round <= 3; round++ {
					k, err := n.pull(t.Context(), t)
					if err != nil {
						return err
					}
					if k.message.Metadata.GroupId != strconv.Itoa(round) || k.message.Metadata.MessageType != "train" {
						t.Errorf("%v", k.message)
					}
					if round == 1 {
						n.look(t, s, k)
					}
					a := newStyle(t, k, holding)
					if n == second {
						a = numpyStyle(t, k, holding, 0)
					}
					if err := n.push(t.Context(), k, a); err != nil {
						return err
					}
				}
				return n.call(t.Context(), "DeactivateNode", &protocol.DeactivateNodeRequest{NodeId: n.id}, &protocol.DeactivateNodeResponse{})
			}()
		}()
	}
	must(t, <-done)
	must(t, <-done)
	result := s.wait(t, patience)
	for _, round := range result.Rounds {
		if len(round.Absent) != 0 {
			t.Errorf("%+v", round.Absent)
		}
	}
	for _, name := range []string{"grpc", "http"} {
		if got := s.notes(t, network.Accepted, name); len(got) != 3 || !strings.HasPrefix(got[0], "300 examples") {
			t.Errorf("%s: %q", name, got)
		}
		if len(s.notes(t, network.Connected, name)) != 1 || len(s.notes(t, network.Disconnected, name)) != 1 {
			t.Errorf("%s: presence", name)
		}
	}
	if d := s.federation.Status().Members[1].Declaration; d.Transport != "flower-fleet" {
		t.Errorf("%+v", d)
	}
}

// look checks what a SuperNode gets with its first task.
func (n *superNode) look(t testing.TB, s *serving, k *task) {
	arrays, err := layout.New(layout.Torch, s.config.Spec)
	must(t, err)
	names, files := k.arrays(t, "arrays")
	numbers, same := k.arrays(t, "fitins.parameters")
	for i := range files {
		if string(files[i]) != string(arrays.Append(nil, i, s.config.Initial)) || string(same[i]) != string(files[i]) ||
			names[i] != arrays.Arrays[i].Name || numbers[i] != strconv.Itoa(i) {
			t.Errorf("array %d is called %s and %s, and may not be the model's", i, names[i], numbers[i])
		}
	}
	for _, entry := range k.content {
		if !strings.HasSuffix(entry.Name, "config") {
			continue
		}
		values, err := record.ParseConfig(k.objects[entry.ID])
		must(t, err)
		round := values["server-round"]
		if strings.HasPrefix(entry.Name, "fitins") {
			round = values["server_round"]
		}
		if round != int64(1) || values["lr"] != 0.05 || values["local_epochs"] != int64(2) {
			t.Errorf("%s: %v", entry.Name, values)
		}
	}
	var run protocol.GetRunResponse
	must(t, n.call(t.Context(), "GetRun", &protocol.GetRunRequest{Node: n.node(), RunId: k.message.Metadata.RunId}, &run))
	config := run.Run.OverrideConfig
	if run.Run.FabId != "grange/demo" || run.Run.FabVersion != "1.0.0" || config["rate"].GetDouble() != 0.5 ||
		config["epochs"].GetSint64() != 3 || config["name"].GetString_() != "x" || !config["fast"].GetBool() {
		t.Errorf("%v", run.Run)
	}
	var fab protocol.GetFabResponse
	must(t, n.call(t.Context(), "GetFab", &protocol.GetFabRequest{Node: n.node(), HashStr: run.Run.FabHash}, &fab))
	if record.Name(fab.Fab.Content).String() != run.Run.FabHash {
		t.Error("the app is not that of its hash")
	}
	var heartbeat protocol.SendNodeHeartbeatResponse
	must(t, n.call(t.Context(), "SendNodeHeartbeat", &protocol.SendNodeHeartbeatRequest{Node: n.node(), HeartbeatInterval: 30}, &heartbeat))
	if !heartbeat.Success {
		t.Error("the heartbeat was not taken")
	}
}

// Calls that are not signed by an enrolled key, in time and under the right number, are refused, and say what to do.
func TestFleetAuthentication(t *testing.T) {
	w := newWorld(t, "softmax", 1, "north", "flower")
	s := w.serve(t, flower.Options{App: bundle(t), Legacy: seats(t, "north")})
	for _, connect := range []func(*superNode){
		func(n *superNode) { n.overGRPC(t, s) }, func(n *superNode) { n.overHTTP(t, s) },
	} {
		check := func(name string, err error, code codes.Code, text string) {
			t.Helper()
			if status.Code(err) != code || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", name, err)
			}
		}
		stranger := newSuperNode(t)
		connect(stranger)
		check("a key nobody knows", stranger.activate(t.Context()), codes.FailedPrecondition, "enrol-key")
		err := stranger.call(t.Context(), "RegisterNode", &protocol.RegisterNodeFleetRequest{PublicKey: stranger.public}, &protocol.RegisterNodeFleetResponse{})
		check("a key of its own", err, codes.FailedPrecondition, "enrol-key")
		n := s.enrol(t, "flower")
		connect(n)
		n.late = time.Hour
		check("a clock that is late", n.activate(t.Context()), codes.FailedPrecondition, "1h0m0s behind the coordinator's")
		n.late = -time.Minute
		check("a clock that is early", n.activate(t.Context()), codes.FailedPrecondition, "ahead of the coordinator's")
		n.late = 5 * time.Minute
		must(t, n.activate(t.Context()))
		n.late = 0
		other := newSuperNode(t)
		right := n.key
		n.key = other.key
		check("the signature of another", n.activate(t.Context()), codes.Unauthenticated, "signature")
		n.key = right
		must(t, n.activate(t.Context()))
		n.id++
		err = n.call(t.Context(), "PullMessages", &protocol.PullMessagesRequest{Node: n.node()}, &protocol.PullMessagesResponse{})
		check("another number", err, codes.Unauthenticated, "number")
		n.id--
		err = n.call(t.Context(), "SendNodeHeartbeat", &protocol.SendNodeHeartbeatRequest{Node: n.node(), HeartbeatInterval: -1}, &protocol.SendNodeHeartbeatResponse{})
		check("a strange heartbeat", err, codes.InvalidArgument, "heartbeat")
		_, err = s.registrar.Ledger.Revoke(t.Context(), "flower")
		must(t, err)
		check("a key that was taken back", n.activate(t.Context()), codes.FailedPrecondition, "not enrolled")
	}
}

// What a SuperNode sends that is no update is refused by name, and the round goes on without it.
func TestFleetRefusals(t *testing.T) {
	faults := []struct {
		reason string
		push   func(context.Context, *testing.T, *superNode, *task) error
	}{
		{"301 data points, declared were 300", func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			return n.push(ctx, k, newStyle(t, k, holding+1))
		}},
		{"so it is", func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			return n.push(ctx, k, numpyStyle(t, k, holding, 3))
		}},
		{"0 records of arrays", func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			a := newAnswer()
			a.metrics("metrics", map[string]int64{"num-examples": 1})
			return n.push(ctx, k, a)
		}},
		{`array "strange"`, func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			_, files := k.arrays(t, "arrays")
			a := newAnswer()
			a.arrays("arrays", []string{"output.weight", "strange"}, files, 1<<20)
			a.metrics("metrics", map[string]int64{"num-examples": 1})
			return n.push(ctx, k, a)
		}},
		{"array output.weight has shape [10], expected [10 784]", func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			_, files := k.arrays(t, "arrays")
			a := newAnswer()
			slices.Reverse(files)
			a.arrays("arrays", []string{"0", "1"}, files, 1<<20)
			a.metrics("metrics", map[string]int64{"num-examples": 1})
			return n.push(ctx, k, a)
		}},
		{"error 2: it broke", func(ctx context.Context, _ *testing.T, n *superNode, k *task) error {
			message := &protocol.Message{Error: &protocol.Error{Code: 2, Reason: "it broke"}, Metadata: &protocol.Metadata{
				RunId: k.message.Metadata.RunId, ReplyToMessageId: k.message.Metadata.MessageId}}
			return n.call(ctx, "PushMessages", &protocol.PushMessagesRequest{Node: n.node(), MessagesList: []*protocol.Message{message},
				MessageObjectTrees: []*protocol.ObjectTree{record.Tree(record.Name(nil))}}, &protocol.PushMessagesResponse{})
		}},
		{"are not those of its name", func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			a := newStyle(t, k, holding)
			for id := range a.objects {
				a.objects[id] = append(a.objects[id], 0)
			}
			if err := n.push(ctx, k, a); status.Code(err) != codes.FailedPrecondition {
				return fmt.Errorf("wrong contents: %w", err)
			}
			return nil
		}},
		{"a tree of more than", func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			names, files := k.arrays(t, "arrays")
			a := newAnswer()
			a.arrays("arrays", names, files, 100)
			return n.push(ctx, k, a)
		}},
		{"more than", func(ctx context.Context, t *testing.T, n *superNode, k *task) error {
			a := newAnswer()
			a.arrays("arrays", []string{"a", "b"}, [][]byte{make([]byte, 5<<20), make([]byte, 5<<20)}, 5<<20)
			a.arrays("more", []string{"a"}, [][]byte{append(make([]byte, 5<<20), 1)}, 4<<20)
			if err := n.push(ctx, k, a); status.Code(err) != codes.FailedPrecondition {
				return fmt.Errorf("too much: %w", err)
			}
			return nil
		}},
	}
	w := newWorld(t, "softmax", len(faults), "north", "flower")
	s := w.serve(t, flower.Options{App: bundle(t)})
	s.silos(t, "north")
	n := s.enrol(t, "flower")
	n.overGRPC(t, s)
	must(t, n.activate(t.Context()))
	for i, fault := range faults {
		k, err := n.pull(t.Context(), t)
		must(t, err)
		if k.message.Metadata.GroupId != strconv.Itoa(i+1) {
			t.Fatalf("round %s, expected %d", k.message.Metadata.GroupId, i+1)
		}
		must(t, fault.push(t.Context(), t, n, k))
	}
	result := s.wait(t, patience)
	for i, fault := range faults {
		if absent := result.Rounds[i].Absent; len(absent) != 1 || !strings.Contains(absent[0].Reason, fault.reason) {
			t.Errorf("round %d: %+v, expected %q", i+1, absent, fault.reason)
		}
	}
}

// A coordinator that was started again answers as if it had not been: the same message, and an answer that was computed
// before counts.
func TestFleetAfterRestart(t *testing.T) {
	w := newWorld(t, "softmax", 2, "flower")
	options := flower.Options{App: bundle(t)}
	s := w.serve(t, options)
	n := s.enrol(t, "flower")
	n.overGRPC(t, s)
	must(t, n.activate(t.Context()))
	k, err := n.pull(t.Context(), t)
	must(t, err)
	s.stop()
	s = w.serve(t, options)
	n.overGRPC(t, s)
	again, err := n.pull(t.Context(), t)
	must(t, err)
	if again.message.Metadata.MessageId != k.message.Metadata.MessageId {
		t.Error("another message after the restart")
	}
	s.stop()
	s = w.serve(t, options)
	n.overHTTP(t, s)
	a := newStyle(t, k, 200)
	must(t, n.push(t.Context(), k, a))
	// The same once more is of no use, and no harm; an object of it is there.
	for id, content := range a.objects {
		var object protocol.PushObjectResponse
		must(t, n.call(t.Context(), "PushObject", &protocol.PushObjectRequest{Node: n.node(), RunId: k.message.Metadata.RunId,
			ObjectId: id.String(), ObjectContent: content}, &object))
		if !object.Stored {
			t.Error("an object that was stored is not")
		}
	}
	must(t, n.push(t.Context(), k, newStyle(t, k, 200)))
	k, err = n.pull(t.Context(), t)
	must(t, err)
	must(t, n.push(t.Context(), k, numpyStyle(t, k, 100, 0)))
	result := s.wait(t, patience)
	if len(result.Rounds) != 2 || len(s.notes(t, network.Accepted, "flower")) != 2 {
		t.Errorf("%+v", result.Rounds)
	}
	// After the end there is nothing to do.
	var pulled protocol.PullMessagesResponse
	must(t, n.call(t.Context(), "PullMessages", &protocol.PullMessagesRequest{Node: n.node()}, &pulled))
	if len(pulled.MessagesList) != 0 {
		t.Errorf("%v", pulled.MessagesList)
	}
	var object protocol.PushObjectResponse
	must(t, n.call(t.Context(), "PushObject", &protocol.PushObjectRequest{Node: n.node(), RunId: k.message.Metadata.RunId, ObjectId: record.Name(nil).String()}, &object))
	if object.Stored {
		t.Error("an object that nobody expects was stored")
	}
}

func TestOptions(t *testing.T) {
	w := newWorld(t, "softmax", 1, "north")
	s := w.serve(t, flower.Options{})
	for name, options := range map[string]flower.Options{
		"data":   {},
		"layout": {Data: []int{1}, Layout: "keras"},
		"style":  {Data: []int{1}, Style: "baroque"},
		"keys":   {Data: []int{1}, App: bundle(t)},
		"app":    {Data: []int{1}, App: []byte("no bundle"), Keys: w.registrar, Folder: t.TempDir()},
	} {
		if _, err := flower.New(s.federation, options); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if s.server.Handler() != nil || (flower.Options{}).Enabled() {
		t.Error("nothing was asked for")
	}
}

package flower_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
)

// bundle is an app that is good enough for a SuperNode that runs none.
func bundle(t testing.TB) []byte {
	t.Helper()
	var file bytes.Buffer
	w := zip.NewWriter(&file)
	part, err := w.Create("pyproject.toml")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(part, "[project]\nname = \"demo\"\nversion = \"1.0.0\"\n\n[tool.flwr.app]\npublisher = \"grange\"\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// superNode is a SuperNode that does in Go what Flower's does.
type superNode struct {
	key    *ecdsa.PrivateKey
	public []byte
	// late is how much its clock is behind.
	late time.Duration
	call func(ctx context.Context, method string, request, response proto.Message) error
	id   uint64
}

func newSuperNode(t testing.TB) *superNode {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return &superNode{key: key, public: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})}
}

// sign returns the key, the time and the signature of a call.
func (n *superNode) sign() (key, stamp, signature string) {
	stamp = time.Now().Add(-n.late).UTC().Format("2006-01-02T15:04:05.000000+00:00")
	sum := sha256.Sum256([]byte(stamp))
	bytes, err := ecdsa.SignASN1(rand.Reader, n.key, sum[:])
	if err != nil {
		panic(err)
	}
	return string(n.public), stamp, string(bytes)
}

// overGRPC and overHTTP connect it.
func (n *superNode) overGRPC(t testing.TB, s *serving) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.authority.PEM())
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool})),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	n.call = func(ctx context.Context, method string, request, response proto.Message) error {
		key, stamp, signature := n.sign()
		ctx = metadata.AppendToOutgoingContext(ctx, "flwr-public-key-bin", key, "flwr-timestamp", stamp, "flwr-signature-bin", signature)
		return connection.Invoke(ctx, "/flwr.proto.Fleet/"+method, request, response, grpc.WaitForReady(true))
	}
}

var paths = map[string]string{
	"RegisterNode": "register-node", "ActivateNode": "activate-node", "DeactivateNode": "deactivate-node", "UnregisterNode": "unregister-node",
	"SendNodeHeartbeat": "send-node-heartbeat", "PullMessages": "pull-messages", "PushMessages": "push-messages", "GetRun": "get-run",
	"GetFab": "get-fab", "PushObject": "push-object", "PullObject": "pull-object", "ConfirmMessageReceived": "confirm-message-received",
}

func (n *superNode) overHTTP(t testing.TB, s *serving) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.authority.PEM())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(client.CloseIdleConnections)
	n.call = func(ctx context.Context, method string, request, response proto.Message) error {
		body, err := proto.Marshal(request)
		if err != nil {
			return err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+s.address+"/v1/fleet/"+paths[method], bytes.NewReader(body))
		if err != nil {
			return err
		}
		key, stamp, signature := n.sign()
		r.Header.Set("flwr-public-key", base64.StdEncoding.EncodeToString([]byte(key)))
		r.Header.Set("flwr-timestamp", stamp)
		r.Header.Set("flwr-signature", base64.StdEncoding.EncodeToString([]byte(signature)))
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		content, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			var told struct {
				Code   int
				Detail string
			}
			if err := json.Unmarshal(content, &told); err != nil {
				return fmt.Errorf("status %d: %s", answer.StatusCode, content)
			}
			return status.Error(codes.Code(told.Code), told.Detail)
		}
		return proto.Unmarshal(content, response)
	}
}

func (n *superNode) node() *protocol.Node { return &protocol.Node{NodeId: n.id} }

func (n *superNode) activate(ctx context.Context) error {
	var response protocol.ActivateNodeResponse
	err := n.call(ctx, "ActivateNode", &protocol.ActivateNodeRequest{PublicKey: n.public, HeartbeatInterval: 30}, &response)
	n.id = response.NodeId
	return err
}

// task is a message with its objects.
type task struct {
	message *protocol.Message
	objects map[record.ID][]byte
	content []record.Entry
}

// pull waits for a task and gets all its objects.
func (n *superNode) pull(ctx context.Context, t testing.TB) (*task, error) {
	var pulled protocol.PullMessagesResponse
	for len(pulled.MessagesList) == 0 {
		if err := n.call(ctx, "PullMessages", &protocol.PullMessagesRequest{Node: n.node()}, &pulled); err != nil {
			return nil, err
		}
	}
	got := &task{message: pulled.MessagesList[0], objects: map[record.ID][]byte{}}
	ids, err := record.Flatten(pulled.MessageObjectTrees[0], 10_000)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		var object protocol.PullObjectResponse
		request := &protocol.PullObjectRequest{Node: n.node(), RunId: got.message.Metadata.RunId, ObjectId: id.String()}
		if err := n.call(ctx, "PullObject", request, &object); err != nil {
			return nil, err
		}
		if !object.ObjectFound || !object.ObjectAvailable || record.Name(object.ObjectContent) != id {
			t.Errorf("object %s is not there, or another", id)
		}
		got.objects[id] = object.ObjectContent
	}
	confirm := &protocol.ConfirmMessageReceivedRequest{Node: n.node(), RunId: got.message.Metadata.RunId, MessageObjectId: ids[len(ids)-1].String()}
	if err := n.call(ctx, "ConfirmMessageReceived", confirm, &protocol.ConfirmMessageReceivedResponse{}); err != nil {
		return nil, err
	}
	if ids[len(ids)-1].String() != got.message.Metadata.MessageId {
		t.Error("the message's name is not that of its object")
	}
	_, content, err := record.ParseMessage(got.objects[ids[len(ids)-1]])
	if err != nil {
		return nil, err
	}
	got.content, err = record.ParseRefs(record.RecordDict, got.objects[*content])
	return got, err
}

// arrays are the files of a record of arrays, with their names.
func (k *task) arrays(t testing.TB, name string) (names []string, files [][]byte) {
	t.Helper()
	at := slices.IndexFunc(k.content, func(e record.Entry) bool { return e.Name == name })
	if at < 0 {
		t.Fatalf("no %s in %v", name, k.content)
	}
	entries, err := record.ParseRefs(record.ArrayRecord, k.objects[k.content[at].ID])
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		chunks, err := record.ParseArray(k.objects[entry.ID], 100)
		if err != nil {
			t.Fatal(err)
		}
		var file []byte
		for _, chunk := range chunks {
			piece, err := record.ParseChunk(k.objects[chunk])
			if err != nil {
				t.Fatal(err)
			}
			file = append(file, piece...)
		}
		names, files = append(names, entry.Name), append(files, file)
	}
	return names, files
}

// answer is a reply being put together.
type answer struct {
	objects map[record.ID][]byte
	records []record.Entry
	trees   []*protocol.ObjectTree
}

func newAnswer() *answer { return &answer{objects: map[record.ID][]byte{}} }

func (a *answer) add(o record.Object) record.ID {
	encoded := o.Encode()
	id := record.Name(encoded)
	a.objects[id] = encoded
	return id
}

// arrays adds a record of arrays, in pieces of so many bytes.
func (a *answer) arrays(name string, names []string, files [][]byte, piece int) {
	var entries []record.Entry
	var trees []*protocol.ObjectTree
	for i, file := range files {
		var chunks []record.ID
		var pieces []*protocol.ObjectTree
		for part := range slices.Chunk(file, piece) {
			id := a.add(record.Object{Kind: record.ArrayChunk, Body: part})
			chunks, pieces = append(chunks, id), append(pieces, record.Tree(id))
		}
		id := a.add(record.NewArray("float32", nil, chunks))
		entries, trees = append(entries, record.Entry{Name: names[i], ID: id}), append(trees, record.Tree(id, pieces...))
	}
	id := a.add(record.Refs(record.ArrayRecord, entries))
	a.records, a.trees = append(a.records, record.Entry{Name: name, ID: id}), append(a.trees, record.Tree(id, trees...))
}

func (a *answer) record(name, kind string, message proto.Message) {
	body, err := proto.Marshal(message)
	if err != nil {
		panic(err)
	}
	id := a.add(record.Object{Kind: kind, Body: body})
	a.records, a.trees = append(a.records, record.Entry{Name: name, ID: id}), append(a.trees, record.Tree(id))
}

func (a *answer) metrics(name string, values map[string]int64) {
	list := &protocol.MetricRecord{}
	for key, value := range values {
		list.Items = append(list.Items, &protocol.MetricRecord_Item{Key: key, Value: &protocol.MetricRecordValue{
			Value: &protocol.MetricRecordValue_Sint64{Sint64: value}}})
	}
	a.record(name, record.MetricRecord, list)
}

// push sends an answer to a task.
func (n *superNode) push(ctx context.Context, to *task, a *answer) error {
	content := a.add(record.Refs(record.RecordDict, a.records))
	meta := to.message.Metadata
	message := &protocol.Message{Metadata: &protocol.Metadata{RunId: meta.RunId, SrcNodeId: n.id, DstNodeId: meta.SrcNodeId,
		ReplyToMessageId: meta.MessageId, GroupId: meta.GroupId, MessageType: meta.MessageType, Ttl: 1000, CreatedAt: 1.7e9}}
	object, err := record.NewMessage(message, content)
	if err != nil {
		return err
	}
	id := a.add(object)
	message.Metadata.MessageId = id.String()
	var response protocol.PushMessagesResponse
	err = n.call(ctx, "PushMessages", &protocol.PushMessagesRequest{Node: n.node(), MessagesList: []*protocol.Message{message},
		MessageObjectTrees: []*protocol.ObjectTree{record.Tree(id, record.Tree(content, a.trees...))}}, &response)
	if err != nil {
		return err
	}
	for _, name := range response.ObjectsToPush {
		id, err := record.ParseID(name)
		if err != nil {
			return err
		}
		var stored protocol.PushObjectResponse
		err = n.call(ctx, "PushObject", &protocol.PushObjectRequest{Node: n.node(), RunId: meta.RunId, ObjectId: name,
			ObjectContent: a.objects[id], SessionId: response.SessionId}, &stored)
		if err != nil {
			return err
		}
		if !stored.Stored {
			return fmt.Errorf("object %s was not stored", name)
		}
	}
	return nil
}

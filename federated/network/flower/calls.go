package flower

import (
	"context"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
)

// patience is how long a SuperNode that asks for work waits for the answer. It would ask again after three seconds.
const patience = 10 * time.Second

// RegisterNode refuses keys that SuperNodes made up themselves.
func (f *fleet) RegisterNode(context.Context, *protocol.RegisterNodeFleetRequest) (*protocol.RegisterNodeFleetResponse, error) {
	return nil, status.Errorf(codes.FailedPrecondition, "SuperNodes take part with keys that are enrolled. %s", enrolHint)
}

// UnregisterNode refuses as well.
func (f *fleet) UnregisterNode(context.Context, *protocol.UnregisterNodeFleetRequest) (*protocol.UnregisterNodeFleetResponse, error) {
	return nil, status.Error(codes.FailedPrecondition, "a key is taken back with grange coordinator revoke")
}

// ActivateNode tells a SuperNode its number.
func (f *fleet) ActivateNode(ctx context.Context, request *protocol.ActivateNodeRequest) (*protocol.ActivateNodeResponse, error) {
	n, err := f.enter(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.interval(n, request.HeartbeatInterval); err != nil {
		return nil, err
	}
	return &protocol.ActivateNodeResponse{NodeId: n.id}, nil
}

// DeactivateNode says goodbye.
func (f *fleet) DeactivateNode(ctx context.Context, request *protocol.DeactivateNodeRequest) (*protocol.DeactivateNodeResponse, error) {
	n, err := f.caller(ctx, request.NodeId)
	if err != nil {
		return nil, err
	}
	f.absent(n)
	return &protocol.DeactivateNodeResponse{}, nil
}

// SendNodeHeartbeat says that a SuperNode is still there.
func (f *fleet) SendNodeHeartbeat(ctx context.Context, request *protocol.SendNodeHeartbeatRequest) (*protocol.SendNodeHeartbeatResponse, error) {
	n, err := f.caller(ctx, request.GetNode().GetNodeId())
	if err != nil {
		return nil, err
	}
	if err := f.interval(n, request.HeartbeatInterval); err != nil {
		return nil, err
	}
	return &protocol.SendNodeHeartbeatResponse{Success: true}, nil
}

// PullMessages gives a SuperNode its task, for which it may have to wait. Asking again gives the same one again.
func (f *fleet) PullMessages(ctx context.Context, request *protocol.PullMessagesRequest) (*protocol.PullMessagesResponse, error) {
	n, err := f.caller(ctx, request.GetNode().GetNodeId())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n.mutex.Lock()
	defer n.mutex.Unlock()
	task, err := f.current(ctx, n)
	if err != nil || task == nil {
		return &protocol.PullMessagesResponse{}, err
	}
	return &protocol.PullMessagesResponse{
		MessagesList: []*protocol.Message{task.wire()}, MessageObjectTrees: []*protocol.ObjectTree{task.tree},
	}, nil
}

// running checks the number of the run. A SuperNode drops what it has of a run that is not under way.
func (f *fleet) running(run uint64) error {
	if run != f.run {
		return status.Error(codes.PermissionDenied, "this run is not under way here")
	}
	return nil
}

// GetRun describes the run.
func (f *fleet) GetRun(ctx context.Context, request *protocol.GetRunRequest) (*protocol.GetRunResponse, error) {
	if _, err := f.caller(ctx, request.GetNode().GetNodeId()); err != nil {
		return nil, err
	}
	if err := f.running(request.RunId); err != nil {
		return nil, err
	}
	config := map[string]*protocol.Scalar{}
	for name, text := range f.options.RunConfig {
		config[name] = scalar(text)
	}
	return &protocol.GetRunResponse{Run: &protocol.Run{
		RunId: f.run, FabId: f.app.id, FabVersion: f.app.version, FabHash: f.app.hash, OverrideConfig: config,
		Status: &protocol.RunStatus{Status: "running"}, Federation: f.federation.Config().Name, SeriesId: f.run,
	}}, nil
}

// GetFab hands out the app.
func (f *fleet) GetFab(ctx context.Context, request *protocol.GetFabRequest) (*protocol.GetFabResponse, error) {
	if _, err := f.caller(ctx, request.GetNode().GetNodeId()); err != nil {
		return nil, err
	}
	if request.HashStr != f.app.hash {
		return nil, status.Error(codes.PermissionDenied, "there is no such app here")
	}
	return &protocol.GetFabResponse{Fab: &protocol.Fab{HashStr: f.app.hash, Content: f.app.content}}, nil
}

// about is the SuperNode that calls, and the object of the run under way that the call is about.
func (f *fleet) about(ctx context.Context, request interface {
	GetNode() *protocol.Node
	GetRunId() uint64
	GetObjectId() string
}) (*node, record.ID, error) {
	n, err := f.caller(ctx, request.GetNode().GetNodeId())
	if err != nil {
		return nil, record.ID{}, err
	}
	if err := f.running(request.GetRunId()); err != nil {
		return nil, record.ID{}, err
	}
	id, err := record.ParseID(request.GetObjectId())
	if err != nil {
		return nil, record.ID{}, status.Error(codes.InvalidArgument, err.Error())
	}
	return n, id, nil
}

// PullObject hands out an object of the SuperNode's task.
func (f *fleet) PullObject(ctx context.Context, request *protocol.PullObjectRequest) (*protocol.PullObjectResponse, error) {
	n, id, err := f.about(ctx, request)
	if err != nil {
		return nil, err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.task == nil { // the coordinator may have been started again since
		if _, err := f.current(soon(ctx), n); err != nil {
			return nil, err
		}
	}
	if n.task == nil {
		return &protocol.PullObjectResponse{}, nil
	}
	content, ok := n.task.find(id)
	if !ok {
		return &protocol.PullObjectResponse{}, nil
	}
	return &protocol.PullObjectResponse{ObjectFound: true, ObjectAvailable: true, ObjectContent: slices.Concat(content...)}, nil
}

// soon is a context for asking what is there already.
func soon(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	return ctx
}

// ConfirmMessageReceived needs no answer: the message is kept until it is answered.
func (f *fleet) ConfirmMessageReceived(ctx context.Context, request *protocol.ConfirmMessageReceivedRequest) (*protocol.ConfirmMessageReceivedResponse, error) {
	if _, err := f.caller(ctx, request.GetNode().GetNodeId()); err != nil {
		return nil, err
	}
	return &protocol.ConfirmMessageReceivedResponse{}, nil
}

// PushMessages announces an answer, and is told which of its objects to send.
func (f *fleet) PushMessages(ctx context.Context, request *protocol.PushMessagesRequest) (*protocol.PushMessagesResponse, error) {
	n, err := f.caller(ctx, request.GetNode().GetNodeId())
	if err != nil {
		return nil, err
	}
	if len(request.MessagesList) != 1 || len(request.MessageObjectTrees) != 1 {
		return nil, status.Error(codes.InvalidArgument, "one answer at a time is expected, with its tree of objects")
	}
	message, tree := request.MessagesList[0], request.MessageObjectTrees[0]
	response := &protocol.PushMessagesResponse{
		Reconnect: &protocol.Reconnect{Reconnect: 5}, SessionId: tree.GetObjectId(),
		Results: map[string]uint32{message.GetMetadata().GetMessageId(): 0},
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	task, err := f.current(soon(ctx), n)
	if err != nil {
		return nil, err
	}
	if task == nil || message.GetMetadata().GetReplyToMessageId() != task.message.Metadata.MessageId {
		f.options.Log.Warn("A SuperNode answered a message that is of no use any more", "node", n.id)
		return response, nil
	}
	if message.GetError() != nil {
		return response, fault(settled(f.federation.Fail(ctx, task.round, n.member, failure(message.GetError()))))
	}
	ids, err := record.Flatten(tree, f.limit)
	if err != nil {
		return response, fault(f.refuse(ctx, task.round, n.member, reply(err)))
	}
	if n.reply == nil || n.reply.root != ids[len(ids)-1] {
		n.forget(f)
		if n.reply, err = newIncoming(task.round, ids, f.folder(n), f.bytes); err != nil {
			return nil, fault(err)
		}
	}
	for _, id := range ids {
		if n.reply.missing[id] {
			response.ObjectsToPush = append(response.ObjectsToPush, id.String())
		}
	}
	return response, nil
}

// PushObject takes an object of an answer. With the last one the answer is complete and becomes an update, and only when
// that is recorded does the SuperNode hear that the object is stored.
func (f *fleet) PushObject(ctx context.Context, request *protocol.PushObjectRequest) (*protocol.PushObjectResponse, error) {
	n, id, err := f.about(ctx, request)
	if err != nil {
		return nil, err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.reply == nil || !n.reply.expected[id] { // the last one may come twice, if the answer to it was lost
		return &protocol.PushObjectResponse{Stored: n.reply == nil && n.taken[id]}, nil
	}
	if err := n.reply.put(id, request.ObjectContent); err != nil {
		if refused := f.refuse(ctx, n.reply.round, n.member, err); refused != nil {
			return nil, fault(refused)
		}
		n.forget(f)
		return nil, fault(err)
	}
	if len(n.reply.missing) == 0 {
		if err := f.settle(ctx, n); err != nil {
			return nil, err
		}
	}
	return &protocol.PushObjectResponse{Stored: true}, nil
}

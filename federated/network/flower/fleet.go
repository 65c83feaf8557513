package flower

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"grange/federated/network"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
	"grange/federated/network/objects"
)

// fleet serves SuperNodes. All it knows of them it can find out again: after a restart of the coordinator a SuperNode's
// next call is answered as if nothing had been.
type fleet struct {
	protocol.UnimplementedFleetServer
	*Server
	app *app
	run uint64
	// limit is the number of objects in an answer, and bytes their size.
	limit int
	bytes int64

	mutex sync.Mutex
	nodes map[uint64]*node
	last  *arrays
	// over is set when the run is: SuperNodes go on asking, but have nothing to do with it any more.
	over bool
}

// node is one SuperNode.
type node struct {
	id     uint64
	member int

	// presence is guarded by the fleet's mutex: gone tells the federation, and timer that nothing was heard for long.
	gone     func()
	timer    *time.Timer
	interval time.Duration

	declared atomic.Bool

	mutex sync.Mutex
	task  *outgoing
	reply *incoming
	// taken are the objects of the last answer that became an update.
	taken map[record.ID]bool
}

func newFleet(s *Server) (*fleet, error) {
	f := &fleet{Server: s, nodes: map[uint64]*node{}}
	if s.options.Keys == nil || s.options.Folder == "" {
		return nil, fmt.Errorf("%w: SuperNodes need keys and a folder", ErrOptions)
	}
	var err error
	if f.app, err = parseApp(s.options.App); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(s.options.Folder); err != nil {
		return nil, fmt.Errorf("%w: %w", objects.ErrWrite, err)
	}
	// The run has another number if anything that a SuperNode keeps of it is another.
	about, err := json.Marshal([]any{s.federation.Config().Identity, s.federation.Config().Name, f.app.hash, s.options.RunConfig})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	sum := sha256.Sum256(about)
	f.run = binary.BigEndian.Uint64(sum[:])>>1 | 1
	values := s.layout.Size()
	f.bytes = 8*int64(values) + int64(len(s.layout.Arrays))<<15 + 4<<20
	f.limit = 64 + 4*len(s.layout.Arrays) + pieces(8*values)
	return f, nil
}

// caller is the SuperNode that calls, which says its number is id.
func (f *fleet) caller(ctx context.Context, id uint64) (*node, error) {
	n, err := f.enter(ctx)
	if err == nil && id != n.id {
		return nil, status.Error(codes.Unauthenticated, "the number of the SuperNode is not that of its key")
	}
	return n, err
}

// enter is the SuperNode that calls.
func (f *fleet) enter(ctx context.Context) (*node, error) {
	known, err := f.authenticate(ctx)
	if err != nil {
		return nil, err
	}
	member, err := f.federation.Member(known.Member)
	if err != nil {
		f.federation.TurnAway(known.Member)
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	n := f.present(known.ID, member)
	if !n.declared.Load() { // saying it twice does no harm
		if err := f.federation.Declare(ctx, f.declaration(member, "flower-fleet", "")); err != nil {
			return nil, fault(err)
		}
		n.declared.Store(true)
		f.options.Log.Info("A SuperNode has come", "member", known.Member, "node", known.ID)
	}
	return n, nil
}

// fault is an error as a SuperNode is told it. It tries again after those that are not its own.
func fault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case network.FaultOf(err) == network.Ours:
		return status.Error(codes.Unavailable, err.Error())
	}
	return status.Error(codes.FailedPrecondition, err.Error())
}

// defaultInterval is how often a SuperNode is heard of, if it does not say.
const defaultInterval = 30 * time.Second

// present notes that a SuperNode is there.
func (f *fleet) present(id uint64, member int) *node {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	n := f.nodes[id]
	if n == nil || n.member != member {
		n = &node{id: id, member: member, interval: defaultInterval}
		f.nodes[id] = n
	}
	if f.over {
		return n
	}
	if n.gone == nil {
		n.gone = f.federation.Connect(member)
		n.timer = time.AfterFunc(3*n.interval, func() { f.absent(n) })
	}
	n.timer.Reset(3 * n.interval)
	return n
}

// absent notes that a SuperNode is not there any more.
func (f *fleet) absent(n *node) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if n.gone != nil {
		n.timer.Stop()
		n.gone()
		n.gone = nil
	}
}

func (f *fleet) close() {
	f.mutex.Lock()
	nodes := f.nodes
	f.nodes = map[uint64]*node{}
	f.mutex.Unlock()
	for _, n := range nodes {
		f.absent(n)
	}
}

// interval takes over how often a SuperNode wants to be heard of.
func (f *fleet) interval(n *node, seconds float64) error {
	if !(seconds >= 1 && seconds <= 3600) {
		return status.Errorf(codes.InvalidArgument, "a heartbeat every %v s, expected 1 to 3600", seconds)
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	n.interval = time.Duration(seconds * float64(time.Second))
	if n.gone != nil {
		n.timer.Reset(3 * n.interval)
	}
	return nil
}

// cut is the model of a task as objects; the last one is kept.
func (f *fleet) cut(next network.Assignment) *arrays {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.last == nil || f.last.digest != next.Model {
		f.last = f.cutArrays(f.models.get(next.Model, next.Task.Global))
	}
	return f.last
}

// current is the task of a SuperNode, for which it waits until ctx is done: nil if there is none. The node is locked.
func (f *fleet) current(ctx context.Context, n *node) (*outgoing, error) {
	n.mutex.Unlock()
	next, err := f.federation.Next(ctx, n.member)
	n.mutex.Lock()
	waited := ctx.Err() != nil
	switch {
	case err != nil && !waited:
		return nil, fault(err)
	case err != nil: // nothing to do until now
		return nil, nil //nolint:nilerr // that is no error
	case next.Done:
		f.mutex.Lock()
		f.over = true
		f.mutex.Unlock()
		f.absent(n)
		return nil, nil
	}
	if n.task != nil && n.task.round == next.Task.Round && n.task.arrays.digest == next.Model {
		return n.task, nil
	}
	n.forget(f)
	if n.task, err = f.compose(next, n.id); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return n.task, nil
}

// forget drops what is there of an answer. The node is locked.
func (n *node) forget(f *fleet) {
	if n.reply != nil {
		if err := n.reply.remove(); err != nil {
			f.options.Log.Warn("Pieces of an update cannot be removed", "error", err.Error())
		}
		n.reply = nil
	}
}

// folder is where the pieces of a SuperNode's answer are.
func (f *fleet) folder(n *node) string {
	return filepath.Join(f.options.Folder, strconv.FormatUint(n.id, 10))
}

// settle makes an answer whose objects are all there an update. The node is locked.
func (f *fleet) settle(ctx context.Context, n *node) error {
	in := n.reply
	u, err := in.read(f.Server, n.task.message.Metadata.MessageId)
	switch err = reply(err); {
	case err != nil:
		err = f.refuse(ctx, in.round, n.member, err)
	case u.failed != "":
		err = settled(f.federation.Fail(ctx, in.round, n.member, u.failed))
	default:
		err = f.deliver(ctx, in.round, n.member, u.examples, loss(u.metrics), func() (objects.Digest, error) {
			return f.models.store(f.federation.Objects(), in.files(f.Server, u))
		})
	}
	if err != nil {
		return fault(err)
	}
	n.taken = in.expected
	n.forget(f)
	return nil
}

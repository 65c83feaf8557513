package coordinator

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"grange/federated/network/listen"
)

// What strangers are refused for, and what an operator can do about it.
const (
	noPlain  = "a connection without TLS was refused; for Flower's start_client start with --flower NAME"
	noSeats  = "a client of Flower's start_client was refused; start with --flower NAME"
	noFleet  = "a Flower SuperNode was refused; start with --flower-app APP.fab"
	noMember = "a call was refused"
)

// complaints logs what strangers are refused for: once an hour for each thing and host, and only so many an hour, so that
// nobody fills the log. The zero value needs a log.
type complaints struct {
	log   *slog.Logger
	mutex sync.Mutex
	// told is when something was last logged, by host and what it is.
	told map[[2]string]time.Time
}

const (
	complainEvery = time.Hour
	maxComplaints = 100
)

// about logs a complaint about somebody at an address.
func (c *complaints) about(from, what string, args ...any) {
	host := from
	if address, err := netip.ParseAddrPort(from); err == nil {
		host = address.Addr().Unmap().String()
	}
	now := time.Now()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	key := [2]string{host, what}
	if at, before := c.told[key]; before && now.Sub(at) < complainEvery {
		return
	}
	if len(c.told) >= maxComplaints {
		for other, at := range c.told {
			if now.Sub(at) >= complainEvery {
				delete(c.told, other)
			}
		}
	}
	if len(c.told) >= maxComplaints {
		return
	}
	if c.told == nil {
		c.told = map[[2]string]time.Time{}
	}
	c.told[key] = now
	c.log.Warn(what, append([]any{"from", host}, args...)...)
	if len(c.told) == maxComplaints {
		c.log.Warn("refusals of others are not logged for a while")
	}
}

// unknownCall answers calls of services that are not offered: those of Flower's clients with what is missing.
func (c *Coordinator) unknownCall(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var what string
	switch {
	case strings.HasPrefix(method, "/flwr.proto.FlowerService/"):
		what = noSeats
	case strings.HasPrefix(method, "/flwr.proto.Fleet/"):
		what = noFleet
	default:
		return status.Error(codes.Unimplemented, "there is no such service here")
	}
	if from, ok := peer.FromContext(stream.Context()); ok {
		c.complaints.about(from.Addr.String(), what)
	}
	return status.Error(codes.FailedPrecondition, "the coordinator says: "+what)
}

// noFleetHere answers SuperNodes that use HTTP where none are let in, in the words that they print.
func (c *Coordinator) noFleetHere(w http.ResponseWriter, r *http.Request) {
	c.complaints.about(r.RemoteAddr, noFleet)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusPreconditionFailed)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": int(codes.FailedPrecondition), "detail": "the coordinator says: " + noFleet})
}

// refused counts connections that were hung up on, and says what may help those that look like somebody's mistake.
func (c *Coordinator) refused(from net.Addr, reason error) {
	c.metrics.hungUp.Inc()
	c.config.Log.Debug("hung up", "from", from, "reason", reason)
	if errors.Is(reason, listen.ErrPlain) {
		c.complaints.about(from.String(), noPlain)
	}
}

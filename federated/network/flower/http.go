package flower

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"grange/federated/network/flower/protocol"
)

// mediaType is that of a protobuf message.
const mediaType = "application/protobuf"

// handler serves the calls of Fleet over HTTP: a POST with the request, answered with the response.
func (f *fleet) handler() http.Handler {
	mux := http.NewServeMux()
	call(f, mux, "register-node", f.RegisterNode)
	call(f, mux, "activate-node", f.ActivateNode)
	call(f, mux, "deactivate-node", f.DeactivateNode)
	call(f, mux, "unregister-node", f.UnregisterNode)
	call(f, mux, "send-node-heartbeat", f.SendNodeHeartbeat)
	call(f, mux, "pull-messages", f.PullMessages)
	call(f, mux, "push-messages", f.PushMessages)
	call(f, mux, "get-run", f.GetRun)
	call(f, mux, "get-fab", f.GetFab)
	call(f, mux, "push-object", f.PushObject)
	call(f, mux, "pull-object", f.PullObject)
	call(f, mux, "confirm-message-received", f.ConfirmMessageReceived)
	return mux
}

// message is a pointer to a protobuf message.
type message[T any] interface {
	*T
	proto.Message
}

// call serves one call.
func call[T any, Request message[T], Response proto.Message](f *fleet, mux *http.ServeMux, path string,
	method func(context.Context, Request) (Response, error)) {
	mux.HandleFunc("POST /v1/fleet/"+path, func(w http.ResponseWriter, r *http.Request) {
		ctx := signed(r)
		known, err := f.authenticate(ctx) // before anything is read from somebody nobody knows
		if err != nil {
			tell(w, err)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, fleetMessage))
		if err != nil {
			tell(w, status.Error(codes.ResourceExhausted, "the request is too large, or broke off"))
			return
		}
		request := Request(new(T))
		if err := proto.Unmarshal(body, request); err != nil {
			tell(w, status.Error(codes.InvalidArgument, "the request is no message"))
			return
		}
		response, err := method(context.WithValue(ctx, knownKey{}, known), request)
		if err != nil {
			tell(w, err)
			return
		}
		content, err := proto.Marshal(response)
		if err != nil {
			tell(w, status.Error(codes.Internal, err.Error()))
			return
		}
		w.Header().Set("Content-Type", mediaType)
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		_, _ = w.Write(content) // a client that has gone will ask again
	})
}

// signed is the context of a request with its signature where gRPC has it.
func signed(r *http.Request) context.Context {
	given := metadata.MD{}
	for header, name := range map[string]string{"flwr-public-key": metadataKey, "flwr-signature": metadataSignature} {
		if value, err := base64.StdEncoding.DecodeString(r.Header.Get(header)); err == nil && len(value) > 0 {
			given.Set(name, string(value))
		}
	}
	if value := r.Header.Get(metadataTime); value != "" {
		given.Set(metadataTime, value)
	}
	return metadata.NewIncomingContext(r.Context(), given)
}

// statuses are what SuperNodes are told over HTTP: they try again after 503, drop a run after 403, and stop at once after
// 401, without a word to anybody; after others they say what they were told.
var statuses = map[codes.Code]int{
	codes.Unavailable: http.StatusServiceUnavailable, codes.Canceled: http.StatusServiceUnavailable,
	codes.PermissionDenied: http.StatusForbidden, codes.Unauthenticated: http.StatusPreconditionFailed,
	codes.FailedPrecondition: http.StatusPreconditionFailed, codes.InvalidArgument: http.StatusBadRequest,
	codes.ResourceExhausted: http.StatusRequestEntityTooLarge,
}

// tell answers with an error, in the words that SuperNodes print.
func tell(w http.ResponseWriter, err error) {
	s, _ := status.FromError(err)
	code, ok := statuses[s.Code()]
	if !ok {
		code = http.StatusInternalServerError
	}
	if errors.Is(err, context.Canceled) {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"code": int(s.Code()), "detail": s.Message()})
}

// decimal is how TOML writes a number: decimal, or inf or nan in lower case.
var decimal = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|inf|nan)$`)

// scalar is a setting of an app, written as in flwr run --run-config, which is TOML; what is neither number nor true or
// false is a text and needs no quotes.
func scalar(text string) *protocol.Scalar {
	if text == "true" || text == "false" {
		return &protocol.Scalar{Scalar: &protocol.Scalar_Bool{Bool: text == "true"}}
	}
	if decimal.MatchString(text) {
		if value, err := strconv.ParseInt(text, 10, 64); err == nil {
			return &protocol.Scalar{Scalar: &protocol.Scalar_Sint64{Sint64: value}}
		}
		if value, err := strconv.ParseFloat(strings.Replace(text, "nan", "NaN", 1), 64); err == nil {
			return &protocol.Scalar{Scalar: &protocol.Scalar_Double{Double: value}}
		}
	}
	return &protocol.Scalar{Scalar: &protocol.Scalar_String_{String_: text}}
}

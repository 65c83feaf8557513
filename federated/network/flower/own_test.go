package flower

import (
	"math"
	"os"
	"testing"

	"grange/federated/network"
	"grange/federated/network/flower/protocol"
	"grange/federated/network/flower/record"
)

// Settings are what TOML makes of them, and everything else is a text.
func TestScalar(t *testing.T) {
	for text, want := range map[string]any{
		"3": int64(3), "-3": int64(-3), "0.5": 0.5, "1e-3": 1e-3, "inf": math.Inf(1), "-inf": math.Inf(-1), "true": true, "false": false,
		"T": "T", "t": "t", "F": "F", "True": "True", "TRUE": "TRUE", "Inf": "Inf", "infinity": "infinity", "NaN": "NaN", "0x10": "0x10",
		"0x1p-2": "0x1p-2", ".5": ".5", "1_000": "1_000", "": "", "sgd": "sgd",
	} {
		s := scalar(text)
		var got any
		switch s := s.GetScalar().(type) {
		case *protocol.Scalar_Sint64:
			got = s.Sint64
		case *protocol.Scalar_Double:
			got = s.Double
		case *protocol.Scalar_Bool:
			got = s.Bool
		case *protocol.Scalar_String_:
			got = s.String_
		}
		if got != want {
			t.Errorf("%q is %T %v, want %T %v", text, got, got, want, want)
		}
	}
}

// A piece of an answer that cannot be read is not the client's fault, one that is no object is.
func TestWhoseFault(t *testing.T) {
	content := []byte("no object at all")
	id := record.Name(content)
	in, err := newIncoming(1, []record.ID{id}, t.TempDir(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := in.put(id, content); err != nil {
		t.Fatal(err)
	}
	if _, err := in.read(nil, ""); err == nil || network.FaultOf(reply(err)) != network.Theirs {
		t.Errorf("nonsense: %v", err)
	}
	if err := os.Remove(in.path(id)); err != nil {
		t.Fatal(err)
	}
	if _, err := in.read(nil, ""); err == nil || network.FaultOf(reply(err)) != network.Ours {
		t.Errorf("a file that is gone: %v", err)
	}
}

package xla

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

func TestMessages(t *testing.T) {
	var pipe bytes.Buffer
	for _, parts := range [][][]byte{nil, {{}}, {{1, 2, 3}, nil, make([]byte, 1<<17)}} {
		if err := send(&pipe, message{head: header{Kind: kindTrain, Momentum: true}, parts: parts}); err != nil {
			t.Fatal(err)
		}
		got, err := receive(&pipe)
		if err != nil || got.head.Kind != kindTrain || !got.head.Momentum || len(got.parts) != len(parts) {
			t.Fatalf("%+v, %v", got.head, err)
		}
		for i, part := range parts {
			if !bytes.Equal(got.parts[i], part) {
				t.Errorf("part %d changed", i)
			}
		}
	}
	if _, err := receive(&pipe); !errors.Is(err, io.EOF) || errors.Is(err, errProtocol) {
		t.Errorf("at the end: %v", err)
	}
	if _, err := numbersOf[float32]([]byte{1, 2, 3}); !errors.Is(err, errProtocol) {
		t.Errorf("three bytes: %v", err)
	}
}

// FuzzServe gives a worker any bytes: it must answer or stop, not crash.
func FuzzServe(f *testing.F) {
	add := func(m message) {
		var b bytes.Buffer
		if err := send(&b, m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	add(message{head: header{Kind: kindSetup}})
	add(message{head: header{Kind: kindTrain}, parts: [][]byte{{1, 2, 3, 4}, nil, nil, nil}})
	add(message{head: header{Kind: "dance"}})
	f.Add([]byte("GLX1\xff\xff\xff\xff"))
	f.Add([]byte("GL"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		err := serve(bytes.NewReader(data), &out, deaf{})
		if err != nil && !errors.Is(err, errProtocol) {
			t.Errorf("%v", err)
		}
		for {
			answer, err := receive(&out)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil || answer.head.Kind != kindDone && answer.head.Kind != kindFailed {
				t.Fatalf("%+v, %v", answer.head, err)
			}
		}
	})
}

// deaf is a machine that does nothing.
type deaf struct{}

func (deaf) setup(setup, []byte, []byte, []float32) (string, error) { return "", nil }
func (deaf) prepare(bool, bool) error                               { return nil }
func (deaf) train(t task) ([]float32, []float32, error)             { return t.weights, nil, nil }
func (deaf) score(t task) ([]int32, []float32, error)               { return t.counts, nil, nil }

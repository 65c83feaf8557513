package xla

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"grange/model"
	"grange/train/xla/program"
)

// errProtocol is a message that is not one.
var errProtocol = errors.New("xla: malformed message")

// kind says what a message is.
type kind string

const (
	kindSetup   kind = "setup"   // parent to worker: parts are the training images, the test images and the scale
	kindPrepare kind = "prepare" // have the programs for a task ready
	kindTrain   kind = "train"   // parts: weights, points, labels, counts; answered with weights, losses
	kindScore   kind = "score"   // the same parts; answered with hits, losses
	kindDone    kind = "done"    // worker to parent
	kindFailed  kind = "failed"
)

// header is the part of a message that is text.
type header struct {
	Kind  kind   `json:"kind"`
	Setup *setup `json:"setup,omitempty"`
	// Momentum, Proximal and Rates are a task's.
	Momentum bool                   `json:"momentum,omitempty"`
	Proximal bool                   `json:"proximal,omitempty"`
	Rates    [program.Rates]float32 `json:"rates"`
	// Version is what the plugin says of itself, in the answer to a setup.
	Version string `json:"version,omitempty"`
	// Problem and Reason are what went wrong.
	Problem string `json:"problem,omitempty"`
	Reason  reason `json:"reason,omitempty"`
	// Parts are the lengths of the parts in bytes.
	Parts []int `json:"parts,omitempty"`
}

// reason sorts what went wrong in a worker.
type reason string

const (
	reasonMemory      reason = "memory"
	reasonPlugin      reason = "plugin"
	reasonUnsupported reason = "unsupported"
)

// setup is all that a worker must know before its first task.
type setup struct {
	Spec        model.Spec        `json:"spec"`
	Precision   program.Precision `json:"precision"`
	Batch       int               `json:"batch"`
	Steps       int               `json:"steps"`
	TrainImages int               `json:"train_images"`
	TestImages  int               `json:"test_images"`
	Plugin      string            `json:"plugin"`
	Cache       string            `json:"cache"`
}

// message is what parent and worker send each other.
type message struct {
	head  header
	parts [][]byte
}

// limits of a message, so that a stray byte cannot ask for all memory.
const (
	maxHead = 1 << 24
	maxPart = 1 << 36
)

// magic begins every message.
const magic = 0x31584c47 // "GLX1"

// send writes a message.
func send(w io.Writer, m message) error {
	m.head.Parts = make([]int, len(m.parts))
	for i, part := range m.parts {
		m.head.Parts[i] = len(part)
	}
	head, err := json.Marshal(m.head)
	if err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	start := binary.LittleEndian.AppendUint32(nil, magic)
	start = binary.LittleEndian.AppendUint32(start, uint32(len(head)))
	if _, err := w.Write(append(start, head...)); err != nil {
		return err
	}
	for _, part := range m.parts {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	return nil
}

// receive reads a message. The end of the input before its first byte is io.EOF.
func receive(r io.Reader) (message, error) {
	var m message
	var start [8]byte
	if n, err := io.ReadFull(r, start[:]); err != nil {
		if n == 0 {
			return m, err
		}
		return m, fmt.Errorf("%w: %w", errProtocol, err)
	}
	size := binary.LittleEndian.Uint32(start[4:])
	if binary.LittleEndian.Uint32(start[:]) != magic || size > maxHead {
		return m, fmt.Errorf("%w: it begins with % x", errProtocol, start)
	}
	head, err := readPart(r, int64(size))
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(head, &m.head); err != nil {
		return m, fmt.Errorf("%w: %w", errProtocol, err)
	}
	for _, length := range m.head.Parts {
		if length < 0 || length > maxPart {
			return m, fmt.Errorf("%w: a part of %d bytes", errProtocol, length)
		}
		part, err := readPart(r, int64(length))
		if err != nil {
			return m, err
		}
		m.parts = append(m.parts, part)
	}
	return m, nil
}

// readPart reads exactly size bytes. Memory grows with what really arrives.
func readPart(r io.Reader, size int64) ([]byte, error) {
	const first = 64 << 20
	buffer := make([]byte, min(size, first))
	for read := int64(0); ; {
		n, err := io.ReadFull(r, buffer[read:])
		read += int64(n)
		if err != nil {
			return nil, fmt.Errorf("%w: it ends after %d of %d bytes", errProtocol, read, size)
		}
		if read == size {
			return buffer, nil
		}
		grown := make([]byte, min(size, 2*read))
		copy(grown, buffer)
		buffer = grown
	}
}

// bytesOf is the memory of numbers. Both ends of a pipe are the same program on the same machine, so its byte order does
// not matter.
func bytesOf[N int32 | float32](numbers []N) []byte {
	if len(numbers) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&numbers[0])), len(numbers)*int(unsafe.Sizeof(numbers[0])))
}

// numbersOf copies bytes into numbers.
func numbersOf[N int32 | float32](bytes []byte) ([]N, error) {
	if len(bytes)%4 != 0 {
		return nil, fmt.Errorf("%w: %d bytes are no whole numbers", errProtocol, len(bytes))
	}
	numbers := make([]N, len(bytes)/4)
	copy(bytesOf(numbers), bytes)
	return numbers, nil
}

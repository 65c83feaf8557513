package npy

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The files in testdata were written by numpy (testdata/write.py); their names say what they hold.
func TestNumpyFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.npy")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(name, ".npy") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		header, start, err := Parse(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		values := make([]byte, 4*header.Values())
		if err := header.Decode(values, file[start:]); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		words := strings.Fields(string(want))
		if len(words) != header.Values() {
			t.Errorf("%s: %d values, expected %d", name, header.Values(), len(words))
			continue
		}
		for i, word := range words {
			expected, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			got := math.Float32frombits(binary.LittleEndian.Uint32(values[4*i:]))
			if got != float32(expected) && !(math.IsNaN(expected) && got != got) {
				t.Errorf("%s: value %d is %v, expected %v", name, i, got, expected)
			}
		}
	}
}

func TestWhatIsWritten(t *testing.T) {
	for _, shape := range [][]int{{}, {3}, {2, 3}, {64, 3, 3, 3}, {0}} {
		file := AppendHeader([]byte("before"), Float32, shape)[len("before"):]
		if len(file)%64 != 0 || file[len(file)-1] != '\n' {
			t.Errorf("%v: %d bytes", shape, len(file))
		}
		header, start, err := Parse(file)
		if err != nil || start != len(file) || !slices.Equal(header.Shape, shape) || !header.Plain() {
			t.Errorf("%v: %+v, %d, %v", shape, header, start, err)
		}
	}
}

func TestRefused(t *testing.T) {
	describe := func(text string) []byte {
		file := append([]byte(magic), 1, 0)
		return append(binary.LittleEndian.AppendUint16(file, uint16(len(text))), text...)
	}
	for name, file := range map[string][]byte{
		"nothing":     nil,
		"text":        []byte("hello, this is no array"),
		"version":     append([]byte(magic), 4, 0, 0, 0, 0, 0),
		"long":        append([]byte(magic), 2, 0, 0xff, 0xff, 0xff, 0xff),
		"broken off":  append([]byte(magic), 1, 0, 50, 0, '{'),
		"objects":     describe("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n"),
		"object size": describe("{'descr': '|O8', 'fortran_order': False, 'shape': (3,), }\n"),
		"complex":     describe("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }\n"),
		"text array":  describe("{'descr': '<U4', 'fortran_order': False, 'shape': (3,), }\n"),
		"structure":   describe("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }\n"),
		"no order":    describe("{'descr': '|f4', 'fortran_order': False, 'shape': (3,), }\n"),
		"twice":       describe("{'descr': '<f4', 'descr': '<f4', 'shape': (3,), }\n"),
		"missing":     describe("{'descr': '<f4', 'shape': (3,), }\n"),
		"more":        describe("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}\n"),
		"after":       describe("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), } + 1\n"),
		"negative":    describe("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }\n"),
		"overflow":    describe("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }\n"),
		"no tuple":    describe("{'descr': '<f4', 'fortran_order': False, 'shape': (3), }\n"),
	} {
		if _, _, err := Parse(file); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	header := Header{Type: Float32, Shape: []int{3}}
	if err := header.Decode(make([]byte, 12), make([]byte, 11)); !errors.Is(err, ErrFormat) {
		t.Errorf("short: %v", err)
	}
}

// FuzzParse reads any bytes as an array, and what it takes for one is one.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.npy")
	for _, name := range files {
		if file, err := os.ReadFile(name); err == nil {
			f.Add(file)
		}
	}
	f.Add(AppendHeader(nil, Int64, nil))
	f.Fuzz(func(t *testing.T, file []byte) {
		header, start, err := Parse(file)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
			return
		}
		if start > len(file) || header.Values() < 0 {
			t.Fatalf("%+v begins at %d of %d", header, start, len(file))
		}
		if header.Values() > len(file) {
			return
		}
		values := make([]byte, 4*header.Values())
		if err := header.Decode(values, file[start:]); err == nil && !header.Fortran {
			again, at, err := Parse(AppendHeader(nil, header.Type, header.Shape))
			if err != nil || at == 0 || again.Type != header.Type || !slices.Equal(again.Shape, header.Shape) {
				t.Fatalf("%+v became %+v: %v", header, again, err)
			}
		}
	})
}

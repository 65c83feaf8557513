package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWrite reads a pack back: its parts, put together, are an archive of the files, and none is too large.
func TestWrite(t *testing.T) {
	from := t.TempDir()
	want := map[string]string{"program": "\x7fELF", "data/set/a": "first", "data/set/deep/b": string(make([]byte, 5000))}
	for name, text := range map[string]string{"program": want["program"], "set/a": "first", "set/deep/b": want["data/set/deep/b"]} {
		file := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := []File{{"program", filepath.Join(from, "program")}, {"data/set", filepath.Join(from, "set")}}
	var before []Part
	for _, name := range []string{"one", "two"} {
		folder := filepath.Join(t.TempDir(), name)
		parts, err := Write(folder, 1000, files)
		if err != nil {
			t.Fatal(err)
		}
		got := unpack(t, folder, parts)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if before != nil && !cmp.Equal(before, parts) {
			t.Error("the same files are packed differently")
		}
		before = parts
	}
}

// unpack reads the files in the parts of a pack, none of which is longer than 1000 bytes.
func unpack(t *testing.T, folder string, parts []Part) map[string]string {
	t.Helper()
	var whole []byte
	for _, part := range parts {
		text, err := os.ReadFile(filepath.Join(folder, part.Name))
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(text)) != part.Size || len(text) > 1000 {
			t.Errorf("%s has %d bytes and should have %d", part.Name, len(text), part.Size)
		}
		whole = append(whole, text...)
	}
	got := map[string]string{}
	for archive := tar.NewReader(bytes.NewReader(whole)); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		got[header.Name] = string(text)
	}
}

// TestLinks packs what links lead to, wherever they are, and refuses those that lead back.
func TestLinks(t *testing.T) {
	from := t.TempDir()
	for name, text := range map[string]string{"elsewhere/set/a": "first", "elsewhere/more/b": "second", "c": "third"} {
		file := filepath.Join(from, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(from, name)); err != nil {
			t.Fatal(err)
		}
	}
	link(filepath.Join("elsewhere", "set"), "set")
	link(filepath.Join("..", "more"), "elsewhere/set/more")
	link(filepath.Join("..", "..", "c"), "elsewhere/set/c")
	files := []File{{"data/set", filepath.Join(from, "set")}}
	folder := filepath.Join(t.TempDir(), "out")
	parts, err := Write(folder, 1000, files)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"data/set/a": "first", "data/set/more/b": "second", "data/set/c": "third"}
	if diff := cmp.Diff(want, unpack(t, folder, parts)); diff != "" {
		t.Error(diff)
	}
	link("..", "elsewhere/more/back")
	if _, err := Write(filepath.Join(t.TempDir(), "out"), 1000, files); !errors.Is(err, ErrKind) {
		t.Errorf("a circle: %v", err)
	}
}

// TestWriteFails leaves nothing behind.
func TestWriteFails(t *testing.T) {
	folder := t.TempDir()
	if _, err := Write(filepath.Join(folder, "out"), 1000, []File{{"a", filepath.Join(folder, "nothing")}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, error %v", left, err)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]int64{"60MB": 60_000_000, "64MiB": 64 << 20, "1.5 GB": 1_500_000_000, "1kB": 1000, "2000B": 2000} {
		if got, err := Size(text); got != want || err != nil {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "60", "MB", "-1MB", "1B", "NaNMB", "1e30GB", "60 megabytes"} {
		if got, err := Size(text); !errors.Is(err, ErrSize) {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
}

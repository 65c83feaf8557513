package objects_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"testing"

	"grange/federated/network/objects"
)

func open(t *testing.T) (*objects.Store, string) {
	t.Helper()
	folder := t.TempDir()
	store, err := objects.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	return store, folder
}

func put(t *testing.T, store *objects.Store, content []byte) objects.Digest {
	t.Helper()
	digest, err := store.Put(func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func read(t *testing.T, store *objects.Store, digest objects.Digest) []byte {
	t.Helper()
	file, err := store.Open(digest)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestPut(t *testing.T) {
	store, folder := open(t)
	content := []byte("weights")
	digest := put(t, store, content)
	if digest != objects.Digest(sha256.Sum256(content)) {
		t.Errorf("digest %s", digest)
	}
	if !bytes.Equal(read(t, store, digest), content) {
		t.Error("other contents")
	}
	if size, err := store.Size(digest); err != nil || size != 7 {
		t.Errorf("size %d, %v", size, err)
	}
	if err := store.Check(digest); err != nil {
		t.Error(err)
	}
	name := digest.String()
	if err := os.WriteFile(filepath.Join(folder, "objects", name[:2], name[2:]), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := store.Check(digest); !errors.Is(err, objects.ErrDigest) {
		t.Errorf("a changed file: %v", err)
	}
}

// TestPutFails leaves nothing behind.
func TestPutFails(t *testing.T) {
	store, folder := open(t)
	full := errors.New("no space left on device")
	if _, err := store.Put(func(io.Writer) error { return full }); !errors.Is(err, full) || !errors.Is(err, objects.ErrWrite) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(folder, "partial")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// TestReceive breaks off an upload and goes on with it, as after a restart.
func TestReceive(t *testing.T) {
	store, folder := open(t)
	content := []byte("a model in two pieces")
	digest := objects.Digest(sha256.Sum256(content))
	first, err := store.Receive("north", "ticket", int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Add(0, content[:8]); err != nil {
		t.Fatal(err)
	}
	if err := first.Add(4, content[4:]); !errors.Is(err, objects.ErrOffset) {
		t.Errorf("a piece again: %v", err)
	}
	if _, err := store.Receive("north", "ticket", int64(len(content))); !errors.Is(err, objects.ErrBusy) {
		t.Errorf("twice at once: %v", err)
	}
	if _, err := first.Commit(checksum(content)); !errors.Is(err, objects.ErrOffset) {
		t.Errorf("half an object: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(digest); !errors.Is(err, objects.ErrMissing) {
		t.Errorf("half an object is there: %v", err)
	}
	if store, err = objects.Open(folder); err != nil {
		t.Fatal(err)
	}
	second, err := store.Receive("north", "ticket", int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if second.Offset() != 8 {
		t.Fatalf("%d bytes are there, want 8", second.Offset())
	}
	if err := second.Add(8, append(bytes.Clone(content[8:]), '!')); !errors.Is(err, objects.ErrSize) {
		t.Errorf("too much: %v", err)
	}
	if err := second.Add(8, content[8:]); err != nil {
		t.Fatal(err)
	}
	if got, err := second.Commit(checksum(content)); err != nil || got != digest {
		t.Fatalf("committed as %s, %v", got, err)
	}
	if !bytes.Equal(read(t, store, digest), content) {
		t.Error("other contents")
	}
}

// TestReceiveWrong throws away what is not what was announced, so that the next attempt begins afresh.
func TestReceiveWrong(t *testing.T) {
	store, _ := open(t)
	partial, err := store.Receive("north", "ticket", 5)
	if err != nil {
		t.Fatal(err)
	}
	if err := partial.Add(0, []byte("wrong")); err != nil {
		t.Fatal(err)
	}
	if _, err := partial.Commit(checksum([]byte("right"))); !errors.Is(err, objects.ErrDigest) {
		t.Errorf("got %v", err)
	}
	if err := partial.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := store.Receive("north", "ticket", 5)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Offset() != 0 {
		t.Errorf("%d bytes are there, want none", again.Offset())
	}
}

// TestOtherTicket throws away what its owner does not go on with, and nothing else.
func TestOtherTicket(t *testing.T) {
	store, folder := open(t)
	begin := func(owner, ticket string) *objects.Partial {
		partial, err := store.Receive(owner, ticket, 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := partial.Add(partial.Offset(), []byte("ab")); err != nil {
			t.Fatal(err)
		}
		return partial
	}
	for _, owner := range []string{"north", "south"} {
		for _, ticket := range []string{"1", "2", "3"} {
			if err := begin(owner, ticket).Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if left, err := os.ReadDir(filepath.Join(folder, "partial")); err != nil || len(left) != 2 {
		t.Errorf("%d are left, want one of each owner; %v", len(left), err)
	}
	open := begin("north", "3")
	defer open.Close()
	if open.Offset() != 4 {
		t.Errorf("%d bytes are there, want 4", open.Offset())
	}
	if _, err := store.Receive("north", "4", 5); !errors.Is(err, objects.ErrBusy) {
		t.Errorf("two at once: %v", err)
	}
}

func checksum(content []byte) uint32 {
	return crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))
}

// TestOwners keeps what one sends apart from what another does, even under the same ticket.
func TestOwners(t *testing.T) {
	store, _ := open(t)
	for _, owner := range []string{"north", "../south"} {
		partial, err := store.Receive(owner, "ticket", 4)
		if err != nil {
			t.Fatal(err)
		}
		defer partial.Close()
		if err := partial.Add(0, []byte("sa")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSweep(t *testing.T) {
	store, _ := open(t)
	keep, drop := put(t, store, []byte("keep")), put(t, store, []byte("drop"))
	if err := store.Sweep(func(d objects.Digest) bool { return d == keep }); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Size(keep); err != nil {
		t.Error(err)
	}
	if _, err := store.Size(drop); !errors.Is(err, objects.ErrMissing) {
		t.Errorf("swept object: %v", err)
	}
	if err := store.Remove(drop); err != nil {
		t.Errorf("removing what is not there: %v", err)
	}
}

func FuzzDigest(f *testing.F) {
	f.Add([]byte("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, text []byte) {
		var d objects.Digest
		if err := d.UnmarshalText(text); err != nil {
			if !errors.Is(err, objects.ErrDigest) {
				t.Error(err)
			}
			return
		}
		if back := d.String(); back != string(bytes.ToLower(text)) {
			t.Errorf("%q became %q", text, back)
		}
	})
}

// What is being written is not abandoned, however it is written.
func TestAbandonLeavesWhatIsBeingWritten(t *testing.T) {
	store, folder := open(t)
	left := filepath.Join(folder, "partial", "put-by-a-process-that-is-gone")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	partial, err := store.Receive("north", "ticket", 4)
	if err != nil {
		t.Fatal(err)
	}
	defer partial.Close()
	digest, err := store.Put(func(w io.Writer) error {
		if err := store.Abandon(); err != nil {
			return err
		}
		_, err := w.Write([]byte("weights"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, store, digest); string(got) != "weights" {
		t.Errorf("got %q", got)
	}
	if err := partial.Add(0, []byte("data")); err != nil {
		t.Error(err)
	}
	if digest, err = partial.Commit(crc32.Checksum([]byte("data"), crc32.MakeTable(crc32.Castagnoli))); err != nil {
		t.Fatal(err)
	}
	if got := read(t, store, digest); string(got) != "data" {
		t.Errorf("got %q", got)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what nobody writes is still there: %v", err)
	}
}

// A file that cannot be read is not one that is not there.
func TestUnreadable(t *testing.T) {
	store, folder := open(t)
	digest := put(t, store, []byte("weights"))
	name := digest.String()
	path := filepath.Join(folder, "objects", name[:2], name[2:])
	if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "within"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := store.Check(digest); !errors.Is(err, objects.ErrRead) {
		t.Errorf("got %v, want %v", err, objects.ErrRead)
	}
	if err := store.Remove(digest); !errors.Is(err, objects.ErrWrite) {
		t.Errorf("got %v, want %v", err, objects.ErrWrite)
	}
}

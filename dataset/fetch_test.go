package dataset

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// site is a server that can misbehave.
type site struct {
	*httptest.Server
	mutex    sync.Mutex
	files    map[string][]byte
	requests []string
	// cut, if above 0, is after how many bytes the next responses are cut off.
	cut int
	// cuts is how many responses are cut off.
	cuts int
}

func newSite(t *testing.T, files map[string][]byte) *site {
	s := &site{files: files}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.requests = append(s.requests, strings.TrimSpace(r.URL.Path+" "+r.Header.Get("Range")))
	contents, ok := s.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	if s.cuts > 0 {
		s.cuts--
		w.Header().Set("Content-Length", fmt.Sprint(len(contents)))
		_, _ = w.Write(contents[:s.cut])
		panic(http.ErrAbortHandler)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(contents))
}

func remote(name string, contents []byte, urls ...string) remoteFile {
	digest := sha256.Sum256(contents)
	return remoteFile{name: name, size: int64(len(contents)), sha256: hex.EncodeToString(digest[:]), urls: urls}
}

func contents(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(i * i >> 3)
	}
	return out
}

func fetcher(known map[string][]source) Fetcher {
	return Fetcher{Pause: time.Millisecond, known: known}
}

func TestFetch(t *testing.T) {
	a, b := contents(300_000), contents(1000)
	server := newSite(t, map[string][]byte{"/a": a, "/b": b})
	directory := t.TempDir()
	var progress []Progress
	f := fetcher(map[string][]source{"set": {{"the server", []remoteFile{
		remote("a.gz", a, server.URL+"/missing", server.URL+"/a"), remote("b.gz", b, server.URL+"/b"),
	}}}})
	f.Progress = func(p Progress) { progress = append(progress, p) }
	got, err := f.Fetch(context.Background(), "set", directory)
	if err != nil {
		t.Fatal(err)
	}
	if got.Folder != filepath.Join(directory, "set") || got.Source != "the server" || got.Downloaded != 301_000 {
		t.Errorf("result %+v", got)
	}
	for name, want := range map[string][]byte{"a.gz": a, "b.gz": b} {
		if there, err := os.ReadFile(filepath.Join(got.Folder, name)); err != nil || !bytes.Equal(there, want) {
			t.Errorf("%s: %d bytes, %v", name, len(there), err)
		}
	}
	if entries, _ := os.ReadDir(got.Folder); len(entries) != 2 {
		t.Errorf("%d files in the folder, expected 2", len(entries))
	}
	if last := progress[len(progress)-1]; last != (Progress{"b.gz", 1000, 1000}) {
		t.Errorf("last progress %+v", last)
	}
	requests := len(server.requests)
	if got, err = f.Fetch(context.Background(), "set", directory); err != nil || got.Downloaded != 0 || len(server.requests) != requests {
		t.Errorf("second fetch: %v, %d bytes, %d requests", err, got.Downloaded, len(server.requests)-requests)
	}
}

func TestFetchResumes(t *testing.T) {
	a := contents(300_000)
	server := newSite(t, map[string][]byte{"/a": a})
	server.cut, server.cuts = 100_000, 1
	known := map[string][]source{"set": {{"the server", []remoteFile{remote("a", a, server.URL+"/a")}}}}
	f := fetcher(known)
	f.Retries = -1
	directory := t.TempDir()
	if _, err := f.Fetch(context.Background(), "set", directory); !errors.Is(err, ErrDownload) {
		t.Fatalf("error %v, expected %q", err, ErrDownload)
	}
	part := filepath.Join(directory, "set", "a.part")
	if info, err := os.Stat(part); err != nil || info.Size() == 0 || info.Size() > 100_000 {
		t.Fatalf("no .part file of what arrived: %v", err)
	}
	info, _ := os.Stat(part)
	got, err := f.Fetch(context.Background(), "set", directory)
	if err != nil {
		t.Fatal(err)
	}
	if got.Downloaded != 300_000-info.Size() {
		t.Errorf("%d bytes transferred, expected the missing %d", got.Downloaded, 300_000-info.Size())
	}
	if want := fmt.Sprintf("/a bytes=%d-", info.Size()); server.requests[1] != want {
		t.Errorf("request %q, expected %q", server.requests[1], want)
	}
}

func TestFetchRetries(t *testing.T) {
	a := contents(300_000)
	server := newSite(t, map[string][]byte{"/a": a})
	server.cut, server.cuts = 50_000, 3
	f := fetcher(map[string][]source{"set": {{"the server", []remoteFile{remote("a", a, server.URL+"/a")}}}})
	if _, err := f.Fetch(context.Background(), "set", t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if len(server.requests) != 4 {
		t.Errorf("%d requests, expected 4", len(server.requests))
	}
}

func TestFetchOtherSource(t *testing.T) {
	a, b := contents(1000), contents(2000)
	server := newSite(t, map[string][]byte{"/b": b})
	f := fetcher(map[string][]source{"set": {
		{"first", []remoteFile{remote("a", a, server.URL+"/a")}},
		{"second", []remoteFile{remote("b", b, server.URL+"/b")}},
	}})
	got, err := f.Fetch(context.Background(), "set", t.TempDir())
	if err != nil || got.Source != "second" || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "404") {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFetchMirror(t *testing.T) {
	a, b := contents(1000), contents(2000)
	server := newSite(t, map[string][]byte{"/m/a": a, "/m/npm/-/b": b})
	second := remote("b", b, "http://192.0.2.1/b")
	second.mirrored = []string{"npm/-/b"}
	f := fetcher(map[string][]source{
		"one": {{"first", []remoteFile{remote("a", a, "http://192.0.2.1/a")}}},
		"two": {{"second", []remoteFile{second}}},
	})
	for _, f.Mirror = range []string{server.URL + "/m", server.URL + "/m/"} {
		for _, name := range []string{"one", "two"} {
			if _, err := f.Fetch(context.Background(), name, t.TempDir()); err != nil {
				t.Errorf("%s from %s: %v", name, f.Mirror, err)
			}
		}
	}
}

func TestFetchWrongContents(t *testing.T) {
	a := contents(1000)
	changed := bytes.Clone(a)
	changed[500]++
	server := newSite(t, map[string][]byte{"/changed": changed, "/longer": append(bytes.Clone(a), 0), "/shorter": a[:999]})
	for path, sentinel := range map[string]error{"/changed": ErrChecksum, "/longer": ErrChecksum, "/shorter": ErrDownload} {
		directory := t.TempDir()
		f := fetcher(map[string][]source{"set": {{"the server", []remoteFile{remote("a", a, server.URL+path)}}}})
		_, err := f.Fetch(context.Background(), "set", directory)
		if !errors.Is(err, sentinel) || !errors.Is(err, ErrDownload) {
			t.Errorf("%s: error %v, expected %q", path, err, sentinel)
		}
		if _, err := os.Stat(filepath.Join(directory, "set", "a")); err == nil {
			t.Errorf("%s: a file with the wrong contents is in place", path)
		}
	}
}

// A .part file of something else is noticed by the digest and thrown away.
func TestFetchWrongPart(t *testing.T) {
	a := contents(1000)
	server := newSite(t, map[string][]byte{"/a": a})
	for name, part := range map[string][]byte{
		"other contents": make([]byte, 400), "whole and wrong": make([]byte, 1000), "too long": make([]byte, 5000),
		"whole and right": a,
	} {
		directory := t.TempDir()
		if err := os.MkdirAll(filepath.Join(directory, "set"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(directory, "set", "a.part"), part, 0o666); err != nil {
			t.Fatal(err)
		}
		f := fetcher(map[string][]source{"set": {{"the server", []remoteFile{remote("a", a, server.URL+"/a")}}}})
		if _, err := f.Fetch(context.Background(), "set", directory); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if there, err := os.ReadFile(filepath.Join(directory, "set", "a")); err != nil || !bytes.Equal(there, a) {
			t.Errorf("%s: wrong contents (%v)", name, err)
		}
	}
}

func TestFetchStops(t *testing.T) {
	a := contents(1000)
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(a[:10])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer silent.Close()
	f := fetcher(map[string][]source{"set": {{"the server", []remoteFile{remote("a", a, silent.URL)}}}})
	f.Stall, f.Retries = 50*time.Millisecond, -1
	if _, err := f.Fetch(context.Background(), "set", t.TempDir()); err == nil || !strings.Contains(err.Error(), "nothing received for 50ms") {
		t.Errorf("stalled: error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.Stall = 0
	f.Progress = func(p Progress) {
		if p.Done > 0 {
			cancel()
		}
	}
	if _, err := f.Fetch(ctx, "set", t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
}

func TestFetchWithoutPlace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := (Fetcher{}).Fetch(context.Background(), "cifar10", file); err == nil || errors.Is(err, ErrDownload) {
		t.Errorf("error %v, expected one of this machine", err)
	}
	for _, name := range []string{"fashion", "mnist"} {
		if _, err := (Fetcher{}).Fetch(context.Background(), name, t.TempDir()); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// The table must be usable: every file has a size, a digest and a place.
func TestSources(t *testing.T) {
	for name, choices := range sources {
		for _, choice := range choices {
			for _, file := range choice.files {
				if digest, err := hex.DecodeString(file.sha256); err != nil || len(digest) != sha256.Size || file.size <= 0 || len(file.urls)+len(file.mirrored) == 0 {
					t.Errorf("%s: %s: incomplete", name, file.name)
				}
			}
		}
	}
}

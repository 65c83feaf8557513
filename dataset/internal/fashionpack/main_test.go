package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// originals are IDX files of n images, each filled with its number, of classes in turn.
func originals(n int) (images, labels []byte) {
	images, labels = make([]byte, 16), make([]byte, 8)
	for i := range n {
		images = append(images, bytes.Repeat([]byte{byte(i)}, side*side)...)
		labels = append(labels, byte(i%classes))
	}
	return images, labels
}

func TestPick(t *testing.T) {
	images, labels := originals(40)
	images, labels = pick(images, labels, 2)
	if len(images) != 16+20*side*side || len(labels) != 8+20 {
		t.Fatalf("%d bytes of images and %d of labels", len(images), len(labels))
	}
	if want := []byte{0, 0, 8, 3, 0, 0, 0, 20, 0, 0, 0, 28, 0, 0, 0, 28}; !bytes.Equal(images[:16], want) {
		t.Errorf("header % x, expected % x", images[:16], want)
	}
	for i, label := range labels[8:] {
		if int(label) != i%classes || images[16+i*side*side] != byte(i) {
			t.Errorf("image %d has label %d and is the original %d", i, label, images[16+i*side*side])
		}
	}
}

func TestWriteAndCompare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gz")
	if err := write(path, []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := compare(path, []byte("hello")); err != nil {
		t.Error(err)
	}
	if err := compare(path, []byte("hullo")); err == nil || !strings.Contains(err.Error(), "go generate") {
		t.Errorf("error %v", err)
	}
}

func TestOriginalsAreChecked(t *testing.T) {
	folder := t.TempDir()
	if err := run("", folder, false); err == nil {
		t.Error("no folder, no error")
	}
	if err := run(folder, folder, false); err == nil {
		t.Error("an empty folder, no error")
	}
	if err := write(filepath.Join(folder, "train-images-idx3-ubyte.gz"), []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := run(folder, folder, false); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("error %v", err)
	}
}

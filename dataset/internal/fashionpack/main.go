// Command fashionpack makes the built-in part of Fashion-MNIST from the original files.
//
// It takes the first images of each class in their original order, 1,000 from the training files and 200 from the test
// files, and writes them as gzip-compressed IDX files of the original names. The result depends on nothing but the
// originals, whose decompressed contents are checked against their known SHA-256 digests first. With -check it writes
// nothing and fails if the files there hold anything else.
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	classes  = 10
	side     = 28
	maxBytes = 60_000*side*side + 16
)

// set is one pair of files, how many images of each class are taken from it, and the digests of the originals.
type set struct {
	images, labels             string
	perClass                   int
	imagesDigest, labelsDigest string
}

var sets = []set{
	{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", 1000, "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888", "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
	{"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte", 200, "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b", "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
}

func main() {
	from := flag.String("from", "", "folder with the four original files (.gz or not)")
	to := flag.String("to", "fashion", "folder to write to")
	check := flag.Bool("check", false, "compare with the files that are there instead of writing")
	flag.Parse()
	if err := run(*from, *to, *check); err != nil {
		fmt.Fprintln(os.Stderr, "fashionpack:", err)
		os.Exit(1)
	}
}

func run(from, to string, check bool) error {
	if from == "" {
		return errors.New("no -from folder given, expected the one with train-images-idx3-ubyte.gz")
	}
	for _, s := range sets {
		images, err := original(from, s.images, s.imagesDigest)
		if err != nil {
			return err
		}
		labels, err := original(from, s.labels, s.labelsDigest)
		if err != nil {
			return err
		}
		images, labels = pick(images, labels, s.perClass)
		for name, contents := range map[string][]byte{s.images: images, s.labels: labels} {
			path := filepath.Join(to, name+".gz")
			if check {
				err = compare(path, contents)
			} else {
				err = write(path, contents)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// original reads one of the original files and checks its contents.
func original(folder, name, digest string) ([]byte, error) {
	contents, err := load(filepath.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		contents, err = load(filepath.Join(folder, name+".gz"))
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(contents); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%s: SHA-256 of the decompressed contents is %x, expected %s", name, sum, digest)
	}
	return contents, nil
}

// load reads a file, decompressed.
func load(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var r io.Reader = file
	if filepath.Ext(path) == ".gz" {
		if r, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	contents, err := io.ReadAll(io.LimitReader(r, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return contents, nil
}

// pick takes the first images of each class and returns IDX files of them.
func pick(images, labels []byte, perClass int) (pickedImages, pickedLabels []byte) {
	total := uint32(classes * perClass)
	pickedImages = binary.BigEndian.AppendUint32([]byte{0, 0, 8, 3}, total)
	pickedImages = binary.BigEndian.AppendUint32(pickedImages, side)
	pickedImages = binary.BigEndian.AppendUint32(pickedImages, side)
	pickedLabels = binary.BigEndian.AppendUint32([]byte{0, 0, 8, 1}, total)
	var taken [classes]int
	images = images[16:]
	for i, label := range labels[8:] {
		if taken[label] == perClass {
			continue
		}
		taken[label]++
		pickedImages = append(pickedImages, images[i*side*side:(i+1)*side*side]...)
		pickedLabels = append(pickedLabels, label)
	}
	return pickedImages, pickedLabels
}

// write compresses contents into a file.
func write(path string, contents []byte) error {
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(contents); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(path, compressed.Bytes(), 0o644)
}

// compare fails unless the file's decompressed contents are the given ones. Compressed bytes may differ between
// releases of Go, contents may not.
func compare(path string, contents []byte) error {
	there, err := load(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(there, contents) {
		return fmt.Errorf("%s is not what the original files give; run go generate ./dataset", path)
	}
	return nil
}

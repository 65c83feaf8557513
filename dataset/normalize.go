package dataset

import (
	"fmt"
	"math"
)

// Moments are the mean and the standard deviation of each channel, with bytes scaled to 0…1.
type Moments struct {
	Mean, Deviation []float64
}

// Normalizer turns the bytes of images into floats of mean 0 and standard deviation 1 per channel.
type Normalizer struct {
	// Shape is the shape of the images.
	Shape Shape
	Moments

	// table holds the float of every byte value, per channel.
	table [][256]float32
}

// Moments measures the channels of the images.
func (m *Images) Moments() Moments {
	channels := m.Shape.Channels
	area := m.Shape.Height * m.Shape.Width
	found := Moments{Mean: make([]float64, channels), Deviation: make([]float64, channels)}
	histograms := make([][256]int, channels)
	for i := range m.Len() {
		image := m.Image(i)
		for c := range channels {
			for _, value := range image[c*area : (c+1)*area] {
				histograms[c][value]++
			}
		}
	}
	for c := range channels {
		found.Mean[c], found.Deviation[c] = moments(&histograms[c])
	}
	return found
}

// NewNormalizer measures the channels of a set of images, as a rule the training set. A channel that is constant gets
// deviation 1, so that it normalises to zeros.
func NewNormalizer(images *Images) *Normalizer {
	m := images.Moments()
	for c, deviation := range m.Deviation {
		if deviation == 0 {
			m.Deviation[c] = 1
		}
	}
	return m.normalizer(images.Shape)
}

// normalizer tabulates what every byte becomes.
func (m Moments) normalizer(shape Shape) *Normalizer {
	n := &Normalizer{Shape: shape, Moments: m, table: make([][256]float32, shape.Channels)}
	for c := range n.table {
		for value := range n.table[c] {
			n.table[c][value] = float32((float64(value)/255 - n.Mean[c]) / n.Deviation[c])
		}
	}
	return n
}

// Validate checks that there are a mean and a deviation for each of so many channels.
func (m Moments) Validate(channels int) error {
	if len(m.Mean) != channels || len(m.Deviation) != channels {
		return fmt.Errorf("%w: %d means and %d deviations, expected %d of each", ErrShape, len(m.Mean), len(m.Deviation), channels)
	}
	for c := range channels {
		if !(m.Mean[c] >= 0 && m.Mean[c] <= 1) || !(m.Deviation[c] > 0 && m.Deviation[c] <= 1) {
			return fmt.Errorf("%w: channel %d has mean %v and deviation %v, expected 0 to 1, and a deviation above 0",
				ErrShape, c+1, m.Mean[c], m.Deviation[c])
		}
	}
	return nil
}

// moments returns mean and standard deviation of a histogram of bytes, scaled to 0…1.
func moments(histogram *[256]int) (mean, deviation float64) {
	var total, sum int
	for value, count := range histogram {
		total += count
		sum += value * count
	}
	if total == 0 {
		return 0, 0
	}
	mean = float64(sum) / float64(total)
	var squares float64
	for value, count := range histogram {
		difference := float64(value) - mean
		squares += difference * difference * float64(count)
	}
	return mean / 255, math.Sqrt(squares/float64(total)) / 255
}

// Image writes the normalised image into dst, which must be as long as the image.
func (n *Normalizer) Image(dst []float32, image []byte) {
	if len(image) != n.Shape.Size() || len(dst) != len(image) {
		panic(fmt.Sprintf("dataset: normalising %d bytes into %d floats, expected %d of each",
			len(image), len(dst), n.Shape.Size()))
	}
	area := n.Shape.Height * n.Shape.Width
	for c := range n.table {
		table := &n.table[c]
		to := dst[c*area : (c+1)*area]
		for i, value := range image[c*area : (c+1)*area] {
			to[i] = table[value]
		}
	}
}

// Batch writes the normalised images of the given indices into dst, one after another; dst must hold exactly them.
func (n *Normalizer) Batch(dst []float32, images *Images, indices []int32) {
	size := n.Shape.Size()
	if len(dst) != len(indices)*size {
		panic(fmt.Sprintf("dataset: batch of %d images of %d values into %d floats", len(indices), size, len(dst)))
	}
	for i, index := range indices {
		n.Image(dst[i*size:(i+1)*size], images.Image(int(index)))
	}
}

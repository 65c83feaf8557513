package dataset

import (
	"io/fs"
	"os"
	"path/filepath"
)

// Entry describes a data set that Open knows by name.
type Entry struct {
	Name        string
	Description string
	Licence     string
	Shape       Shape
	Classes     []string
	// Train and Test are numbers of images.
	Train, Test int
	// Download is how many bytes Fetch transfers from its first source; 0 for what cannot be fetched.
	Download int64
	// Fingerprint is that of the published data.
	Fingerprint string
}

// Catalogue lists the data sets that have a name of their own, that is all but folder:PATH.
func Catalogue() []Entry {
	entries := []Entry{
		{
			Name:        "fashion",
			Description: "Fashion-MNIST, the first images of each class; built in",
			Licence:     "MIT",
			Shape:       Shape{1, 28, 28}, Classes: fashionClasses, Train: 10_000, Test: 2_000,
			Fingerprint: "b2c50f6a9ad05e61c6ab71732667174646dc4f67c38729200e4c2070f15b6703",
		},
		{
			Name:        "fashion-full",
			Description: "Fashion-MNIST, all of it",
			Licence:     "MIT",
			Shape:       Shape{1, 28, 28}, Classes: fashionClasses, Train: 60_000, Test: 10_000,
			Fingerprint: "bd37dd6499b3df9c09f877e6f9bb7424d7f1db7b6550ec6a825c531abeca0e05",
		},
		{
			Name:        "cifar10",
			Description: "CIFAR-10",
			Licence:     "none stated by its authors; cite Krizhevsky 2009",
			Shape:       cifarShape, Classes: cifarClasses, Train: cifarBatches * cifarRecords, Test: cifarRecords,
			Fingerprint: "76f0d3110886c9282157e478d6e86ad955331f29899b4dfe3ba97ccc806372ee",
		},
	}
	for i := range entries {
		if choices := sources[entries[i].Name]; len(choices) > 0 {
			for _, file := range choices[0].files {
				entries[i].Download += file.size
			}
		}
	}
	return entries
}

// Find returns where a named data set is in a data directory, and whether it is there. It looks at names only: whether
// the files are whole, Open finds out. What is built in is found under the name "built in".
func Find(name, directory string) (string, bool) {
	switch name {
	case "fashion":
		return "built in", true
	case "fashion-full":
		folder := filepath.Join(directory, name)
		_, found := mnistFiles.find(os.DirFS(folder))
		return folder, found
	case "cifar10":
		folder := filepath.Join(directory, name)
		place, found := findCIFAR(os.DirFS(folder))
		return filepath.Join(folder, filepath.FromSlash(place.name)), found
	}
	return "", false
}

// exists reports whether a file or folder is there.
func exists(files fs.FS, name string) bool {
	_, err := fs.Stat(files, name)
	return err == nil
}

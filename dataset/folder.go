package dataset

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"grange/internal/stream"
)

// readOwn reads the user's own data: one CSV file where file is given, otherwise a folder in one of three layouts.
func readOwn(ctx context.Context, files fs.FS, file string, options Options, memory *budget) (*Dataset, error) {
	if file != "" {
		return readTables(files, file, "", options, memory)
	}
	layouts, err := findLayouts(files)
	if err != nil {
		return nil, err
	}
	switch {
	case len(layouts) == 0:
		return nil, fmt.Errorf("%w: nothing to read: expected one sub-folder of PNG, JPEG or GIF images per class, "+
			"or IDX files (train-images-idx3-ubyte …), or CSV (train.csv and test.csv, or one file)", ErrMissing)
	case len(layouts) > 1:
		return nil, fmt.Errorf("%w: %s and %s side by side, expected one of them", ErrCorrupt, layouts[0].what, layouts[1].what)
	}
	return layouts[0].read(ctx, files, options, memory)
}

// layout is a way in which a folder holds a data set.
type layout struct {
	what string
	read func(ctx context.Context, files fs.FS, options Options, memory *budget) (*Dataset, error)
}

// findLayouts looks at the names in a folder.
func findLayouts(files fs.FS) ([]layout, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, openError(".", err)
	}
	var layouts []layout
	var tables []string
	folders := 0
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case isFolder(files, name, entry):
			folders++
		case isTable(name):
			tables = append(tables, name)
		}
	}
	for _, test := range []string{"t10k", "test"} {
		names := mnistFiles
		names.testImages = strings.Replace(names.testImages, "t10k", test, 1)
		names.testLabels = strings.Replace(names.testLabels, "t10k", test, 1)
		names, found := names.find(files)
		tested := exists(files, names.testImages)
		if !found || !tested && test == "t10k" {
			continue
		}
		if !tested {
			names.testImages = ""
		}
		layouts = append(layouts, layout{"IDX files", names.readOwn})
		break
	}
	if len(tables) > 0 {
		layouts = append(layouts, layout{"CSV files", readTableFolder(tables)})
	}
	if folders > 0 {
		layouts = append(layouts, layout{"folders of images", readTree})
	}
	return layouts, nil
}

// isFolder reports whether an entry is a folder or a link to one.
func isFolder(files fs.FS, name string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.IsDir()
	}
	info, err := fs.Stat(files, name)
	return err == nil && info.IsDir()
}

// readOwn reads a user's IDX files. The classes are the numbers 0 to the largest training label.
func (f idxFiles) readOwn(_ context.Context, files fs.FS, options Options, memory *budget) (*Dataset, error) {
	train, err := readIDXPair(files, f.trainImages, f.trainLabels, maxClasses, memory)
	if err != nil {
		return nil, err
	}
	data := &Dataset{Classes: numberedClasses(train.Labels), Train: train}
	if f.testImages == "" {
		return data, data.holdOut(options.Holdout, memory)
	}
	data.Test, err = readIDXPair(files, f.testImages, f.testLabels, len(data.Classes), memory)
	return data, err
}

// numberedClasses are the classes 0 to the largest label, named by their numbers.
func numberedClasses(labels []uint8) []string {
	largest := uint8(0)
	for _, label := range labels {
		largest = max(largest, label)
	}
	classes := make([]string, int(largest)+1)
	for i := range classes {
		classes[i] = strconv.Itoa(i)
	}
	return classes
}

// holdOut moves a share of every class from the training set to the test set, at least one image and not all. Which
// ones does not depend on any run's seed: the test set belongs to the data.
func (d *Dataset) holdOut(share float64, memory *budget) error {
	byClass := make([][]int32, len(d.Classes))
	for i, label := range d.Train.Labels {
		byClass[label] = append(byClass[label], int32(i))
	}
	held := make([]bool, d.Train.Len())
	total := 0
	for class, members := range byClass {
		if len(members) == 0 {
			continue // reported by check
		}
		if len(members) == 1 {
			return fmt.Errorf("%w: class %d (%s) has one image, expected at least two: one to train and one to test with",
				ErrEmptyClass, class, d.Classes[class])
		}
		count := min(max(1, int(math.Round(share*float64(len(members))))), len(members)-1)
		random := stream.New(0, "dataset holdout", class)
		random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		for _, i := range members[:count] {
			held[i] = true
		}
		total += count
	}
	if err := memory.take(int64(len(d.Train.Pixels)), d.Source); err != nil {
		return err
	}
	all, size := d.Train, d.Train.Shape.Size()
	d.Train = Images{Shape: all.Shape, Pixels: make([]byte, 0, (all.Len()-total)*size)}
	d.Test = Images{Shape: all.Shape, Pixels: make([]byte, 0, total*size)}
	for i := range all.Len() {
		to := &d.Train
		if held[i] {
			to = &d.Test
		}
		to.Pixels = append(to.Pixels, all.Image(i)...)
		to.Labels = append(to.Labels, all.Labels[i])
	}
	d.Warnings = append(d.Warnings, fmt.Sprintf("no test set given: %d of the %d images were held out to test with",
		total, all.Len()))
	return nil
}

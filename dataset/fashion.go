package dataset

import (
	"embed"
	"fmt"
	"io/fs"
)

// The built-in part of Fashion-MNIST: the first 1,000 training and the first 200 test images of each class. Set
// FASHION_MNIST to the folder with the four original files to make it again.
//
//go:generate go run ./internal/fashionpack -from $FASHION_MNIST -to fashion

//go:embed fashion/*.gz
var fashionFiles embed.FS

// fashionClasses are the class names of Fashion-MNIST.
var fashionClasses = []string{
	"t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot",
}

// openFashion reads the built-in images.
func openFashion(memory *budget) (*Dataset, error) {
	files, err := fs.Sub(fashionFiles, "fashion")
	if err != nil {
		return nil, err
	}
	return readFashion(files, 10_000, 2_000, memory)
}

// readFashion reads Fashion-MNIST, or a part of it, from the four IDX files of a folder, which must hold so many
// training and test images.
func readFashion(files fs.FS, trainImages, testImages int, memory *budget) (*Dataset, error) {
	names, _ := mnistFiles.find(files)
	train, test, err := names.read(files, len(fashionClasses), memory)
	if err != nil {
		return nil, err
	}
	for _, part := range []struct {
		file   string
		images Images
		count  int
	}{{names.trainImages, train, trainImages}, {names.testImages, test, testImages}} {
		if want := (Shape{1, 28, 28}); part.images.Shape != want {
			return nil, fmt.Errorf("%w: %s holds images of %v, expected %v", ErrShape, part.file, part.images.Shape, want)
		}
		if part.images.Len() != part.count {
			return nil, damaged(part.file, nil, "%d images, expected %d", part.images.Len(), part.count)
		}
	}
	return &Dataset{Classes: fashionClasses, Train: train, Test: test}, nil
}

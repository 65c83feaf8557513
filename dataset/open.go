package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Options says where data sets are and how to read those that leave something open. The zero value reads the built-in
// data set and any that is given with its path.
type Options struct {
	// Directory holds one folder per data set, as Fetch fills it: DIRECTORY/cifar10 and so on.
	Directory string
	// MaxBytes bounds the memory a data set may take. Default: 4 GiB.
	MaxBytes int64
	// Holdout is the share of a folder: data set that becomes its test set when it brings none of its own; drawn at
	// random from every class, the same on every run. Default: 0.2.
	Holdout float64
	// LabelColumn is the header of the CSV column with the labels. Default: "label".
	LabelColumn string
	// Shape is the shape of the images in a CSV file. Default: one square channel, or three, as the number of columns
	// allows.
	Shape Shape
}

const (
	defaultMaxBytes    = 4 << 30
	defaultHoldout     = 0.2
	defaultLabelColumn = "label"
)

func (o Options) withDefaults() (Options, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Holdout == 0 {
		o.Holdout = defaultHoldout
	}
	if o.LabelColumn == "" {
		o.LabelColumn = defaultLabelColumn
	}
	if !(o.Holdout > 0 && o.Holdout < 1) {
		return o, fmt.Errorf("%w: holdout is %v, expected a share between 0 and 1", ErrSplit, o.Holdout)
	}
	return o, nil
}

// Reference is a data set's name taken apart: the part before the first colon, and the path after it.
type Reference struct {
	// Name is "fashion", "fashion-full", "cifar10" or "folder".
	Name string
	// Path is where the data is: required for "folder", optional for "fashion-full" and "cifar10", which are looked for
	// in the data directory without it.
	Path string
}

// Parse takes a data set's name apart and checks that there is such a data set, without looking for its files.
func Parse(name string) (Reference, error) {
	kind, path, withPath := strings.Cut(name, ":")
	unknown := func(format string, args ...any) (Reference, error) {
		return Reference{}, &OpenError{name, fmt.Errorf("%w: %q: %s", ErrUnknown, name, fmt.Sprintf(format, args...))}
	}
	switch kind {
	case "fashion":
		if withPath {
			return unknown("fashion is built in and takes no path; expected fashion, or fashion-full:PATH")
		}
	case "folder", "fashion-full", "cifar10":
		if withPath && path == "" || kind == "folder" && !withPath {
			return unknown("expected %s:PATH", kind)
		}
	default:
		return unknown("expected fashion, fashion-full, cifar10 or folder:PATH")
	}
	return Reference{Name: kind, Path: path}, nil
}

// Open reads a data set. Its name is "fashion", "fashion-full", "cifar10", or "folder:PATH"; fashion-full and cifar10
// may be given with a path too, as in "cifar10:cifar-10-binary.tar.gz".
func Open(ctx context.Context, name string, options Options) (*Dataset, error) {
	reference, err := Parse(name)
	if err != nil {
		return nil, err
	}
	if options, err = options.withDefaults(); err != nil {
		return nil, err
	}
	data, source, err := read(ctx, reference, options)
	if err == nil {
		data.Name, data.Source = name, source
		err = data.check()
	}
	if err != nil {
		return nil, &OpenError{name, fmt.Errorf("data set %s: %w", name, err)}
	}
	return data, nil
}

// read reads the data set of a reference and says where it was.
func read(ctx context.Context, reference Reference, options Options) (*Dataset, string, error) {
	memory := newBudget(options.MaxBytes)
	if reference.Name == "fashion" {
		data, err := openFashion(memory)
		return data, "built in", err
	}
	path, err := locate(reference, options)
	if err != nil {
		return nil, "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", openError(path, err)
	}
	folder, file := path, ""
	if !info.IsDir() {
		folder, file = filepath.Split(path)
		folder = filepath.Clean(folder)
	}
	var data *Dataset
	switch reference.Name {
	case "fashion-full":
		if file != "" {
			return nil, "", fmt.Errorf("%w: %s is a file, expected the folder with train-images-idx3-ubyte.gz and the other "+
				"three files", ErrMissing, path)
		}
		data, err = readFashion(os.DirFS(folder), 60_000, 10_000, memory)
	case "cifar10":
		data, path, err = openCIFAR(ctx, folder, file, memory)
	case "folder":
		data, err = openFolder(ctx, folder, file, options, memory)
	}
	if err != nil && reference.Path == "" {
		err = fmt.Errorf("in %s: %w", path, err)
	}
	return data, path, err
}

// openCIFAR reads CIFAR-10 from an archive or a folder and says from which path.
func openCIFAR(ctx context.Context, folder, file string, memory *budget) (*Dataset, string, error) {
	files := os.DirFS(folder)
	if file != "" {
		reader := &cifarReader{records: cifarRecords, memory: memory}
		data, err := readCIFARFile(ctx, reader, files, file)
		return data, filepath.Join(folder, file), err
	}
	data, place, err := readCIFAR(ctx, files, memory)
	return data, filepath.Join(folder, filepath.FromSlash(place)), err
}

// openFolder reads the user's own data. Links that lead out of the folder are not followed: the folder may come from
// someone else.
func openFolder(ctx context.Context, folder, file string, options Options, memory *budget) (*Dataset, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, openError(folder, err)
	}
	defer root.Close()
	return readOwn(ctx, root.FS(), file, options, memory)
}

// locate returns the path of a data set's file or folder, with links resolved.
func locate(reference Reference, options Options) (string, error) {
	path := reference.Path
	if path == "" {
		if options.Directory == "" {
			return "", fmt.Errorf("%w: no data directory given, expected one with a folder %s in it, or %s:PATH",
				ErrMissing, reference.Name, reference.Name)
		}
		path = filepath.Join(options.Directory, reference.Name)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if reference.Path == "" {
			return "", fmt.Errorf("%w: %s; try: grange data fetch %s, or name the place with %s:PATH",
				ErrMissing, path, reference.Name, reference.Name)
		}
		return "", fmt.Errorf("%w: %s", ErrMissing, path)
	}
	if err != nil {
		return "", openError(path, err)
	}
	return resolved, nil
}

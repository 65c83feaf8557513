package dataset

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxColumns bounds the columns of a CSV file.
const maxColumns = 3*maxSide*maxSide + 1

// A row in memory takes up to rowCost bytes per byte of its text: where every column is empty, its place, its name and
// their copies while they grow. No limit on memory makes rows of up to shortRow bytes too long.
const (
	rowCost  = 64
	shortRow = 64 << 10
)

// isTable reports whether a file name is that of a CSV file.
func isTable(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".csv") || strings.HasSuffix(name, ".csv.gz")
}

// readTableFolder reads the CSV files of a folder: train and test, or a single one.
func readTableFolder(tables []string) func(context.Context, fs.FS, Options, *budget) (*Dataset, error) {
	return func(_ context.Context, files fs.FS, options Options, memory *budget) (*Dataset, error) {
		if len(tables) == 1 {
			return readTables(files, tables[0], "", options, memory)
		}
		named := map[string]string{}
		for _, table := range tables {
			named[strings.ToLower(strings.TrimSuffix(table, ".gz"))] = table
		}
		train, test := named["train.csv"], named["test.csv"]
		if len(tables) != 2 || train == "" || test == "" {
			return nil, fmt.Errorf("%w: CSV files %s, expected train.csv and test.csv, or a single file",
				ErrCorrupt, strings.Join(tables, ", "))
		}
		return readTables(files, train, test, options, memory)
	}
}

// readTables reads a training table and, unless test is empty, a test table.
func readTables(files fs.FS, train, test string, options Options, memory *budget) (*Dataset, error) {
	trainTable, err := openTable(files, train, options, memory)
	if err != nil {
		return nil, err
	}
	data := &Dataset{}
	classes, err := trainTable.classes()
	if err != nil {
		return nil, err
	}
	data.Classes = classes
	if data.Train, err = trainTable.images(classes); err != nil {
		return nil, err
	}
	if test == "" {
		return data, data.holdOut(options.Holdout, memory)
	}
	testTable, err := openTable(files, test, options, memory)
	if err != nil {
		return nil, err
	}
	data.Test, err = testTable.images(classes)
	return data, err
}

// table is a CSV file in memory.
type table struct {
	file   string
	shape  Shape
	pixels []byte
	// names are the different labels in the order of their first rows; labels are indices into them.
	names  []string
	labels []int32
}

func openTable(files fs.FS, file string, options Options, memory *budget) (*table, error) {
	in, err := openInput(files, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return readTable(in, file, options, memory)
}

// readTable reads a CSV file: a header with a label column, then one image per row, its values whole numbers 0 to 255
// in the other columns, planar.
func readTable(r io.Reader, file string, options Options, memory *budget) (*table, error) {
	// Text of numbers is longer than the numbers; eight times the memory is more than any table that fits needs.
	limited := &limitedReader{r: r, left: 8 * min(memory.left, math.MaxInt64/8), file: file}
	row := &limitedReader{r: skipMark(limited), file: file}
	rows := csv.NewReader(row)
	rows.ReuseRecord = true
	next := func() ([]string, error) {
		row.left = max(shortRow, memory.limit/rowCost)
		return rows.Read()
	}
	header, err := next()
	if err != nil {
		return nil, damaged(file, err, "no header row")
	}
	column, err := labelColumn(header, options.LabelColumn, file)
	if err != nil {
		return nil, err
	}
	shape, err := tableShape(len(header)-1, options.Shape, file)
	if err != nil {
		return nil, err
	}
	t := &table{file: file, shape: shape}
	known := map[string]int32{}
	for {
		record, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, damaged(file, err, "expected %d columns in every row", len(header))
		}
		if err := memory.take(int64(shape.Size()+1), file); err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(0)
		name := strings.TrimSpace(record[column])
		label, ok := known[name]
		if !ok {
			if err := checkLabelName(name, len(t.names), file, line); err != nil {
				return nil, err
			}
			if err := memory.take(int64(len(name)), file); err != nil {
				return nil, err
			}
			label = int32(len(t.names))
			name = strings.Clone(name)
			known[name] = label
			t.names = append(t.names, name)
		}
		t.labels = append(t.labels, label)
		for i, field := range record {
			if i == column {
				continue
			}
			value, err := strconv.ParseUint(strings.TrimSpace(field), 10, 8)
			if err != nil {
				return nil, damaged(file, nil, "line %d, column %d is %.20q, expected a whole number 0 to 255", line, i+1, field)
			}
			t.pixels = append(t.pixels, byte(value))
		}
	}
	if len(t.labels) == 0 {
		return nil, damaged(file, nil, "a header and no rows")
	}
	return t, nil
}

func checkLabelName(name string, classes int, file string, line int) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: %s: line %d has no label", ErrLabel, file, line)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %s: the label in line %d", ErrEncoding, file, line)
	case classes == maxClasses:
		return fmt.Errorf("%w: %s: more than %d different labels up to line %d", ErrLabel, file, maxClasses, line)
	}
	return nil
}

// labelColumn finds the column of the labels in a header.
func labelColumn(header []string, want, file string) (int, error) {
	if len(header) > maxColumns {
		return 0, fmt.Errorf("%w: %s has more than %d columns", ErrTooLarge, file, maxColumns)
	}
	column := -1
	for i, name := range header {
		if !utf8.ValidString(name) {
			return 0, fmt.Errorf("%w: %s: header of column %d", ErrEncoding, file, i+1)
		}
		if !strings.EqualFold(strings.TrimSpace(name), want) {
			continue
		}
		if column >= 0 {
			return 0, damaged(file, nil, "columns %d and %d are both called %q, expected one", column+1, i+1, want)
		}
		column = i
	}
	if column < 0 {
		return 0, damaged(file, nil, "no column called %q in its header, which begins %.60q", want, strings.Join(header[:min(len(header), 8)], ","))
	}
	return column, nil
}

// tableShape is the shape of images of so many values.
func tableShape(values int, given Shape, file string) (Shape, error) {
	if given != (Shape{}) {
		if given.Channels < 1 || given.Height < 1 || given.Width < 1 || given.Size() != values {
			return given, fmt.Errorf("%w: %s has %d value columns, expected %d for images of %v",
				ErrShape, file, values, given.Size(), given)
		}
		return given, nil
	}
	for _, channels := range []int{1, 3} {
		side := int(math.Round(math.Sqrt(float64(values) / float64(channels))))
		if side > 0 && channels*side*side == values {
			return Shape{channels, side, side}, nil
		}
	}
	return given, fmt.Errorf("%w: %s has %d value columns, expected a square number or three times one, or a given shape",
		ErrShape, file, values)
}

// classes are the class names of a training table: the numbers up to the largest if the labels are numbers, otherwise
// the labels in alphabetical order.
func (t *table) classes() ([]string, error) {
	largest, numbers := 0, 0
	odd := ""
	for _, name := range t.names {
		number, err := strconv.ParseUint(name, 10, 31)
		if err != nil {
			odd = name
			continue
		}
		numbers++
		largest = max(largest, int(number))
	}
	switch {
	case numbers == 0:
		return slices.Sorted(slices.Values(t.names)), nil
	case numbers < len(t.names):
		return nil, fmt.Errorf("%w: %s has labels that are numbers and the label %.40q, expected all numbers or all names",
			ErrLabel, t.file, odd)
	case largest >= maxClasses:
		return nil, fmt.Errorf("%w: %s has label %d, expected 0 to %d", ErrLabel, t.file, largest, maxClasses-1)
	}
	classes := make([]string, largest+1)
	for i := range classes {
		classes[i] = strconv.Itoa(i)
	}
	return classes, nil
}

// images gives the table's labels their classes.
func (t *table) images(classes []string) (Images, error) {
	index := map[string]uint8{}
	for i, class := range classes {
		index[class] = uint8(i)
	}
	of := make([]uint8, len(t.names))
	for i, name := range t.names {
		class, ok := index[name]
		if number, err := strconv.ParseUint(name, 10, 31); !ok && err == nil {
			class, ok = index[strconv.FormatUint(number, 10)]
		}
		if !ok {
			return Images{}, fmt.Errorf("%w: %s has label %.40q, expected one of the %d classes of the training file",
				ErrLabel, t.file, name, len(classes))
		}
		of[i] = class
	}
	labels := make([]uint8, len(t.labels))
	for i, label := range t.labels {
		labels[i] = of[label]
	}
	return Images{Shape: t.shape, Pixels: t.pixels, Labels: labels}, nil
}

// limitedReader fails with ErrTooLarge beyond a number of bytes.
type limitedReader struct {
	r    io.Reader
	left int64
	file string
}

func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: %s has too much text, or too much in a row", ErrTooLarge, l.file)
	}
	n, err := l.r.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// skipMark removes the byte order mark with which some programs begin UTF-8 files.
func skipMark(r io.Reader) io.Reader {
	mark := []byte("\ufeff")
	start := make([]byte, len(mark))
	n, err := io.ReadFull(r, start)
	if n == len(mark) && bytes.Equal(start, mark) {
		return r
	}
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return io.MultiReader(bytes.NewReader(start[:n]), failing{err})
	}
	return io.MultiReader(bytes.NewReader(start[:n]), r)
}

// failing is a reader that has failed.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

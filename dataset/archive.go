package dataset

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxEntries bounds the entries of an archive.
	maxEntries = 10_000
	// maxBeside bounds the bytes of an archive that belong to no file of the data set.
	maxBeside = 64 << 20
)

// part is one file of a data set: what to do with its contents.
type part func(r io.Reader, size int64, file string) error

// readArchive hands the files of a tar archive, compressed or not, to their parts by base name and reports which were
// there. Nothing is written to disk, yet names that would lead out of the archive are refused: an archive with such a
// name is not the one it claims to be.
func readArchive(ctx context.Context, r io.Reader, archive string, parts map[string]part, memory *budget) (map[string]bool, error) {
	seen := map[string]bool{}
	beside := int64(0)
	entries := tar.NewReader(r)
	for count := 0; ; count++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header, err := entries.Next()
		if errors.Is(err, io.EOF) && count > 0 {
			return seen, nil
		}
		if err != nil {
			return nil, damaged(archive, err, "not a whole tar archive")
		}
		if count == maxEntries {
			return nil, fmt.Errorf("%w: %s has more than %d entries", ErrTooLarge, archive, maxEntries)
		}
		if what, sentinel := unsafeName(header.Name); sentinel != nil {
			return nil, fmt.Errorf("%w: %s: entry %q %s", sentinel, archive, header.Name, what)
		}
		base := path.Base(header.Name)
		read, wanted := parts[base]
		name := archive + ": " + header.Name
		switch {
		case !wanted || header.Typeflag == tar.TypeDir:
			if beside += header.Size; header.Size < 0 || beside > maxBeside {
				return nil, fmt.Errorf("%w: %s has more than %d bytes that do not belong to the data set (%s)",
					ErrTooLarge, archive, maxBeside, header.Name)
			}
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("%w: %s is a link or special file, expected a regular one", ErrUnsafe, name)
		case seen[base]:
			return nil, damaged(name, nil, "a second file of this name, expected one")
		}
		seen[base] = true
		if header.Size > memory.left {
			return nil, memory.take(header.Size, name)
		}
		if err := read(entries, header.Size, name); err != nil {
			return nil, err
		}
	}
}

// readFolder hands the files of a folder to their parts, all of which must be there.
func readFolder(ctx context.Context, files fs.FS, parts map[string]part) error {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := readPart(files, name, parts[name]); err != nil {
			return err
		}
	}
	return nil
}

func readPart(files fs.FS, name string, read part) error {
	file, err := openRegular(files, name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return openError(name, err)
	}
	return read(file, info.Size(), name)
}

// unsafeName says what is wrong with the name of an archive's entry. Good names are relative, slash-separated and stay
// inside the archive; for them the error is nil.
func unsafeName(name string) (what string, sentinel error) {
	switch {
	case !utf8.ValidString(name):
		return "is not valid UTF-8", ErrEncoding
	case strings.Contains(name, "\\") || strings.ContainsRune(name, 0):
		return "has a backslash or NUL in its name", ErrUnsafe
	case path.IsAbs(name):
		return "is an absolute path, expected a relative one", ErrUnsafe
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == ".." {
			return "leads out of the archive", ErrUnsafe
		}
	}
	return "", nil
}

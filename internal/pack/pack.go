// Package pack puts a program, a scenario and a data set into files below a given size, with checksums and a script that
// runs them, for machines without a network.
package pack

import (
	"archive/tar"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Errors that callers may test for.
var (
	// ErrSize is a size that cannot be read, or is too small.
	ErrSize = errors.New("pack: impossible size")
	// ErrThere is a folder that holds something already.
	ErrThere = errors.New("pack: folder is not empty")
	// ErrKind is something other than a file or a folder, or a link that goes round in a circle.
	ErrKind = errors.New("pack: cannot be packed")
)

//go:embed run.sh
var script []byte

// Script is the name of the script that runs a pack.
const Script = "run.sh"

// File is a file or folder to pack.
type File struct {
	Name string // its path in the pack, with slashes
	Path string // where it is; a folder is packed with all that is in it
}

// Part is one file of a pack.
type Part struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
}

// Write packs files into parts of at most most bytes in a new folder. The folder appears when it is whole.
func Write(folder string, most int64, files []File) (parts []Part, err error) {
	if most < 1 {
		return nil, fmt.Errorf("%w: parts of %d bytes", ErrSize, most)
	}
	if there, err := os.ReadDir(folder); err == nil && len(there) > 0 {
		return nil, fmt.Errorf("%w: %s", ErrThere, folder)
	}
	folder, err = filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return nil, err
	}
	unfinished, err := os.MkdirTemp(filepath.Dir(folder), filepath.Base(folder)+".unfinished-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(unfinished))
		}
	}()
	to := &splitter{folder: unfinished, most: most}
	if err := archive(to, files); err != nil {
		return nil, errors.Join(err, to.end())
	}
	if err := to.end(); err != nil {
		return nil, err
	}
	var sums strings.Builder
	for _, part := range to.parts {
		fmt.Fprintf(&sums, "%s  %s\n", part.Sum, part.Name)
	}
	if err := os.WriteFile(filepath.Join(unfinished, "SHA256SUMS"), []byte(sums.String()), 0o644); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(unfinished, Script), script, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(unfinished, 0o755); err != nil {
		return nil, err
	}
	return to.parts, os.Rename(unfinished, folder)
}

// archive writes files as a tar archive, the same one for the same contents.
func archive(to io.Writer, files []File) error {
	out := tar.NewWriter(to)
	for _, file := range files {
		if err := addAll(out, file, nil); err != nil {
			return err
		}
	}
	return out.Close()
}

// addAll adds a file, or a folder with all that is in it, in the order of names. What a link leads to is packed, not the
// link. above are the folders on the way here, by their true paths.
func addAll(out *tar.Writer, file File, above []string) error {
	info, err := os.Stat(file.Path)
	switch {
	case err != nil:
		return err
	case info.Mode().IsRegular():
		return add(out, file.Name, file.Path, info)
	case !info.IsDir():
		return fmt.Errorf("%w: %s is neither a file nor a folder", ErrKind, file.Path)
	}
	folder, err := filepath.EvalSymlinks(file.Path)
	if err != nil {
		return err
	}
	if slices.Contains(above, folder) {
		return fmt.Errorf("%w: %s leads back to a folder that it is in", ErrKind, file.Path)
	}
	above = append(slices.Clone(above), folder)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		inner := File{Name: path.Join(file.Name, entry.Name()), Path: filepath.Join(file.Path, entry.Name())}
		if err := addAll(out, inner, above); err != nil {
			return err
		}
	}
	return nil
}

func add(out *tar.Writer, name, file string, info fs.FileInfo) error {
	mode := int64(0o644)
	if info.Mode()&0o100 != 0 {
		mode = 0o755
	}
	if err := out.WriteHeader(&tar.Header{Name: name, Size: info.Size(), Mode: mode, Format: tar.FormatPAX}); err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, in.Close())
}

// splitter writes to one file after another.
type splitter struct {
	folder string
	most   int64

	parts []Part
	file  *os.File
	sum   hash.Hash
}

func (s *splitter) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		if s.file == nil {
			if err := s.begin(); err != nil {
				return written, err
			}
		}
		part := &s.parts[len(s.parts)-1]
		n, err := s.file.Write(p[:min(int64(len(p)), s.most-part.Size)])
		s.sum.Write(p[:n])
		part.Size += int64(n)
		written, p = written+n, p[n:]
		if err != nil {
			return written, err
		}
		if part.Size == s.most {
			if err := s.end(); err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// begin opens the next part.
func (s *splitter) begin() (err error) {
	name := fmt.Sprintf("part-%03d", len(s.parts))
	s.file, err = os.Create(filepath.Join(s.folder, name))
	s.parts, s.sum = append(s.parts, Part{Name: name}), sha256.New()
	return err
}

// end closes the part that is open.
func (s *splitter) end() error {
	if s.file == nil {
		return nil
	}
	s.parts[len(s.parts)-1].Sum = hex.EncodeToString(s.sum.Sum(nil))
	err := s.file.Close()
	s.file = nil
	return err
}

// units of sizes; the longer names come before those they end with.
var units = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// Size reads a size such as 60MB, 64MiB or 1.5GB.
func Size(text string) (int64, error) {
	for _, unit := range units {
		number, found := strings.CutSuffix(text, unit.name)
		if !found {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err == nil && x*unit.bytes >= 1000 && x*unit.bytes <= 1e15 {
			return int64(x * unit.bytes), nil
		}
		break
	}
	return 0, fmt.Errorf("%w %q: want a number with kB, MB, GB, KiB, MiB or GiB, from 1kB on", ErrSize, text)
}

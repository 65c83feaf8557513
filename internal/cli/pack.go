package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"grange/dataset"
	"grange/internal/pack"
	"grange/scenario"
	"grange/train/xla/pjrt"
)

type packFlags struct {
	out     string
	most    string
	data    string
	program string
	json    bool
}

func (a *app) pack() *cobra.Command {
	var p packFlags
	cmd := &cobra.Command{
		Use:   "pack FILE",
		Short: "Pack program, data set and scenario into files for a machine without a network",
		Long: `Pack puts this program, the scenario and its data set into files that are no larger than --max-size,
with checksums and a script. Copy the folder to the other machine and run "sh run.sh" in it, with any
flags of grange measure: it checks and unpacks the files, trains, and leaves the folder results to
bring home. Stopped in between, the same command goes on where it was.`,
		Example: "  grange pack examples/sheds.yaml --out packed --max-size 60MB",
		Args:    oneFile,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return packError(a.runPack(cmd.Context(), args[0], p), p)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&p.out, "out", "packed", "folder to make")
	f.StringVar(&p.most, "max-size", "1GB", "the largest size of a file, such as 60MB or 64MiB")
	f.StringVar(&p.data, "data", "", "folder with data sets that are not built in")
	f.StringVar(&p.program, "program", "", "the program to pack, where the other machine needs another build (default: this one)")
	f.BoolVar(&p.json, "json", false, "print one JSON document")
	return cmd
}

type packJSON struct {
	Folder string      `json:"folder"`
	Parts  []pack.Part `json:"parts"`
}

func (a *app) runPack(ctx context.Context, file string, p packFlags) error {
	s, err := scenario.Load(file)
	if err != nil {
		return err
	}
	most, err := pack.Size(p.most)
	if err != nil {
		return err
	}
	program := p.program
	if program == "" {
		if strings.HasPrefix(s.Training.Backend, "xla") && !pjrt.Available {
			return &usageError{
				"the scenario trains on a card, and this program was built without cgo, which that needs",
				"--program with a build for Linux of CGO_ENABLED=1 go build ./cmd/grange",
			}
		}
		if program, err = os.Executable(); err != nil {
			return err
		}
	}
	files := []pack.File{{Name: "grange", Path: program}, {Name: "scenario.yaml", Path: file}}
	name := s.Training.Dataset
	if strings.HasPrefix(name, "folder:") {
		return &usageError{"a data set of your own is not packed", "copy its folder beside the pack, and give its new path in the scenario"}
	}
	directory := a.dataDirectory(p.data, s.Training.Data)
	place, found := dataset.Find(name, directory)
	if !found {
		return fmt.Errorf("%w: %s in %s", dataset.ErrMissing, name, directory)
	}
	if place != "built in" {
		inner, err := filepath.Rel(directory, place)
		if err != nil {
			return err
		}
		files = append(files, pack.File{Name: "data/" + filepath.ToSlash(inner), Path: place})
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	parts, err := pack.Write(p.out, most, files)
	if err != nil {
		return err
	}
	if p.json {
		return a.printJSON(ctx, packJSON{p.out, parts})
	}
	var total int64
	for _, part := range parts {
		total += part.Size
	}
	return a.print(ctx, fmt.Appendf(nil, "%d files of at most %s in %s, %.1f MB in all\nNext: copy %s to the other machine and run there: sh %s\n",
		len(parts), p.most, p.out, float64(total)/1e6, p.out, pack.Script))
}

// packError adds what to do to the errors of packing.
func packError(err error, p packFlags) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	switch {
	case errors.Is(err, pack.ErrSize):
		return hint(exitUsage, "--max-size 60MB")
	case errors.Is(err, pack.ErrThere):
		return hint(exitUsage, "another folder with --out, or remove "+p.out)
	case errors.Is(err, pack.ErrKind):
		return hint(exitFailed, "take it out of the data folder, or put a copy in its place")
	case errors.Is(err, dataset.ErrMissing):
		return hint(exitFailed, "grange data fetch gets it, or name its folder with --data DIR")
	case p.program != "" && errors.Is(err, fs.ErrNotExist):
		return hint(exitUsage, "--program with the path of a built program")
	}
	return err
}

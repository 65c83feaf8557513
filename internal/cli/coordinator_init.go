package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"grange/federated/network/coordinator"
	"grange/federated/network/identity"
	"grange/federated/network/store"
)

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

package cli

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"
)

// checkHost complains about what is no host's name or address.
func checkHost(flag, host string) error {
	if host == "" || strings.ContainsAny(host, ":/ ") && net.ParseIP(host) == nil {
		return &usageError{problem: fmt.Sprintf("%s%q is no host name or address", flag, host), try: "name the host alone, without https:// and port"}
	}
	return nil
}

func (a *app) coordinatorHosts() *cobra.Command {
	var invite, asJSON bool
	cmd := &cobra.Command{
		Use:   "hosts DIR [HOST...]",
		Short: "Add host names and addresses by which the coordinator is reached",
		Long: `Hosts makes the coordinator's certificate anew, for these host names and addresses as well, signed by
the same authority: members keep what they have. A running coordinator shows the new one at once.
Without names it lists those there are.

Silos do not need it, as they know the coordinator by its authority. Flower's clients, curl and
Prometheus go by the name.`,
		Example: "  grange coordinator hosts coop coordinator.example.net --invite",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return nil
			}
			return arguments("a folder")(cmd, args)
		},
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return coordinatorError(a.runCoordinatorHosts(cmd.Context(), args[0], args[1:], invite, asJSON), args[0])
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&invite, "invite", false, "name the first of them in invitations from now on")
	f.BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) runCoordinatorHosts(ctx context.Context, folder string, hosts []string, invite, asJSON bool) error {
	for _, host := range hosts {
		if err := checkHost("", host); err != nil {
			return err
		}
	}
	if invite && len(hosts) == 0 {
		return &usageError{"--invite needs a host to name in invitations", "grange coordinator hosts " + quote(folder) + " HOST --invite"}
	}
	registrar, record, err := a.office(ctx, folder)
	if err != nil {
		return err
	}
	defer record.Close()
	if err := registrar.Authority.AddHosts(hosts...); err != nil {
		return err
	}
	if invite {
		if err := record.Set(ctx, hostSetting, hosts[0]); err != nil {
			return err
		}
	}
	address, err := coordinatorURL(ctx, record)
	if err != nil {
		return err
	}
	list := registrar.Authority.Hosts()
	if asJSON {
		return a.printJSON(ctx, map[string]any{"folder": folder, "hosts": list, "url": address})
	}
	return a.print(ctx, fmt.Appendf(nil, "The coordinator's certificate is for %s.\nInvitations name %s.\n", strings.Join(list, ", "), address))
}

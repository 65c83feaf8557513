package cli

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"

	"grange/federated/network/coordinator"
	"grange/federated/network/store"
)

func (a *app) coordinatorInvite() *cobra.Command {
	var expires time.Duration
	var address string
	var quiet, asJSON bool
	cmd := &cobra.Command{
		Use:   "invite DIR NAME",
		Short: "Print a one-time token with which a member joins",
		Long: `Invite prints a token, and the command with which the member uses it; the command asks for the token, so
that it stays out of the shell's history. The token is a secret: hand it over in private. It can be used
once, and expires. It also tells the member's silo which coordinator to
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
		fmt.Sprintf("grange silo join %s --token -", quote(address))}
	if asJSON {
		return a.printJSON(ctx, invited)
	}
	if quiet {
		return a.print(ctx, []byte(invited.Token+"\n"))
	}
	return a.print(ctx, fmt.Appendf(nil, "Token for %s, for one use until %s. It is a secret.\n%s\n\n%s runs this, pastes the token and presses Enter; or gives it a file: < FILE\n  %s\n",
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

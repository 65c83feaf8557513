package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"grange/federated/network/store"
)

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

package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// docs writes the manual pages; it is for packagers and hidden from help.
func (a *app) docs() *cobra.Command {
	docs := &cobra.Command{Use: "docs", Short: "Write documentation", Hidden: true}
	docs.AddCommand(&cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write a manual page for every command",
		Example: "  grange docs man man",
		Args:    cobra.ExactArgs(1),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("docs man: %w", err)
			}
			cmd.Root().DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "GRANGE", Section: "1", Source: "Grange", Manual: "Grange manual"}
			if err := doc.GenManTree(cmd.Root(), header, args[0]); err != nil {
				return fmt.Errorf("docs man: %w", err)
			}
			return nil
		}),
	})
	return docs
}

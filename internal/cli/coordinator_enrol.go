package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"grange/federated/network/identity"
)

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
	if _, err := identity.ParsePublicKey(text); err != nil {
		return keyError(err, file)
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
	if errors.Is(err, identity.ErrRequest) { // another member has it
		return &hintError{err: err, code: exitUsage, try: "give every SuperNode a key of its own, or revoke that member first"}
	}
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(ctx, enrolledJSON{name, strconv.FormatUint(node.ID, 10)})
	}
	return a.print(ctx, fmt.Appendf(nil, "Enrolled the SuperNode of %s as node %d.\n", name, node.ID))
}

// keyError says what is wrong with a file that should be a public key. Nothing of what is in it is shown.
func keyError(err error, file string) error {
	if !errors.Is(err, identity.ErrPrivateKey) {
		return &hintError{
			err: fmt.Errorf("--key %s is no public key of a SuperNode: %w", file, err), code: exitUsage,
			try: "name the file with the public key, often .pub; ssh-keygen -t ecdsa -b 384 -f KEY makes KEY and KEY.pub",
		}
	}
	public := file + ".pub"
	try := "use " + public
	if _, err := os.Stat(public); err != nil {
		try = fmt.Sprintf("ssh-keygen -y -f %s > %s, and use that", quote(file), quote(public))
	}
	return &usageError{fmt.Sprintf("--key %s is the private key, which stays with the member", file), try}
}

package cli

import (
	"fmt"

	"grange/federated/network/store"
	"grange/internal/spelling"
)

// outsider is somebody who was let in and is no member: most often a name with a letter wrong.
type outsider struct {
	Name      string          `json:"name"`
	Admission store.Admission `json:"admission"`
	// Similar is the member that may have been meant.
	Similar string `json:"similar,omitempty"`
}

func newOutsider(a store.Admission, members []string) outsider {
	return outsider{a.Member, a, spelling.Nearest(a.Member, members)}
}

func (o outsider) text() string {
	text := o.Name + " was invited but is no member"
	if o.Admission.Nodes > 0 {
		text = "a key is enrolled for " + o.Name + ", which is no member"
	}
	if o.Similar != "" {
		text += fmt.Sprintf("; did you mean %s?", o.Similar)
	}
	return text
}

// try is what an operator does about it.
func (o outsider) try(folder string) string {
	command := fmt.Sprintf("grange coordinator revoke %s %s", quote(folder), quote(o.Name))
	if o.Similar != "" {
		command += ", and let " + o.Similar + " in"
	}
	return command
}

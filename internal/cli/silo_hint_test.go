package cli

import (
	"fmt"
	"strings"
	"testing"

	"grange/dataset"
	"grange/federated/network/silo"
)

// A silo's data sets are found by another flag than those of other commands.
func TestSiloHintNamesItsFlag(t *testing.T) {
	err := siloError(fmt.Errorf("%w: %w: cifar10", silo.ErrTerms, dataset.ErrMissing), "silo")
	if hinted, ok := err.(*hintError); !ok || !strings.Contains(hinted.try, "--data-dir DIR") {
		t.Errorf("got %#v", err)
	}
}

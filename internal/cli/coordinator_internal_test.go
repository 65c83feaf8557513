package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"grange/dataset"
	"grange/federated"
	"grange/federated/network/silo"
	"grange/train"
)

// A silo's data sets are found by another flag than those of other commands.
func TestSiloHintNamesItsFlag(t *testing.T) {
	err := siloError(fmt.Errorf("%w: %w: cifar10", silo.ErrTerms, dataset.ErrMissing), "silo")
	var hinted *hintError
	if !errors.As(err, &hinted) || !strings.Contains(hinted.try, "--data-dir DIR") {
		t.Errorf("got %#v", err)
	}
}

// What members used is what is reported; what they declared is beside it where it is something else.
func TestUsedIsReported(t *testing.T) {
	job := train.Job{Data: &dataset.Dataset{}, Members: []train.Member{
		{Name: "ash", Holding: dataset.Holding{Data: 500, Contribution: 300}},
		{Name: "birch", Holding: dataset.Holding{Data: 400, Contribution: 300}},
	}}
	same := usedUp(job.Result(&federated.Result{}), []int{300, 300})
	if same.Declared != nil {
		t.Errorf("declared %v", same.Declared)
	}
	less := usedUp(job.Result(&federated.Result{}), []int{200, 300})
	text, err := marshal(less)
	if err != nil || !strings.Contains(string(text), `"contributions":[200,300],"noise":[0,0],"declared":[300,300]`) {
		t.Errorf("%s %v", text, err)
	}
	table := (&app{env: Env{Getenv: func(string) string { return "" }, Stdout: io.Discard}}).trainingMembers(job, less)
	for _, line := range []string{"member used declared  of wrong labels\n", "ash     200      300 500         0.0%\n"} {
		if !strings.Contains(table, line) {
			t.Errorf("no %q in\n%s", line, table)
		}
	}
}

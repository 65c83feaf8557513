package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPaperCells reports on the cells of the paper's own scale that are in the repository: the program still knows them,
// and without runs with wrong labels it judges nothing that rests on γ.
func TestPaperCells(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "results"), os.DirFS("../../docs/reproduction")); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := run(t.Context(), "reproduce", "--scale", "paper", "--existing",
		"--results", filepath.Join(folder, "results"), "--report", filepath.Join(folder, "report"))
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	for _, want := range []string{
		"accuracy rises from 49.4% with 5000 points to 78.7% with 50000: 3 of 3 steps do not fall",
		"O1  holds partly", "O2  cannot be judged", "no run with wrong labels is there, so γ is not known",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

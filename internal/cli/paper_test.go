package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPaperCells reports on the cells of the paper's own scale that are in the repository: the program still knows them,
// and finds in them what docs/reproduction.md says.
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
		"loglinear curve, R² 1.000, γ 0.924 ± 0.018",
		"accuracy rises from 46.0% with 2500 points to 82.5% with 50000: 4 of 4 steps do not fall",
		"accuracy falls from 82.5% with clean labels to 36.2% with 50% wrong: 2 of 2 steps do not rise",
		"O1  holds ", "O2  holds ", "O3  holds ", "O4  holds partly", "O5  holds ", "T3  holds partly",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

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
		"beyond the 0 there are with clean labels",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestPaperCellsWithoutWrongLabels reports on the clean cells alone, which say nothing about γ and what rests on it.
func TestPaperCellsWithoutWrongLabels(t *testing.T) {
	folder := t.TempDir()
	cells := filepath.Join(folder, "results", "cells")
	if err := os.MkdirAll(cells, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../docs/reproduction/cells/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../../docs/reproduction/format.json") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(folder, "results", filepath.Base(file))
		if filepath.Base(file) != "format.json" {
			if !strings.Contains(string(data), `"noise": [0, 0, 0, 0, 0]`) || !strings.Contains(string(data), `"start": "pytorch"`) {
				continue
			}
			to = filepath.Join(cells, filepath.Base(file))
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	report := filepath.Join(folder, "report")
	code, stdout, stderr := run(t.Context(), "reproduce", "--scale", "paper", "--existing", "--results", filepath.Join(folder, "results"), "--report", report)
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	page, err := os.ReadFile(filepath.Join(report, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	observations, err := os.ReadFile(filepath.Join(report, "observations.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{stdout, "γ not measured"}, {stdout, "O1  holds partly"}, {stdout, "O5  cannot be judged"}, {stdout, "one run each, whose scatter is taken to be 0.50 points"},
		{string(page), "1 partly, 0 not, 8 cannot be judged"}, {string(page), "not measured"}, {string(page), "are left out"}, {string(page), "1 of 5"},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("no %q in\n%s", c.want, c.text)
		}
	}
	for _, bad := range []string{"γ = 0.00", "Whiskers", "Figure 3:", "framed square", "Games solved"} {
		if strings.Contains(string(page), bad) {
			t.Errorf("the page says %q", bad)
		}
	}
	if strings.Contains(string(observations), "gamma") {
		t.Errorf("there is a γ in\n%s", observations)
	}
	if _, err := os.Stat(filepath.Join(report, "figures", "figure-3.svg")); err == nil {
		t.Error("Figure 3 is drawn without γ")
	}
}

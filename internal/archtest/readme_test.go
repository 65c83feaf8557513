package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// insideReadme marks a test run that TestReadmeCommands started itself.
const insideReadme = "GRANGE_INSIDE_README"

var fence = regexp.MustCompile("(?ms)^```(?:sh|bash)\n(.*?)^```$")

// TestReadmeCommands runs what the README tells a stranger to run: exactly two
// commands, the main job and all tests. The second would run this test again,
// so here it only lists the tests of every package, which compiles them all.
func TestReadmeCommands(t *testing.T) {
	if os.Getenv(insideReadme) != "" {
		return
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range fence.FindAllStringSubmatch(string(readme), -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				commands = append(commands, line)
			}
		}
	}
	if len(commands) != 2 {
		t.Fatalf("the README has %d commands in its shell blocks, want 2: %q", len(commands), commands)
	}
	if !strings.HasPrefix(commands[0], "go run ./cmd/grange ") {
		t.Errorf("the first command is %q, want it to run grange", commands[0])
	}
	if out, err := command(commands[0]); err != nil || !strings.Contains(out, "accuracy") {
		t.Errorf("%s: %v\n%s", commands[0], err, out)
	}
	if commands[1] != "go test ./..." {
		t.Fatalf("the second command is %q, want go test ./...", commands[1])
	}
	out, err := command(commands[1] + " -list ^Test")
	if err != nil {
		t.Errorf("%s: %v\n%s", commands[1], err, out)
	}
	if !slices.Contains(strings.Split(out, "\n"), "TestReadmeCommands") {
		t.Errorf("%s does not reach this test:\n%s", commands[1], out)
	}
	ci, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(ci), "\n"+commands[1]) {
		t.Errorf(".ci/run does not run the README's %q", commands[1])
	}
}

// command runs a line of the README in the repository's root. The lines it has
// need no shell.
func command(line string) (string, error) {
	args := strings.Fields(line)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), insideReadme+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// TestLinks follows the links between the documents.
func TestLinks(t *testing.T) {
	documents, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/decisions/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, more...)
	}
	for _, document := range documents {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", document, m[1])
			}
		}
	}
}

package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"grange/internal/cli"
)

// run runs a command line in this process.
func run(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now, Getenv: func(string) string { return "" }}
	code = cli.Run(ctx, env, args)
	return code, out.String(), errs.String()
}

// TestHelpExamples runs every example of every command's help, which must end
// with them.
func TestHelpExamples(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(examples, "examples"); err != nil {
		t.Fatal(err)
	}
	commands := append(subcommands(t), []string{}, []string{"docs", "man"})
	// A coordinator's commands, in the order in which one uses them; the first example made the folder.
	for _, name := range []string{"hosts", "invite", "enrol-key", "revoke", "start", "status"} {
		commands = append(commands, []string{"coordinator", name})
	}
	if err := os.WriteFile("supernode.pub", []byte(superNode), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		_, help, _ := run(t.Context(), append(command, "--help")...)
		_, after, found := strings.Cut(help, "Examples:\n")
		if !found {
			t.Errorf("help of %q does not end with examples", command)
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(after), "\n") {
			args := words(line)
			if len(args) < 2 || args[0] != "grange" {
				t.Errorf("help of %q ends with %q, want an example", command, line)
				continue
			}
			if len(command) > 0 && slices.Contains(trains, command[len(command)-1]) {
				stopped, stop := context.WithCancel(t.Context())
				stop()
				if code, _, stderr := run(stopped, args[1:]...); code == 2 {
					t.Errorf("%s: not accepted\n%s", line, stderr)
				}
				continue
			}
			if code, _, stderr := run(t.Context(), args[1:]...); code != 0 {
				t.Errorf("%s: exit code %d\n%s", line, code, stderr)
			}
		}
	}
}

// trains are the commands that train models for minutes. Their examples are
// started and stopped, which still finds a flag or a file that does not exist;
// their own tests run them on less.
var trains = []string{"train", "measure", "fit", "run", "reproduce", "value", "start"}

// superNode is a public key as ssh-keygen writes it.
const superNode = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBEfbXWG5qBoAh0O3tyM6NEC5Ezkw1UrNOPMVtcmA5WgOGFRV1Ripg4lqdTawJp9a3lPtn0zyyeB8AudkFHPhf26yi6Zeeo00dxfqkCLvJp9TuPSLgN4mHgpbpxTIN755BA== example"

// subcommands reads the commands off the help.
func subcommands(t *testing.T) [][]string {
	t.Helper()
	_, help, _ := run(t.Context(), "--help")
	_, after, _ := strings.Cut(help, "Commands:\n")
	list, _, _ := strings.Cut(after, "\n\n")
	var commands [][]string
	for _, line := range strings.Split(list, "\n") {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "help" && name != "completion" { // cobra's own
			commands = append(commands, []string{name})
		}
	}
	if len(commands) < 3 {
		t.Fatalf("found only the commands %q in\n%s", commands, help)
	}
	return commands
}

// words splits a command line as a shell would, knowing only double quotes.
func words(line string) []string {
	var args []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			args = append(args, part)
		} else {
			args = append(args, strings.Fields(part)...)
		}
	}
	return args
}

// A scenario whose payoffs cannot be bounded and whose members own 10⁹ points
// would take hours. Stopping it must stop it, with nothing on disk.
func TestInterrupt(t *testing.T) {
	t.Chdir(t.TempDir())
	const endless = `members: [{name: a, data: 1e9, noise: 0, privacy: 1}, {name: b, data: 1e9, noise: 0, privacy: 1}]
accuracy: {form: expression, expression: "1 - 1/(S+1)"}
profit: {form: linear, beta: [100, 0]}
`
	if err := os.WriteFile("endless.yaml", []byte(endless), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	code, stdout, stderr := run(ctx, "solve", "endless.yaml", "--csv", "out.csv")
	if code != 1 || stdout != "" || !strings.Contains(stderr, "Try: ") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	left, err := os.ReadDir(".")
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

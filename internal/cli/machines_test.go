package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestTwoMachines follows examples/two-machines.md to the letter: every command of its shell blocks, in order, by a shell.
// Those that run until the training is over are left running, as in terminals of their own.
func TestTwoMachines(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(examples, "two-machines.md"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(examples, filepath.Join(folder, "examples")); err != nil {
		t.Fatal(err)
	}
	var commands []string
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(page), -1) {
		commands = append(commands, strings.Split(strings.TrimSpace(block[1]), "\n")...)
	}
	terminals := map[string]*terminal{}
	outputs := map[string]string{}
	for _, command := range commands {
		long := strings.HasPrefix(command, "grange coordinator start ") || strings.HasPrefix(command, "grange silo run ")
		shell := shellCommand(t.Context(), folder, command)
		if !long {
			if strings.Contains(command, "coordinator status") {
				wait(t, terminals)
			}
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", command, err, out)
			}
			outputs[command] = string(out)
			continue
		}
		open := &terminal{shell: shell}
		shell.Stdout, shell.Stderr = &open.stdout, &open.stderr
		if err := shell.Start(); err != nil {
			t.Fatal(err)
		}
		terminals[command] = open
		if strings.Contains(command, "coordinator start") {
			listening(t, filepath.Join(folder, "coop"), nil)
		}
	}
	if len(terminals) != 3 {
		t.Fatalf("%d processes, want the coordinator and two silos: %q", len(terminals), commands)
	}
	status := outputs["grange coordinator status coop"]
	for _, line := range []string{
		`^two machines: done after 3 of 3 rounds, accuracy \d\d\.\d\d%`, `north +declared +2,000 3,000 2,000 +3 grange`, `south +declared +1,500 3,000 1,500 +3 grange`,
	} {
		if !regexp.MustCompile("(?m)" + line).MatchString(status) {
			t.Errorf("no line %s in\n%s", line, status)
		}
	}
	for command, open := range terminals {
		if text := open.stdout.String(); strings.Contains(command, "start") && !strings.Contains(text, "two machines: mlp on fashion, 3,500 of 10,000 images, 3 rounds") {
			t.Errorf("%s printed\n%s", command, text)
		}
	}
}

// terminal is a process that runs for long.
type terminal struct {
	shell          *exec.Cmd
	stdout, stderr bytes.Buffer
}

func shellCommand(ctx context.Context, folder, command string) *exec.Cmd {
	shell := exec.CommandContext(ctx, "sh", "-c", "exec "+command)
	shell.Dir = folder
	return shell
}

// wait waits until all processes have ended, well.
func wait(t *testing.T, terminals map[string]*terminal) {
	t.Helper()
	for command, open := range terminals {
		if err := open.shell.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s%s", command, err, open.stdout.String(), open.stderr.String())
		}
	}
}

// listening waits until a coordinator says in its record that it listens, or has ended.
func listening(t *testing.T, folder string, ended <-chan struct{}) {
	t.Helper()
	for t.Context().Err() == nil {
		if _, stdout, _ := run(t.Context(), "coordinator", "status", folder); strings.Contains(stdout, ", at ") {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

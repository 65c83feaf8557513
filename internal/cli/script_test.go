package cli_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"grange/internal/cli"
)

var update = flag.Bool("update", false, "rewrite the expected output in the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"grange": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(cli.Run(ctx, cli.Env{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now, Getenv: os.Getenv}, os.Args[1:]))
		},
	})
}

func TestScripts(t *testing.T) {
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			return os.Symlink(examples, filepath.Join(env.WorkDir, "examples"))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"round":   round,
			"waitfor": waitFor,

			"waitlines": waitLines,
		},
	})
}

// exits runs a command and checks its exit code: exits 2 grange solve x.yaml
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d\n%s", code, want, ts.ReadFile("stderr"))
	}
}

// waitFor waits until a coordinator's status says something: waitfor DIR TEXT
func waitFor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitfor DIR TEXT")
	}
	for {
		ctx, stop := context.WithCancel(context.Background())
		_, stdout, stderr := run(ctx, "coordinator", "status", ts.MkAbs(args[0]))
		stop()
		if strings.Contains(stdout, args[1]) {
			return
		}
		if stderr != "" {
			ts.Fatalf("%s", stderr)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// waitLines waits until a file has a number of lines: waitlines PATTERN 20
func waitLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitlines PATTERN LINES")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	for began := time.Now(); ; {
		if time.Since(began) > time.Minute {
			ts.Fatalf("%s does not come to %d lines", args[0], want)
		}
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		if len(files) == 1 && strings.Count(ts.ReadFile(files[0]), "\n") >= want {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

var long = regexp.MustCompile(`-?[0-9]+\.[0-9]+(e[-+]?[0-9]+)?`)

// round copies a file, with its decimal numbers cut to six significant digits:
// round stdout got
func round(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: round FROM TO")
	}
	text := long.ReplaceAllStringFunc(ts.ReadFile(args[0]), func(s string) string {
		x, err := strconv.ParseFloat(s, 64)
		ts.Check(err)
		return strconv.FormatFloat(x, 'g', 6, 64)
	})
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}

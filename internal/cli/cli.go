// Package cli is Grange's front door: one file per command, with its flags,
// its printing and its exit code. It holds no mathematics.
package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"grange/scenario"
)

// Exit codes, the same for every command.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2
	exitUnproven = 3
)

// grace is how long a command may take to stop after Ctrl-C.
const grace = 700 * time.Millisecond

// Env is what a command knows of the process it runs in.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Now    func() time.Time
	Getenv func(string) string
}

// app is one invocation.
type app struct {
	env     Env
	started atomic.Bool // a command's own code was reached: errors are no longer about usage
	ending  ending      // what is to be done before the process ends
	writing sync.Mutex  // held while a result is printed or a file replaced
	// kept is what to do after an interruption that loses little; nil when it
	// loses everything.
	kept atomic.Pointer[string]
}

// ending is what is to be done at the end. A command that was left behind may
// still be adding to it.
type ending struct {
	mutex sync.Mutex
	list  []func()
	ended bool
}

// add has something done at the end, or at once if that has passed.
func (e *ending) add(do func()) {
	e.mutex.Lock()
	ended := e.ended
	if !ended {
		e.list = append(e.list, do)
	}
	e.mutex.Unlock()
	if ended {
		do()
	}
}

// now does all of it.
func (e *ending) now() {
	e.mutex.Lock()
	list := e.list
	e.list, e.ended = nil, true
	e.mutex.Unlock()
	for _, do := range list {
		do()
	}
}

// Run runs one command line and returns its exit code. When ctx ends, the
// command has a moment to stop by itself; files are replaced whole or not at
// all, so nothing partly written can remain.
func Run(ctx context.Context, env Env, args []string) int {
	a := &app{env: env}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(grace):
			a.writing.Lock() // for good: nothing may be written any more
			err = ctx.Err()
		}
	}
	a.ending.now()
	if err == nil {
		return exitDone
	}
	return a.fail(err)
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "grange",
		Short: "Design, train and settle a data co-operative",
		Long: `Grange works for data co-operatives: organisations that train one model together without pooling
their data, earn a profit with it, and split that profit so that contributing good data pays.`,
		Example:           "  grange solve examples/hospitals.yaml",
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		Args:              knownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetUsageTemplate(usage)
	root.SetVersionTemplate("grange {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		e := &usageError{problem: err.Error(), try: cmd.CommandPath() + " --help"}
		if name, unknown := strings.CutPrefix(e.problem, "unknown flag: --"); unknown {
			if near := nearFlag(cmd, name); near != "" {
				e.try = "--" + near
			}
		}
		return e
	})
	root.AddCommand(a.solve(), a.check(), a.sweep(), a.train(), a.data(), a.measure(), a.fit(), a.run(), a.reproduce(), a.value(), a.pack(), a.coordinator(), a.scenarioTopic(), a.docs(), a.silo(), a.xlaWorker())
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() {
			cmd.Args = knownCommand
		}
	}
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Run, cmd.RunE = nil, help
		}
	}
	return root
}

// knownCommand is the argument rule of commands that have others under them: what is left over is none of those.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	e := &usageError{problem: fmt.Sprintf("unknown command %q", args[0]), try: "grange help"}
	if cmd.HasParent() {
		e.problem, e.try = fmt.Sprintf("unknown command %q of %s", args[0], cmd.CommandPath()), cmd.CommandPath()+" --help"
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		e.try = cmd.CommandPath() + " " + near[0]
	}
	return e
}

// help shows the help of the command named by args.
func help(cmd *cobra.Command, args []string) error {
	named, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		if len(rest) == 0 {
			rest = args
		}
		return knownCommand(named, rest)
	}
	named.InitDefaultHelpFlag()
	named.SetOut(cmd.OutOrStdout())
	return named.Help()
}

// nearFlag is the flag that name was most likely meant to be, or "".
func nearFlag(cmd *cobra.Command, name string) string {
	flags := &cobra.Command{SuggestionsMinimumDistance: 2} // which knows how to find near names of commands
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		flags.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if near := flags.SuggestionsFor(name); len(near) > 0 {
		return near[0]
	}
	return ""
}

// command marks the point from which errors are the command's own.
func (a *app) command(run func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.started.Store(true)
		return run(cmd, args)
	}
}

// oneFile is the argument rule of commands that take one scenario.
func oneFile(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
		return &usageError{problem: cmd.Name() + " needs a scenario file", try: example}
	}
	return &usageError{problem: fmt.Sprintf("%s takes one scenario file, got %d arguments", cmd.Name(), len(args)), try: cmd.CommandPath() + " --help"}
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "development"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v += " " + s.Value[:12]
		}
	}
	return v + " (" + info.GoVersion + ")"
}

// scenarioTopic is a help page, not a command.
func (a *app) scenarioTopic() *cobra.Command {
	return &cobra.Command{Use: "scenario", Short: "The scenario file, key by key", Long: scenario.Format}
}

// usage is cobra's, with the examples at the end, where the eye looks.
const usage = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND

Commands:{{range .Commands}}{{if (or .IsAvailableCommand (eq .Name "help"))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasHelpSubCommands}}

Help topics:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .CommandPath .CommandPathPadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}
`

// Command grange designs, trains and settles data co-operatives. Everything it
// does is in internal/cli; this file wires that to the process.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"grange/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, cli.Env{
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
		Now:    time.Now,
		Getenv: os.Getenv,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}

package store_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"grange/federated/network"
	"grange/federated/network/objects"
	"grange/federated/network/recordtest"
	"grange/federated/network/store"
)

// written is the folder in which this test binary, started again, writes until it is killed.
const written = "GRANGE_STORE_TEST_WRITES"

func TestMain(m *testing.M) {
	if folder := os.Getenv(written); folder != "" {
		if err := writeForever(folder); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeForever goes on with the run in the folder, and says of every step that it is done once it is.
func writeForever(folder string) error {
	ctx := context.Background()
	s, err := store.Lead(ctx, folder)
	if err != nil {
		return err
	}
	endless := info
	endless.Rounds = 1 << 30
	saved, err := s.Resume(ctx, endless)
	if err != nil {
		return err
	}
	for round := len(saved.Finished) + 1; ; round++ {
		for member := range info.Members {
			if err := s.Deliver(ctx, recordtest.Delivery(round, member)); err != nil {
				return err
			}
			fmt.Printf("delivery %d %d\n", round, member)
			if err := s.Note(ctx, network.Note{Kind: network.Accepted, Round: round, Member: member}); err != nil {
				return err
			}
		}
		if err := s.Finish(ctx, recordtest.Finished(round)); err != nil {
			return err
		}
		fmt.Printf("finish %d\n", round)
	}
}

func TestKilledWhileWriting(t *testing.T) {
	folder := t.TempDir()
	fresh(t, folder)
	program, err := os.Executable()
	do(t, err)
	rounds := 0
	for attempt := range 8 {
		child := exec.CommandContext(t.Context(), program)
		child.Env = append(os.Environ(), written+"="+folder)
		child.Stderr = os.Stderr
		out, err := child.StdoutPipe()
		do(t, err, child.Start())
		lines := bufio.NewScanner(out)
		done, updates := rounds, 0 // what the child said it has written
		read := func() bool {
			if !lines.Scan() {
				return false
			}
			var round, member int
			switch {
			case scan(lines.Text(), "delivery %d %d", &round, &member):
				updates = member + 1
			case scan(lines.Text(), "finish %d", &round):
				done, updates = round, 0
			}
			return true
		}
		for range 10 + 7*attempt {
			if !read() {
				t.Fatal("the child ended by itself")
			}
		}
		do(t, child.Process.Kill())
		for read() { // what it said before it was killed
		}
		_ = child.Wait()

		s := lead(t, folder)
		endless := info
		endless.Rounds = 1 << 30
		saved, err := s.Resume(t.Context(), endless)
		do(t, err)
		got := len(saved.Finished)
		// It may have written one step more than it could say.
		switch {
		case got == done && len(saved.Deliveries) >= updates && len(saved.Deliveries) <= updates+1:
		case got == done+1 && updates == len(info.Members) && len(saved.Deliveries) == 0:
		default:
			t.Fatalf("%d rounds and %d updates are there, it said %d and %d", got, len(saved.Deliveries), done, updates)
		}
		run, err := s.Latest(t.Context())
		do(t, err)
		deliveries, err := s.Deliveries(t.Context(), run, 0)
		do(t, err)
		if want := got*len(info.Members) + len(saved.Deliveries); len(deliveries) != want {
			t.Fatalf("%d updates are there, expected %d", len(deliveries), want)
		}
		for _, d := range deliveries {
			if d.Update != (objects.Digest{byte(d.Round), byte(d.Member)}) || d.Examples != 90 {
				t.Fatalf("another update than was written: %+v", d)
			}
		}
		do(t, s.Close())
		rounds = got
	}
	t.Logf("%d rounds over eight kills", rounds)
}

func scan(line, format string, into ...any) bool {
	n, err := fmt.Sscanf(line, format, into...)
	return err == nil && n == len(into)
}

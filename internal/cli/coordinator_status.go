package cli

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"grange/federated"
	"grange/federated/network"
	"grange/federated/network/coordinator"
	"grange/federated/network/store"
)

func (a *app) coordinatorStatus() *cobra.Command {
	var watch, asJSON bool
	cmd := &cobra.Command{
		Use:   "status DIR",
		Short: "Show how a federation stands: members, rounds, what was refused",
		Long: `Status reads the record in a coordinator's folder, whether the coordinator is running or not: who was
let in, what each member declared and what it used, the rounds, and the last notes. With --watch it
shows what changes, until the run has ended.`,
		Example: "  grange coordinator status coop",
		Args:    arguments("a folder"),
		RunE: a.command(func(cmd *cobra.Command, args []string) error {
			return coordinatorError(a.runCoordinatorStatus(cmd.Context(), args[0], watch, asJSON), args[0])
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&watch, "watch", false, "go on showing it until the run has ended")
	f.BoolVar(&asJSON, "json", false, "print JSON: one document, or with --watch one line for every change")
	return cmd
}

// standing is how a federation stands, from its record.
type standing struct {
	Folder  string `json:"folder"`
	Running bool   `json:"running"`
	Address string `json:"address,omitempty"`
	Name    string `json:"name,omitempty"`
	// Phase is "not started", "waiting for members", "round", "stopped", "done" or "failed".
	Phase    string     `json:"phase"`
	Round    int        `json:"round"`
	Rounds   int        `json:"rounds"`
	Accuracy *float64   `json:"accuracy,omitempty"`
	Started  *time.Time `json:"started,omitempty"`
	Ended    *time.Time `json:"ended,omitempty"`
	Failure  string     `json:"failure,omitempty"`

	Members []memberStanding `json:"members"`
	// Outsiders were let in and are no members.
	Outsiders []outsider `json:"outsiders,omitempty"`

	History []roundStanding `json:"history,omitempty"`
	Notes   []noteStanding  `json:"notes,omitempty"`
}

type memberStanding struct {
	Name string `json:"name"`
	// Admission is nil for a member that was never invited.
	Admission *store.Admission `json:"admission,omitempty"`
	Declared  *store.Declared  `json:"declared,omitempty"`
	Connected bool             `json:"connected"`
	// Delivered says whether its update of the round under way is there, and Out why none is expected any more.
	Delivered bool   `json:"delivered"`
	Out       string `json:"out,omitempty"`
	// Rounds is in how many rounds it took part, and Used how many data points in the last of them.
	Rounds int `json:"rounds"`
	Used   int `json:"used"`
}

type roundStanding struct {
	Round    int                 `json:"round"`
	Accuracy *float64            `json:"accuracy,omitempty"` // nil is not a number, or infinite
	Loss     *float64            `json:"loss,omitempty"`
	Training *float64            `json:"training_loss,omitempty"`
	Absent   []federated.Absence `json:"absent,omitempty"`
	Ended    time.Time           `json:"ended"`
	Updates  []updateStand       `json:"updates"`
}

type updateStand struct {
	Member   string    `json:"member"`
	Declared int       `json:"declared"`
	Used     int       `json:"used"`
	Loss     *float64  `json:"loss,omitempty"`
	At       time.Time `json:"at"`
}

type noteStanding struct {
	ID     int64        `json:"id"`
	Time   time.Time    `json:"time"`
	Kind   network.Kind `json:"kind"`
	Round  int          `json:"round,omitempty"`
	Member string       `json:"member,omitempty"`
	Text   string       `json:"text,omitempty"`
}

// lastNotes is how many notes are shown.
const lastNotes = 20

func (a *app) runCoordinatorStatus(ctx context.Context, folder string, watch, asJSON bool) error {
	record, err := store.Read(ctx, folder)
	if err != nil {
		return err
	}
	defer record.Close()
	shown := ""
	for {
		s, err := readStanding(ctx, folder, record)
		if watch && errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		text := []byte(a.standingText(s))
		if asJSON {
			if text, err = marshal(s); err != nil {
				return err
			}
		}
		if string(text) != shown {
			shown = string(text)
			if watch && !asJSON && isTerminal(a.env.Stdout) {
				text = append([]byte("\x1b[H\x1b[2J"), text...)
			}
			if err := a.print(ctx, text); err != nil {
				return err
			}
		}
		if !watch || s.Phase == "done" || s.Phase == "failed" {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil // it was stopped by whoever watched
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// readStanding reads everything that is shown.
func readStanding(ctx context.Context, folder string, record *store.Store) (*standing, error) {
	s := &standing{Folder: folder, Phase: "not started"}
	var err error
	if s.Running, err = store.Running(ctx, folder); err != nil {
		return nil, err
	}
	admitted, err := record.Admissions(ctx)
	if err != nil {
		return nil, err
	}
	run, err := record.Latest(ctx)
	if err != nil {
		return nil, err
	}
	if run == nil {
		for _, admission := range admitted {
			s.Members = append(s.Members, memberStanding{Name: admission.Member, Admission: &admission})
		}
		return s, nil
	}
	s.Name, s.Rounds, s.Started, s.Ended, s.Failure = run.Name, run.Rounds, &run.Started, run.Ended, run.Failure
	for _, name := range run.Members {
		m := memberStanding{Name: name}
		if i := slices.IndexFunc(admitted, func(a store.Admission) bool { return a.Member == name }); i >= 0 {
			m.Admission = &admitted[i]
		}
		s.Members = append(s.Members, m)
	}
	outsiders, err := record.Outsiders(ctx, run.Members)
	if err != nil {
		return nil, err
	}
	for _, admission := range outsiders {
		s.Outsiders = append(s.Outsiders, newOutsider(admission, run.Members))
	}
	for _, read := range []func(context.Context, *store.Store, *store.Run) error{s.readDeclarations, s.readRounds, s.readNotes} {
		if err := read(ctx, record, run); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *standing) member(i int) *memberStanding {
	if i < 0 || i >= len(s.Members) {
		return &memberStanding{} // nobody
	}
	return &s.Members[i]
}

func (s *standing) readDeclarations(ctx context.Context, record *store.Store, run *store.Run) error {
	declared, err := record.Declarations(ctx, run)
	for _, d := range declared {
		s.member(d.Member).Declared = &d
	}
	return err
}

func (s *standing) readRounds(ctx context.Context, record *store.Store, run *store.Run) error {
	rounds, err := record.Rounds(ctx, run)
	if err != nil {
		return err
	}
	for _, r := range rounds {
		round := roundStanding{r.Finished.Round.Round, finite(r.Accuracy), finite(r.Loss), finite(r.Training), r.Absent, r.Ended, nil}
		s.History = append(s.History, round)
		s.Round, s.Accuracy = round.Round, round.Accuracy
	}
	deliveries, err := record.Deliveries(ctx, run, 0)
	for _, d := range deliveries {
		m := s.member(d.Member)
		m.Used = d.Examples
		if d.Round > len(s.History) {
			m.Delivered = true
			continue
		}
		m.Rounds++
		history := &s.History[d.Round-1]
		history.Updates = append(history.Updates, updateStand{m.Name, d.Declared, d.Examples, finite(d.Loss), d.At})
	}
	return err
}

// readNotes reads the notes, which also tell who is connected and which phase the run is in.
func (s *standing) readNotes(ctx context.Context, record *store.Store, run *store.Run) error {
	var err error
	if s.Address, err = record.Get(ctx, coordinator.AddressSetting); err != nil {
		return err
	}
	text, err := record.Get(ctx, coordinator.SinceSetting)
	if err != nil {
		return err
	}
	since, _ := time.Parse(time.RFC3339Nano, text) // of a coordinator that has not come so far, 0
	notes, err := record.Notes(ctx, run, 0, 0)
	if err != nil {
		return err
	}
	begun := 0
	for i, n := range notes {
		m := s.member(n.Member)
		switch {
		case n.Kind == network.RoundBegun:
			begun = n.Round
		case (n.Kind == network.Connected || n.Kind == network.Disconnected) && s.Running && !n.Time.Before(since):
			m.Connected = n.Kind == network.Connected
		case (n.Kind == network.Refused || n.Kind == network.Failed) && n.Round > len(s.History) && !n.Time.Before(since):
			m.Out = n.Text
		}
		if i >= len(notes)-lastNotes {
			s.Notes = append(s.Notes, noteStanding{n.ID, n.Time, n.Kind, n.Round, m.Name, n.Text})
		}
	}
	switch {
	case s.Ended != nil && s.Failure == "":
		s.Phase = "done"
	case s.Ended != nil:
		s.Phase = "failed"
	case !s.Running:
		s.Phase = "stopped"
	case begun > len(s.History) || len(s.History) > 0:
		s.Phase, s.Round = "round", len(s.History)+1
	default:
		s.Phase = "waiting for members"
	}
	return nil
}

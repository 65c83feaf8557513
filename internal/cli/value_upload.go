package cli

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"grange/lab/updates"
	"grange/valuation"
	"grange/valuation/reconstruct"
)

// upload is a folder of saved updates, to be valued.
type upload struct {
	*valued
	app      *app
	folder   *updates.Folder
	flags    valueFlags
	score    reconstruct.Evaluate // computes what a model is worth
	evaluate reconstruct.Evaluate // looks first whether it is known
	finals   map[string]*final
}

// final is the game of the final models of one kind.
type final struct {
	game    *valuation.Game
	rounds  int   // that went into it
	failure error // why those after them did not
}

// uploaded is the subject of a folder of saved updates.
func (a *app) uploaded(ctx context.Context, path string, flags valueFlags) (*subject, error) {
	folder, err := updates.Open(path)
	if err != nil {
		return nil, err
	}
	if err := checkMembers(len(folder.Members())); err != nil {
		return nil, err
	}
	v := &valued{scenario: folder.Scenario, source: "updates", members: folder.Members(), seed: flags.seed.or(1)}
	score, kernel, err := a.evaluator(ctx, folder, flags)
	if err != nil {
		return nil, err
	}
	kept, err := a.keepWorths(path, fmt.Sprintf("accuracy of %s on %s by %s", folder.Model, folder.Fingerprint, kernel))
	if err != nil {
		return nil, err
	}
	u := &upload{valued: v, app: a, folder: folder, flags: flags, score: score, evaluate: kept.wrap(score), finals: map[string]*final{}}
	return &subject{v, valueMethods(), u.by, kept.close}, nil
}

// by values the updates by one method. What was valued before a failure comes
// with it.
func (u *upload) by(ctx context.Context, method string) (*valuation.Result, error) {
	n, times := len(u.members), 1
	if method == "multi-round" {
		times = u.folder.Rounds()
	}
	if err := checkSize(method, n, times, u.flags, func() (time.Duration, error) { return u.one(ctx) }); err != nil {
		return nil, err
	}
	switch method {
	case "gtg":
		return u.guided(ctx, method, valuation.Permutation{Guided: true, Truncation: 0.02})
	case "gtg-adjusted":
		return u.guided(ctx, method, valuation.Adjusted{})
	case "multi-round":
		m := reconstruct.MultiRound{Tabulation: valuation.Tabulation{Limit: u.flags.limit, Workers: u.flags.workers}}
		return u.byRounds(ctx, func(h reconstruct.History) (*reconstruct.Outcome, error) { return m.Value(ctx, h, u.evaluate) })
	}
	f, err := u.final(ctx, method)
	if err != nil {
		return nil, err
	}
	var r *valuation.Result
	if method == "one-round" {
		r, err = u.oneRound(ctx, f.game)
	} else {
		r, err = u.app.valueGame(ctx, f.game, method, u.seed, u.flags)
	}
	if err == nil && f.failure != nil {
		err = f.failure
		u.cut(r, f.rounds, err)
	}
	return r, err
}

// one returns how long it takes to rebuild and evaluate a model.
func (u *upload) one(ctx context.Context) (time.Duration, error) {
	round, err := u.folder.Round(ctx, 1)
	if err != nil {
		return 0, err
	}
	value := round.Utility(u.score)
	began := u.app.env.Now()
	_, err = value.Value(ctx, valuation.Everyone(len(u.members)))
	return u.app.env.Now().Sub(began), err
}

// guided is GTG with the given sampler.
func (u *upload) guided(ctx context.Context, name string, m valuation.Method) (*valuation.Result, error) {
	w := &witness{Method: m}
	g := reconstruct.GTG{Method: w, Settings: valuation.Settings{Seed: u.seed, Workers: u.flags.workers}}
	if u.flags.evaluations > 0 || u.flags.stopError > 0 || u.flags.stopRanks > 0 {
		g.Settings.Stop = rules(len(u.members), u.flags)
	}
	return u.byRounds(ctx, func(h reconstruct.History) (*reconstruct.Outcome, error) {
		outcome, err := g.Value(ctx, h, u.evaluate)
		if outcome == nil {
			return nil, err
		}
		var evaluations []int
		exact := len(u.members) <= valuation.ExactLimit
		for _, r := range outcome.Rounds {
			if !r.Skipped {
				evaluations = append(evaluations, r.Evaluations)
			}
			exact = exact && !r.Skipped && r.Evaluations == 1<<len(u.members)
		}
		if few := w.check(ctx, evaluations...); few != nil {
			return nil, cmp.Or(err, few)
		}
		outcome.Method = name
		if exact && err == nil {
			outcome.Status = valuation.Exact
		}
		return outcome, err
	})
}

// byRounds adds up over rounds.
func (u *upload) byRounds(ctx context.Context, value func(reconstruct.History) (*reconstruct.Outcome, error)) (*valuation.Result, error) {
	bar := u.app.progress("rounds", u.folder.Rounds())
	defer bar.stop()
	outcome, err := value(&watchedHistory{Folder: u.folder, bar: bar, rounds: u.folder.Rounds()})
	if err == nil && ctx.Err() != nil { // the last round was cut short
		err = ctx.Err()
	}
	if err != nil && (outcome == nil || len(outcome.Rounds) == 0) {
		return nil, err
	}
	if err != nil {
		u.cut(&outcome.Result, len(outcome.Rounds), err)
	}
	return &outcome.Result, err
}

// cut marks a result of the first rounds only. How far it is from that of all
// nobody knows.
func (u *upload) cut(r *valuation.Result, rounds int, cause error) {
	r.Status, r.Reason = valuation.Failed, cause.Error()
	for n := range r.Values {
		r.Errors[n], r.Spread[n] = math.Inf(1), math.Inf(1)
	}
	r.Warnings = append(r.Warnings, fmt.Sprintf("only the first %d of %d rounds are valued", rounds, u.folder.Rounds()))
}

// final returns the game of the final models: of one-round, or replayed. When
// a round cannot be read, it is that of the rounds before.
func (u *upload) final(ctx context.Context, method string) (*final, error) {
	kind, replay := "replayed", reconstruct.Replay{}
	if method == "one-round" {
		kind, replay.Carry = method, 1
	}
	if f, found := u.finals[kind]; found {
		return f, nil
	}
	bar := u.app.progress("rounds", u.folder.Rounds())
	defer bar.stop()
	history := &watchedHistory{Folder: u.folder, bar: bar, rounds: u.folder.Rounds()}
	f := &final{rounds: history.rounds}
	var err error
	f.game, err = replay.Game(ctx, history, u.evaluate)
	if err != nil && ctx.Err() == nil && history.asked > 1 {
		f.failure = err
		history.rounds = history.asked - 1
		f.rounds = history.rounds
		f.game, err = replay.Game(ctx, history, u.evaluate)
	}
	if err != nil {
		return nil, err
	}
	f.game.Utility = valuation.Cached(f.game.Utility)
	u.finals[kind] = f
	return f, nil
}

// oneRound values final models of added-up steps: exactly where that many
// coalitions are allowed, else by sampling.
func (u *upload) oneRound(ctx context.Context, g *valuation.Game) (*valuation.Result, error) {
	stop := rules(g.Members, u.flags)
	if u.flags.evaluations == 0 && g.Members <= u.flags.limit {
		stop = valuation.Evaluations(max(100*g.Members, 1<<g.Members))
	}
	r, err := sampled(ctx, g, valuation.Adjusted{}, u.seed, stop, u.flags)
	if r != nil {
		r.Method = "one-round"
	}
	return r, err
}

// watchedHistory moves a bar with every round that is read.
type watchedHistory struct {
	*updates.Folder
	bar    *progress
	rounds int // of which it tells
	asked  int // the last round asked for
}

// Rounds returns how many rounds there are.
func (h *watchedHistory) Rounds() int { return h.rounds }

// Round reads a round.
func (h *watchedHistory) Round(ctx context.Context, round int) (*reconstruct.Round, error) {
	h.asked = round
	r, err := h.Folder.Round(ctx, round)
	h.bar.step()
	return r, err
}

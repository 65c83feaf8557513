// Package equilibrium finds what the members of a data co-operative will do:
// best-response dynamics (Algorithm 1 of the paper) with an exact global best
// response, and a certificate that a profile is a Nash equilibrium over all
// integer deviations. It also explores the equilibria reached from many
// starting points, and bounds what the members could earn if one planner
// decided for all.
package equilibrium

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"grange/game"
	"grange/mechanism"
)

// Solve runs Algorithm 1: members move one after another, each to its smallest
// best response, until a pass over all of them changes nothing.
func Solve(ctx context.Context, g *game.Game, m mechanism.Mechanism, settings Settings) (*Result, error) {
	settings = settings.withDefaults(g)
	if err := g.Contains(settings.Start); err != nil {
		return nil, fmt.Errorf("equilibrium: start: %w", err)
	}
	state := game.NewState(g, settings.Start)
	s := state.Profile()
	result := &Result{Mechanism: m.Name(), Status: IterationLimit}
	if settings.Trace {
		result.Path = append(result.Path, slices.Clone(s))
	}
	seen := map[[sha256.Size]byte]int{fingerprint(s): 0}
	for result.Iterations < settings.MaxIterations {
		moved, err := pass(ctx, g, m, state, settings)
		if err != nil {
			return nil, err
		}
		result.Iterations++
		if settings.Trace {
			result.Path = append(result.Path, slices.Clone(s))
		}
		if settings.Progress != nil {
			settings.Progress(result.Iterations)
		}
		if float64(moved) < settings.Tolerance {
			result.Status = Converged
			break
		}
		print := fingerprint(s)
		if before, ok := seen[print]; ok {
			result.Status, result.CycleLength = Cycle, result.Iterations-before
			break
		}
		seen[print] = result.Iterations
	}
	if err := result.settle(g, m, s); err != nil {
		return nil, err
	}
	certificate, err := Certify(ctx, g, m, s, settings.Exhaustive)
	if err != nil {
		return nil, err
	}
	result.Certificate = certificate
	if result.Status == Converged && !certificate.Certified {
		result.Warnings = append(result.Warnings, fmt.Sprintf(
			"%s stopped within the tolerance of %g, but %s could still gain %.6g by contributing %d",
			m.Name(), settings.Tolerance, g.Members[certificate.Member].Name, certificate.Regret, certificate.Deviation))
	}
	return result, nil
}

// pass lets every member move once and returns the largest move.
func pass(ctx context.Context, g *game.Game, m mechanism.Mechanism, s *game.State, settings Settings) (moved int64, err error) {
	seen := s
	if settings.Simultaneous {
		seen = game.NewState(g, s.Profile())
	}
	for _, n := range settings.Order {
		x, _, err := bestResponse(ctx, g, m, seen, n, settings.Exhaustive)
		if err != nil {
			return 0, err
		}
		before := s.Profile()[n]
		moved = max(moved, x-before, before-x)
		if x != before {
			s.Set(n, x)
		}
	}
	return moved, nil
}

// bestResponse returns the smallest contribution that maximises member n's
// payoff when the others play s, and that payoff. With exhaustive it tries
// every integer.
func bestResponse(ctx context.Context, g *game.Game, m mechanism.Mechanism, s *game.State, n int, exhaustive bool) (int64, float64, error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, err
	}
	p, err := newPayoff(g, m, s, n)
	if err != nil {
		return 0, 0, err
	}
	if exhaustive {
		p.bounded = nil
	}
	found := newSearch(ctx, p.at)
	found.respond(p, g.Minimum, g.Members[n].Capacity, s.Profile()[n])
	if errors.Is(found.err, ErrNotFinite) {
		return 0, 0, notFinite(g, m, s.Profile(), n, found.bad, p.at(found.bad))
	}
	return found.best, found.value, found.err
}

// settle fills in what the members get at s.
func (r *Result) settle(g *game.Game, m mechanism.Mechanism, s game.Profile) error {
	var indices []float64
	var err error
	if approximate, ok := m.(mechanism.Approximate); ok {
		indices, r.IndexError, err = approximate.Values(g, s)
	} else {
		indices, err = m.Indices(g, s)
	}
	if err != nil {
		return err
	}
	r.Contributions = s
	r.Indices = indices
	r.Shares = game.Shares(indices, g.Negative)
	r.Accuracy = g.AccuracyAt(s)
	r.Profit = g.Profit.At(r.Accuracy)
	r.Payoffs = g.Payoffs(s, r.Shares, r.Profit)
	for n, u := range r.Payoffs {
		if !game.Finite(u) {
			return notFinite(g, m, s, n, s[n], u)
		}
		r.Welfare += u
	}
	return nil
}

// fingerprint identifies a profile.
func fingerprint(s game.Profile) [sha256.Size]byte {
	b := make([]byte, 8*len(s))
	for n, x := range s {
		binary.LittleEndian.PutUint64(b[8*n:], uint64(x))
	}
	return sha256.Sum256(b)
}

// Command game measures the solver: against trying every integer on the
// five-hospital scenario, and alone on large co-operatives. Every figure comes
// from this run on this machine; ratios are what to compare across machines.
// Run it with `make bench-game`.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"grange/curve"
	"grange/equilibrium"
	"grange/game"
	"grange/mechanism"
)

func main() {
	one := flag.String("case", "", "run one large case and print it (used by the program itself to measure memory)")
	quick := flag.Bool("quick", false, "leave out D = 1,000,000 by enumeration, which takes a minute")
	flag.Parse()
	if err := run(*one, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "bench/game:", err)
		os.Exit(1)
	}
}

func run(one string, quick bool) error {
	if one != "" {
		for _, c := range large() {
			if c.name == one {
				return c.measure()
			}
		}
		return fmt.Errorf("no case %q", one)
	}
	runtime.GOMAXPROCS(1)
	fmt.Printf("%s %s/%s, one core\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if err := againstEnumeration(quick); err != nil {
		return err
	}
	if err := together(); err != nil {
		return err
	}
	if err := shapley(); err != nil {
		return err
	}
	fmt.Println("\nLarge co-operatives, D = 1,000,000 each, solved and certified, each in its own process (one core):")
	for _, c := range large() {
		if err := c.spawn(); err != nil {
			return err
		}
	}
	return nil
}

// hospitals is the five-hospital scenario with capacity d each; profit grows
// with d so that the equilibrium stays inside the box.
func hospitals(d int64) *game.Game {
	c := curve.LogLinear{Alpha: [5]float64{0.1736, 0.002363 * 1e4 / float64(d), 1, -2.07e-6 * 1e4 / float64(d), 0.0999}}
	g := &game.Game{
		Accuracy: game.Accuracy{Clean: c, Gamma: 0.92, Untrained: c.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded},
		Profit:   game.PowerProfit{Slope: 1.5 * float64(d), Exponent: 2},
		Cost:     game.PowerCost{},
		Minimum:  1,
	}
	for n, noise := range []float64{0.1, 0.1, 0.1, 0, 0} {
		g.Members = append(g.Members, game.Member{Name: fmt.Sprint(n + 1), Capacity: d, Noise: noise, Privacy: 0.4})
	}
	return g
}

// best returns the shortest of a few runs.
func best(runs int, f func() error) (time.Duration, error) {
	shortest := time.Duration(1<<63 - 1)
	for range runs {
		start := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		shortest = min(shortest, time.Since(start))
	}
	return shortest, nil
}

func againstEnumeration(quick bool) error {
	fmt.Println("Five hospitals, solved and certified by bounds and by trying every integer:")
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "D\tmechanism\tbounds\tenumeration\tratio\tsame answer\t")
	sizes := []int64{10_000, 1_000_000}
	if quick {
		sizes = sizes[:1]
	}
	for _, d := range sizes {
		g := hospitals(d)
		for _, m := range mechanism.All() {
			var fast, slow *equilibrium.Result
			a, err := best(9, func() (err error) {
				fast, err = equilibrium.Solve(context.Background(), g, m, equilibrium.Settings{})
				return err
			})
			if err != nil {
				return err
			}
			b, err := best(1, func() (err error) {
				slow, err = equilibrium.Solve(context.Background(), g, m, equilibrium.Settings{Exhaustive: true})
				return err
			})
			if err != nil {
				return err
			}
			same := slices.Equal(fast.Contributions, slow.Contributions) && fast.Status == slow.Status && fast.Iterations == slow.Iterations
			fmt.Fprintf(w, "%d\t%s\t%v\t%v\t%.0f×\t%v\t\n", d, m.Name(), a.Round(time.Microsecond), b.Round(time.Microsecond), float64(b)/float64(a), same)
			if !same {
				w.Flush()
				return fmt.Errorf("%s at D = %d: bounds end at %v, enumeration at %v", m.Name(), d, fast.Contributions, slow.Contributions)
			}
		}
	}
	return w.Flush()
}

func together() error {
	g := hospitals(10_000)
	t, err := best(21, func() error {
		for _, m := range mechanism.All() {
			if _, err := equilibrium.Solve(context.Background(), g, m, equilibrium.Settings{}); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Printf("\nAll four mechanisms together at D = 10,000: %v\n", t.Round(10*time.Microsecond))
	return err
}

func shapley() error {
	fmt.Println("\nShapley indices of distinct members, by quadrature:")
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "N\ttime\tstated error bound\t")
	for _, n := range []int{21, 100, 1000} {
		g := cooperative(n, 9)
		s := equilibrium.StartAt(g, 0.5)
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		for i := range s {
			s[i] = 1 + rng.Int64N(g.Members[i].Capacity)
		}
		var bound float64
		t, err := best(3, func() (err error) {
			_, bound, err = mechanism.SV{}.Values(g, s)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d\t%v\t%.1e\t\n", n, t.Round(10*time.Microsecond), bound)
	}
	return w.Flush()
}

// largeCase is one big co-operative.
type largeCase struct {
	name      string
	mechanism mechanism.Mechanism
	members   int
}

func large() []largeCase {
	return []largeCase{
		{"EG-10000", mechanism.EG{}, 10_000},
		{"LP-10000", mechanism.LP{}, 10_000},
		{"LOO-1000", mechanism.LOO{}, 1_000},
		{"SV-100", mechanism.SV{}, 100},
	}
}

// cooperative draws n members who differ in everything.
func cooperative(n int, seed uint64) *game.Game {
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	c := curve.Power{A: 0.95, B: 40, C: 2500, D: 0.5}
	g := &game.Game{
		Accuracy: game.Accuracy{Clean: c, Gamma: 0.92, Untrained: c.At(0), Floor: -game.Unbounded, Ceiling: game.Unbounded},
		Profit:   game.PowerProfit{Slope: 3e5 * float64(n), Exponent: 2},
		Cost:     game.PowerCost{},
		Minimum:  1,
	}
	for i := range n {
		g.Members = append(g.Members, game.Member{
			Name: fmt.Sprint(i + 1), Capacity: 1_000_000,
			Noise: 0.3 * rng.Float64(), Privacy: 0.2 + 0.4*rng.Float64(),
		})
	}
	return g
}

func (c largeCase) measure() error {
	runtime.GOMAXPROCS(1)
	g := cooperative(c.members, 3)
	start := time.Now()
	r, err := equilibrium.Solve(context.Background(), g, c.mechanism, equilibrium.Settings{})
	if err != nil {
		return err
	}
	fmt.Printf("%-9s %-9s %3d iterations, certified %v, %v", c.name, r.Status, r.Iterations, r.Certificate.Certified, time.Since(start).Round(time.Millisecond))
	return nil
}

// spawn measures the case in a process of its own, for its peak memory.
func (c largeCase) spawn() error {
	cmd := exec.Command(os.Args[0], "-case", c.name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	memory := "unknown"
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		memory = fmt.Sprintf("%d MB", usage.Maxrss/1024)
	}
	fmt.Printf("  %s, peak memory %s\n", strings.TrimSpace(string(out)), memory)
	return nil
}

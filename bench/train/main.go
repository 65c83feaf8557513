// Command train measures Grange's training engine against JAX on the same
// cores in one run, and its matrix product against the machine's arithmetic
// peak. It prints ratios; bench/train/run.sh sets everything up and calls it.
//
// Other programs disturb a measurement, so the two sides take turns and the
// best of several turns counts for each. On one core both sides are timed by
// the processor time of their process, which is the time on the wall when
// nothing else runs; on several cores, by the wall.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"text/tabwriter"

	"grange/nn"
)

func main() {
	var (
		cores  = flag.Int("cores", 1, "cores that both sides may use; the caller pins the process to them")
		models = flag.String("models", "softmax,mlp,cnn,resnet18", "what to train")
		batch  = flag.Int("batch", 64, "batch size")
		turns  = flag.Int("turns", 7, "how often each side is measured")
		python = flag.String("python", "", "Python with JAX; empty leaves JAX out")
		script = flag.String("script", "bench/peers/jax_train.py", "the JAX side")
		matrix = flag.Bool("matrix", true, "measure the matrix product too")
	)
	flag.Parse()
	runtime.GOMAXPROCS(*cores)
	if err := run(*cores, *batch, *turns, strings.Split(*models, ","), *python, *script, *matrix); err != nil {
		fmt.Fprintln(os.Stderr, "train:", err)
		os.Exit(1)
	}
}

func run(cores, batch, turns int, models []string, python, script string, matrix bool) error {
	if matrix {
		if err := matrixTable(turns); err != nil {
			return err
		}
	}
	var peer *jax
	if python != "" {
		var err error
		if peer, err = startJAX(python, script); err != nil {
			return err
		}
		defer peer.stop()
	}
	fmt.Printf("\nTraining, batch %d, on %d core(s): images per second, best of %d turns\n", batch, cores, turns)
	if cores == 1 {
		fmt.Println("Both sides are timed by processor time.")
	} else {
		fmt.Printf("Grange trains %d networks side by side; JAX trains one with %d threads.\n", cores, cores)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "model\t")
	if peer != nil {
		fmt.Fprintf(table, "%s\t", peer.version)
	}
	for _, kernel := range nn.Kernels() {
		fmt.Fprintf(table, "%s\t", kernel)
		if peer != nil {
			fmt.Fprint(table, "× JAX\t")
		}
	}
	fmt.Fprintln(table)
	for _, name := range models {
		rates, peerRate, err := compare(name, cores, batch, turns, peer)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t", name)
		if peer != nil {
			fmt.Fprintf(table, "%s\t", figure(peerRate))
		}
		for _, rate := range rates {
			fmt.Fprintf(table, "%s\t", figure(rate))
			if peer != nil {
				fmt.Fprintf(table, "%.2f\t", rate/peerRate)
			}
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// figure prints a rate with a decimal where it is small.
func figure(rate float64) string {
	if rate < 100 {
		return fmt.Sprintf("%.1f", rate)
	}
	return fmt.Sprintf("%.0f", rate)
}

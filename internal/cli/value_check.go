package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"grange/valuation"
)

// checkValue finds what is wrong with the flags before any work is done.
func checkValue(path string, flags *valueFlags) error {
	for _, out := range []struct{ flag, path string }{{"csv", flags.csv}, {"plot", flags.plot}, {"report", flags.report}} {
		if err := writable(out.flag, out.path); err != nil {
			return err
		}
	}
	if _, err := chartFormat(flags.plot); err != nil {
		return err
	}
	if flags.method == "" && !flags.compare && (flags.given("evaluations") || flags.given("stop-error") || flags.given("stop-ranks")) {
		flags.method = "adjusted" // who sets bounds to sampling wants a sample
	}
	if err := checkPartners(flags); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() == flags.retrain {
		if flags.retrain {
			return &usageError{problem: path + " is a folder, want a scenario file with --retrain", try: "grange value " + path}
		}
		return &usageError{problem: path + " is a file, want a folder of updates", try: "grange train " + path + " --save-updates DIR and grange value DIR; or grange value " + path + " --retrain"}
	}
	if flags.method == "" && flags.retrain {
		flags.method = "exact"
	}
	if flags.method != "" && !slices.Contains(valueMethods(), flags.method) {
		return &usageError{problem: fmt.Sprintf("--method is %q, want one of %s", flags.method, strings.Join(valueMethods(), ", ")), try: "leave --method out"}
	}
	if slices.Contains(updateMethods, flags.method) && flags.retrain {
		return &usageError{problem: "--method " + flags.method + " works on saved updates", try: "leave --retrain out and name a folder of updates, or use --method exact"}
	}
	return checkAmounts(flags)
}

// checkPartners complains about flags that mean nothing without another one.
func checkPartners(flags *valueFlags) error {
	wrong := func(problem, try string) error { return &usageError{problem: problem, try: try} }
	for _, name := range []string{"contributions", "repeats", "results", "retries", "backend", "plugin", "precision", "processes"} {
		if flags.other(name) && !flags.retrain {
			return wrong("--"+name+" is about training every coalition", "leave it out, or name a scenario and add --retrain")
		}
	}
	if flags.given("truth") && !flags.compare {
		return wrong("--truth is what a comparison judges by", "add --compare")
	}
	if flags.given("report") && !flags.compare {
		return wrong("--report is the page of a comparison", "add --compare, or draw the values with --plot FILE")
	}
	for _, name := range []string{"method", "amount", "csv", "plot", "time"} {
		if flags.given(name) && flags.compare {
			return wrong("--"+name+" is about one method, and --compare tries all", "leave one of them out")
		}
	}
	if (flags.method == "beta") != flags.given("beta") {
		return wrong("--method beta and --beta α,β belong together", "--method beta --beta 4,1")
	}
	if flags.given("beta") && (len(flags.beta) != 2 || !(flags.beta[0] > 0 && flags.beta[1] > 0)) {
		return wrong(fmt.Sprintf("--beta is %v, want two numbers above 0", numbers{&flags.beta}), "--beta 4,1")
	}
	if flags.method == "loo" || needsAll(flags.method) {
		for _, name := range []string{"evaluations", "stop-error", "stop-ranks"} {
			if flags.given(name) {
				return wrong("--"+name+" is for methods that sample, and "+flags.method+" does not", "leave it out, or --method adjusted")
			}
		}
	}
	return nil
}

// checkAmounts complains about numbers out of range.
func checkAmounts(flags *valueFlags) error {
	for _, n := range []struct {
		flag         string
		value, least int
	}{
		{"workers", flags.workers, 1}, {"repeats", flags.repeats, 1}, {"retries", flags.retries, 0},
		{"evaluations", flags.evaluations, 2}, {"stop-ranks", flags.stopRanks, 2},
	} {
		if flags.given(n.flag) && n.value < n.least {
			return &usageError{problem: fmt.Sprintf("--%s is %d, want a whole number ≥ %d", n.flag, n.value, n.least), try: "leave --" + n.flag + " out"}
		}
	}
	if flags.given("stop-error") && !(flags.stopError > 0) {
		return &usageError{problem: fmt.Sprintf("--stop-error is %v, want a number above 0", flags.stopError), try: "--stop-error 0.002"}
	}
	if flags.given("time") && flags.time <= 0 {
		return &usageError{problem: fmt.Sprintf("--time is %v, want a time above 0", flags.time), try: "--time 10m"}
	}
	if flags.limit < 1 || flags.limit > valuation.ExactLimit {
		return &usageError{problem: fmt.Sprintf("--limit is %d, want 1 to %d", flags.limit, valuation.ExactLimit), try: "use a method that samples: --method adjusted"}
	}
	return nil
}

package cli

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/term"

	"grange/report/chart"
)

// print writes a result to stdout in one go, unless the command was stopped.
func (a *app) print(ctx context.Context, text []byte) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := a.env.Stdout.Write(text)
	return err
}

func (a *app) printJSON(ctx context.Context, v any) error {
	data, err := marshal(v)
	if err != nil {
		return err
	}
	return a.print(ctx, data)
}

// marshal writes JSON on one line, with the characters as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return b.Bytes(), nil
}

// save replaces a file as a whole, unless the command was stopped.
func (a *app) save(ctx context.Context, path string, data []byte) error {
	a.writing.Lock()
	defer a.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := renameio.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, errors.Unwrap(err))
	}
	return nil
}

// writable complains about an output file before hours of work are spent on it.
func writable(flag, path string) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return &usageError{problem: fmt.Sprintf("--%s %s is a directory, want a file", flag, path), try: "name a file in it"}
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return &usageError{problem: fmt.Sprintf("--%s %s: there is no directory %s", flag, path, filepath.Dir(path)), try: "mkdir -p " + filepath.Dir(path)}
	}
	return nil
}

func encodeCSV(rows [][]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if err := w.WriteAll(rows); err != nil {
		return nil, fmt.Errorf("csv: %w", err)
	}
	return b.Bytes(), nil
}

// isTerminal reports whether w is one.
func isTerminal(w any) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// colour reports whether stdout shows colours.
func (a *app) colour() bool {
	return isTerminal(a.env.Stdout) && a.env.Getenv("NO_COLOR") == "" && a.env.Getenv("TERM") != "dumb"
}

// chartFormat returns the format that a file name asks for; none without one.
func chartFormat(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	format := strings.TrimPrefix(strings.ToLower(filepath.Ext(path)), ".")
	if slices.Contains(chart.Formats, format) {
		return format, nil
	}
	return "", &usageError{problem: fmt.Sprintf("--plot %s: no such picture format", path), try: "name a file that ends in .svg, .png or .pdf"}
}

// saveChart draws a chart in the format that the file's name asks for.
func (a *app) saveChart(ctx context.Context, path string, c chart.Chart) error {
	format, err := chartFormat(path)
	if err != nil {
		return err
	}
	picture, err := c.File(format)
	if err != nil {
		return err
	}
	return a.save(ctx, path, picture)
}

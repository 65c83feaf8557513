package cli_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"grange/model"
)

// uploads trains a few members for one round and returns the folder with their
// updates.
func uploads(t *testing.T, members int) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("name: sheds\nmembers:\n")
	for n := range members {
		fmt.Fprintf(&text, "  - {name: m%02d, data: 32, noise: %.2f, privacy: 0.4}\n", n, 0.05*float64(n%8))
	}
	text.WriteString("training: {dataset: fashion, model: softmax, rounds: 1, epochs: 1, batch: 16, rate: 0.1, seed: 7}\n")
	file, folder := filepath.Join(t.TempDir(), "sheds.yaml"), filepath.Join(t.TempDir(), "updates")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := run(t.Context(), "train", file, "--save-updates", folder); code != 0 {
		t.Fatal(stderr)
	}
	return folder
}

// weights are the files of a round: the global model before it, and the updates.
func weights(folder string, member int) string {
	if member < 0 {
		return filepath.Join(folder, "round-000001-global.safetensors")
	}
	return filepath.Join(folder, fmt.Sprintf("round-000001-member-%03d.safetensors", member))
}

// rewrite copies a model in a folder of updates, and changes it.
func rewrite(t *testing.T, from, to string, change func(model []float32)) {
	t.Helper()
	spec, err := model.New("softmax", model.Shape{Channels: 1, Height: 28, Width: 28}, 10)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	w, _, err := model.ReadSafetensors(bytes.NewReader(data), spec)
	if err != nil {
		t.Fatal(err)
	}
	change(w.Flat)
	var b bytes.Buffer
	if err := model.WriteSafetensors(&b, w, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// refused runs a command that must fail and print nothing but an error.
func refused(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	got, stdout, stderr := run(t.Context(), args...)
	if got != code || stdout != "" || !strings.Contains(stderr, want) {
		t.Errorf("grange %s: exit code %d, want %d, and %q in\n%s%s", strings.Join(args, " "), got, code, want, stdout, stderr)
	}
}

// Members who spoil a model get no money for it, whatever the signs say: by raw
// indices the worst would be paid most, and the best would pay.
func TestValueRefusesMoneyForHarm(t *testing.T) {
	folder := uploads(t, 3)
	rewrite(t, weights(folder, 2), weights(folder, -1), func([]float32) {}) // it starts trained
	for _, member := range []int{0, 2} {
		rewrite(t, weights(folder, -1), weights(folder, member), func(model []float32) {
			for i := range model {
				model[i] = -model[i]
			}
		})
	}
	csv, page := filepath.Join(t.TempDir(), "v.csv"), filepath.Join(t.TempDir(), "v.html")
	for _, args := range [][]string{
		{"--amount", "100000"}, {"--json"}, {"--csv", csv}, {"--method", "loo"}, {"--method", "gtg"}, {"--compare"}, {"--compare", "--report", page},
	} {
		refused(t, 1, "Try: --negative clip", append([]string{"value", folder, "--negative", "raw"}, args...)...)
	}
	for _, path := range []string{csv, page} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was written", path)
		}
	}
	if code, _, stderr := run(t.Context(), "value", folder, "--amount", "100000"); code != 0 {
		t.Error(stderr)
	}
}

// A model that is not a number is worth nothing anybody could say.
func TestValueRefusesModelsThatAreNotNumbers(t *testing.T) {
	folder := uploads(t, 3)
	rewrite(t, weights(folder, 1), weights(folder, 1), func(model []float32) { model[17] = float32(math.NaN()) })
	for _, method := range []string{"loo", "exact", "adjusted", "gtg", "multi-round", "one-round"} {
		refused(t, 1, "m01", "value", folder, "--method", method)
		refused(t, 1, "Try: lower training.rate", "value", folder, "--method", method)
	}
}

// More members than a coalition can hold are refused by every method.
func TestValueRefusesTooManyMembers(t *testing.T) {
	folder := uploads(t, 65)
	for _, method := range []string{"loo", "exact", "adjusted", "gtg", "one-round"} {
		refused(t, 2, "Try: join small members into groups", "value", folder, "--method", method)
	}
}

// What a method cannot do is said before a single model is evaluated.
func TestValueTellsBeforeItStarts(t *testing.T) {
	folder := uploads(t, 14)
	refused(t, 2, "linear programs with 2^N variables, for up to 12 members; these are 14\nTry: the Shapley value", "value", folder, "--method", "nucleolus", "--limit", "14")
	refused(t, 2, "Try: the Shapley value", "value", folder, "--method", "least-core")
	refused(t, 2, "they need 16,384 evaluations (", "value", folder, "--method", "exact")
	refused(t, 2, "that one took) and 128 KiB of memory\nTry: --limit 14", "value", folder, "--method", "multi-round")
	refused(t, 2, "they need 16,384 evaluations (", "value", folder, "--compare")
	files, err := filepath.Glob(filepath.Join(folder, "worths-*.txt"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("models were evaluated: %s, %v", text, err)
	}

	// Nobody is paid by a sampler that has no sample; the number it asks for is enough, and one less is not.
	for method, least := range map[string]string{"gtg": "184", "permutation": "15", "adjusted": "4", "antithetic": "28"} {
		refused(t, 2, "Try: --evaluations "+least+", or more", "value", folder, "--method", method, "--evaluations", "3", "--amount", "1000")
		if code, _, stderr := run(t.Context(), "value", folder, "--method", method, "--evaluations", least, "--amount", "1000"); code != 0 {
			t.Errorf("%s: %s", method, stderr)
		}
	}
}

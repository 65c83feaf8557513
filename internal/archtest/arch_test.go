package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "grange"

// rule forbids imports. Packages and imports are matched as path prefixes.
type rule struct {
	packages []string // below the module, "" for all
	except   []string
	imports  []string // "grange/…" for our own, else the standard library or a module
	why      string
}

var (
	thinking = []string{"interval", "curve", "game", "mechanism", "equilibrium", "theory", "valuation"}
	training = []string{"nn", "model", "dataset", "federated"}
)

var rules = []rule{
	{packages: []string{"interval"}, imports: []string{"grange/"},
		why: "enclosures are arithmetic: they know nothing of games"},
	{packages: []string{"game"}, imports: []string{"grange/curve", "grange/mechanism", "grange/equilibrium", "grange/theory", "grange/scenario"},
		why: "the game is plain values; algorithms import it, not the other way round"},
	{packages: []string{"curve"}, imports: []string{"grange/game", "grange/mechanism", "grange/equilibrium", "grange/theory", "grange/scenario"},
		why: "a curve can be used without a game"},
	{packages: []string{"mechanism"}, imports: []string{"grange/equilibrium", "grange/theory", "grange/scenario"},
		why: "a sharing rule does not know who will answer it, or how"},
	{packages: thinking, imports: []string{"grange/scenario"},
		why: "the library works without files: scenarios are made of games, games not of scenarios"},
	{packages: []string{"scenario"}, imports: []string{"grange/theory", "grange/lab", "grange/report"},
		why: "reading a file computes nothing"},
	{packages: thinking, imports: []string{"grange/nn", "grange/model", "grange/dataset", "grange/federated"},
		why: "thinking and training meet in lab, nowhere else"},
	{packages: training, imports: []string{"grange/game", "grange/mechanism", "grange/equilibrium", "grange/theory", "grange/scenario", "grange/curve"},
		why: "thinking and training meet in lab, nowhere else"},
	{packages: []string{"nn"}, imports: []string{"grange/dataset", "grange/federated", "grange/train"},
		why: "the engine runs an architecture; on what and with whom is decided above"},
	{packages: []string{"dataset"}, imports: []string{"grange/model", "grange/federated", "grange/nn"},
		why: "data do not depend on what is trained on them"},
	{packages: []string{"model"}, imports: []string{"grange/federated", "grange/dataset", "grange/nn"},
		why: "an architecture does not depend on how or on what it is trained"},
	{packages: []string{"lab"}, imports: []string{"grange/report", "grange/internal/cli"},
		why: "experiments make results; showing them is somebody else's job"},
	{packages: append(append([]string{"scenario", "report", "lab", "train"}, thinking...), training...), imports: []string{"grange/internal/cli", "grange/cmd"},
		why: "the front door opens inwards: nothing below knows of commands"},
	{packages: append(append([]string{"scenario", "train"}, thinking...), training...), imports: []string{"grange/lab"},
		why: "the laboratory joins what stands below it; nothing below needs it"},
	{packages: append(append([]string{"scenario", "lab"}, thinking...), training...), imports: []string{"grange/report"},
		why: "results do not know how they will be drawn"},
	{packages: thinking, imports: []string{"os", "net", "time", "log", "log/slog", "flag", "io/fs"},
		except: []string{"valuation/store"},
		why:    "pure below, effects above: no files, network, clock, flags or logs"},
	{packages: []string{"federated"}, imports: []string{"os", "net", "time", "log", "log/slog", "flag", "io/fs"},
		except: []string{"federated/network", "federated/checkpoint"},
		why:    "the round state machine is pure; files and network have packages of their own"},
	{packages: []string{"federated/network/store", "federated/network/identity", "federated/network/listen", "federated/network/objects"},
		imports: []string{"grange/federated/network/silo", "grange/federated/network/flower", "grange/federated/network/coordinator", "grange/train"},
		why:     "what a coordinator is made of does not know who talks to it"},
	{packages: []string{"federated/network/silo", "federated/network/flower"},
		imports: []string{"grange/federated/network/store", "grange/federated/network/coordinator"},
		why:     "a transport tells the federation what members say; where that is kept is not its affair"},
	{packages: []string{""}, except: []string{"federated/network/store"}, imports: []string{"modernc.org/sqlite", "database/sql"},
		why: "one package knows that the record is a database"},
	{packages: []string{""}, except: []string{"federated/network", "bench"}, imports: []string{"google.golang.org/grpc"},
		why: "gRPC is how members are reached, and nobody else's business"},
	{packages: []string{""}, except: []string{"federated/network/coordinator"}, imports: []string{"github.com/prometheus/client_golang"},
		why: "what is measured is decided where everything comes together"},
	{packages: append(append([]string{"scenario", "report", "internal/cli"}, thinking...), training...), imports: []string{"math/rand"},
		why: "chance comes in as math/rand/v2, seeded"},
	{packages: []string{""}, except: []string{"internal/cli", "cmd", "lab"}, imports: []string{"github.com/spf13/cobra", "github.com/vbauerster/mpb"},
		why: "only the front door talks to a terminal"},
}

// TestImports checks every import of every file that is not a test.
func TestImports(t *testing.T) {
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.ToSlash(filepath.Dir(file))
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rules {
				if r.forbids(dir, imported) {
					t.Errorf("%s imports %s: %s", file, imported, r.why)
				}
			}
		}
	}
}

func (r rule) forbids(dir, imported string) bool {
	under := func(path string, prefixes []string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool {
			return p == "" || path == strings.TrimSuffix(p, "/") || strings.HasPrefix(path, strings.TrimSuffix(p, "/")+"/")
		})
	}
	if !under(dir, r.packages) || under(dir, r.except) {
		return false
	}
	for _, p := range r.imports {
		if strings.HasPrefix(p, module+"/") || strings.Contains(p, ".") {
			if under(imported, []string{p}) {
				return true
			}
		} else if imported == p || p == "net" && strings.HasPrefix(imported, "net/") {
			return true
		}
	}
	return false
}

// TestRulesAreAboutThis keeps the rules themselves honest: each has a reason,
// and each one would catch something.
func TestRulesAreAboutThis(t *testing.T) {
	for _, r := range rules {
		if r.why == "" || len(r.packages) == 0 || len(r.imports) == 0 {
			t.Errorf("rule %+v is incomplete", r)
			continue
		}
		dir := r.packages[0]
		if dir == "" {
			dir = "somewhere"
		}
		target := r.imports[0]
		if target == "grange/" {
			target = "grange/game"
		}
		if !r.forbids(dir, target) {
			t.Errorf("rule on %v does not forbid %s", r.packages, target)
		}
	}
}

// TestPackageDocs fails on a package without a doc comment.
func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		documented[dir] = documented[dir] || parsed.Doc != nil && strings.TrimSpace(parsed.Doc.Text()) != ""
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment", dir)
		}
	}
}

// TestNames fails on package names that say nothing.
func TestNames(t *testing.T) {
	for _, file := range goFiles(t) {
		for _, part := range strings.Split(filepath.ToSlash(filepath.Dir(file)), "/") {
			if slices.Contains([]string{"util", "utils", "common", "types", "helpers", "misc", "legacy"}, part) {
				t.Errorf("%s: %q is no name for a package", file, part)
			}
		}
	}
}

const root = "../.."

// goFiles returns all Go files of the module, by their path in it.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata" {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return filepath.SkipDir // another module
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			files = append(files, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("found only %d Go files", len(files))
	}
	return files
}

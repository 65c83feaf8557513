// Command kernelgen writes the assembly of package nn and of the benchmark of
// the machine's arithmetic peak. It is a module of its own, so that the
// generator's library is no dependency of Grange. Run it with
//
//	go generate ./nn
//
// and check that the committed files are current with
//
//	go -C nn/internal/kernelgen test .
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
)

// outputs are the generated files, by path from the repository's root.
var outputs = []struct {
	path     string
	generate func(*build.Context)
}{
	{"nn/tile_avx512_amd64.s", tilesAVX512},
	{"nn/tile_avx2_amd64.s", tilesAVX2},
	{"nn/channel_amd64.s", channels},
	{"nn/vector_amd64.s", vectors},
	{"internal/fmapeak/peak_amd64.s", peaks},
}

func main() {
	root := flag.String("root", "../../..", "the repository's root")
	flag.Parse()
	for _, o := range outputs {
		text, err := assemble(o.generate)
		if err == nil {
			err = os.WriteFile(filepath.Join(*root, o.path), text, 0o644)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "kernelgen: %s: %v\n", o.path, err)
			os.Exit(1)
		}
	}
}

// assemble runs a generator and returns the text of its assembly file.
func assemble(generate func(*build.Context)) ([]byte, error) {
	ctx := build.NewContext()
	generate(ctx)
	file, err := ctx.Result()
	if err != nil {
		return nil, err
	}
	if err := pass.Compile.Execute(file); err != nil {
		return nil, err
	}
	return printer.NewGoAsm(printer.Config{Argv: []string{"kernelgen"}}).Print(file)
}

// begin opens a function without a stack frame.
func begin(ctx *build.Context, name, signature string, doc ...string) {
	ctx.Function(name)
	ctx.Doc(doc...)
	ctx.Attributes(attr.NOSPLIT)
	ctx.SignatureExpr("func" + signature)
}

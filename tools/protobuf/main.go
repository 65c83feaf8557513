// Command protobuf writes the Go code of .proto files, with compilers that are Go modules pinned in tools/go.mod: nothing
// else has to be installed.
//
//	go run -C tools ./protobuf -root .. federated/network/wire/wire.proto
//
// The code goes beside each file.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	root := flag.String("root", ".", "folder that names of files are relative to")
	out := flag.String("out", "", "folder to write to instead of root")
	flag.Parse()
	if *out == "" {
		*out = *root
	}
	if err := generate(context.Background(), *root, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "protobuf:", err)
		os.Exit(1)
	}
}

// generate compiles the files and has both plugins write their code.
func generate(ctx context.Context, root, out string, names []string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{ImportPaths: []string{root}}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(ctx, names...)
	if err != nil {
		return err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      ordered(files),
	}
	for _, plugin := range []string{
		"google.golang.org/protobuf/cmd/protoc-gen-go",
		"google.golang.org/grpc/cmd/protoc-gen-go-grpc",
	} {
		response, err := run(ctx, plugin, request)
		if err != nil {
			return fmt.Errorf("%s: %w", plugin, err)
		}
		for _, file := range response.File {
			path := filepath.Join(out, filepath.FromSlash(file.GetName()))
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(file.GetContent()), 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

// ordered lists the files and all they import, imports first, as plugins expect.
func ordered(files linker.Files) []*descriptorpb.FileDescriptorProto {
	var list []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var visit func(protoreflect.FileDescriptor)
	visit = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			visit(file.Imports().Get(i).FileDescriptor)
		}
		list = append(list, protodesc.ToFileDescriptorProto(file))
	}
	for _, file := range files {
		visit(file)
	}
	return list
}

// run has one plugin do its work.
func run(ctx context.Context, plugin string, request *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorResponse, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	var stdout bytes.Buffer
	command := exec.CommandContext(ctx, "go", "tool", plugin)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(in), &stdout, os.Stderr
	if err := command.Run(); err != nil {
		return nil, err
	}
	response := &pluginpb.CodeGeneratorResponse{}
	if err := proto.Unmarshal(stdout.Bytes(), response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response, nil
}

//go:build unix

package xla

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"grange/federated"
	"grange/model"
	"grange/train/xla/pjrt"
	"grange/train/xla/pjrt/pjrttest"
)

// fakeService puts a program on the path that stands for NVIDIA's. It returns the file in which that notes what it was
// told, and the folder of temporary files.
func fakeService(t *testing.T) (log, temporary string) {
	t.Helper()
	folder := t.TempDir()
	log, temporary = filepath.Join(folder, "log"), t.TempDir()
	script := "#!/bin/sh\nif [ \"$1\" = -d ]; then echo start; else cat; fi >>" + log + "\n"
	if err := os.WriteFile(filepath.Join(folder, "nvidia-cuda-mps-control"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+string(filepath.ListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", temporary)
	t.Setenv("CUDA_MPS_PIPE_DIRECTORY", "")
	return log, temporary
}

// folders lists the folders of services.
func folders(t *testing.T, temporary string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(temporary, "grange-mps-*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestService starts the service with a pool, and ends it with that.
func TestService(t *testing.T) {
	log, temporary := fakeService(t)
	data := testData()
	spec, err := model.New("mlp", model.Shape(data.Shape()), 3)
	if err != nil {
		t.Fatal(err)
	}
	config := testConfig(t, "well", 4)
	config.Spec, config.Data = spec, data
	for range 2 {
		pool, err := Open(context.Background(), config, federated.Local{})
		if err != nil {
			t.Fatal(err)
		}
		if !pool.Side() || len(pool.Processes()) != 4 || len(folders(t, temporary)) != 1 {
			t.Errorf("side by side %v, %d processes, folders %v", pool.Side(), len(pool.Processes()), folders(t, temporary))
		}
		pool.Close()
	}
	said, err := os.ReadFile(log)
	if err != nil || string(said) != "start\nquit\nstart\nquit\n" {
		t.Errorf("the service was told %q, error %v", said, err)
	}
	if left := folders(t, temporary); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// TestKilledParent kills a program that started the service, which must end all the same.
func TestKilledParent(t *testing.T) {
	log, temporary := fakeService(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), asParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "started\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if len(folders(t, temporary)) != 1 {
		t.Error("no folder of the service")
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for len(folders(t, temporary)) > 0 {
		time.Sleep(time.Millisecond)
	}
	if said, err := os.ReadFile(log); err != nil || string(said) != "start\nquit\n" {
		t.Errorf("the service was told %q, error %v", said, err)
	}
}

// TestPluginFaults has real workers open plugins that fail: the parent says what is wrong.
func TestPluginFaults(t *testing.T) {
	data := testData()
	spec, err := model.New("mlp", model.Shape(data.Shape()), 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		stub pjrttest.Stub
		want error
		text string
	}{
		"another version": {pjrttest.Stub{Major: 1, Devices: 1}, ErrNoPlugin, "version 1.1 of the interface"},
		"no memory":       {pjrttest.Stub{Devices: 1, Fails: 8, Text: "no room"}, ErrMemory, "no room"},
		"busy":            {pjrttest.Stub{Devices: 1, Fails: 13, Text: "all devices are busy"}, ErrWorker, "all devices are busy"},
	} {
		config := testConfig(t, "card", 1)
		config.Spec, config.Data = spec, data
		want := test.want
		if pjrt.Available {
			config.Plugin = test.stub.Build(t)
		} else {
			config.Plugin, want, test.text = "none", ErrUnsupported, "no support"
		}
		_, err := Open(context.Background(), config, federated.Local{})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(config.Cache); err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) > 0 {
			t.Errorf("%s: left %v, error %v", name, left, err)
		}
	}
}

//go:build flower

package flower_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"grange/dataset"
	"grange/federated/network"
	"grange/federated/network/flower"
	"grange/federated/network/flower/npy"
)

// The releases of Flower that are tested, each in an environment that `make flower` makes: clients of start_client, and
// SuperNodes, which call over gRPC before 1.40 and over HTTP since.
const (
	oldClient    = "1.8.0"
	oldSuperNode = "1.23.0"
	newest       = "1.41.0"
)

// environment is a release of Flower.
type environment struct {
	bin  string
	home string
}

func release(t *testing.T, version string) environment {
	t.Helper()
	folder := os.Getenv("GRANGE_FLOWER")
	if folder == "" {
		t.Fatal("GRANGE_FLOWER is not set. Try: make flower")
	}
	return environment{filepath.Join(folder, version, "bin"), t.TempDir()}
}

// output is what a process prints, for the end of a test that fails.
type output struct {
	mutex sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) text() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.String()
}

// start starts a program of the environment, which ends with the test, and returns what it writes to its standard output.
func (e environment) start(t *testing.T, folder, program string, args ...string) (*output, <-chan error) {
	t.Helper()
	cmd := e.command(context.Background(), folder, program, args...)
	result, printed := &output{}, &output{}
	cmd.Stdout, cmd.Stderr = io.MultiWriter(result, printed), printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		ended <- cmd.Wait()
		close(finished)
	}()
	t.Cleanup(func() {
		// The program has a process group of its own: its children end with it.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-finished
		if t.Failed() {
			t.Logf("%s %q printed:\n%s", program, args, printed.text())
		}
	})
	return result, ended
}

func (e environment) command(ctx context.Context, folder, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(e.bin, program), args...)
	cmd.Dir = folder
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 10 * time.Second
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PATH=") {
			cmd.Env = append(cmd.Env, variable)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+e.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "FLWR_HOME="+e.home,
		"FLWR_TELEMETRY_ENABLED=0", "FLWR_DISABLE_UPDATE_CHECK=1", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	return cmd
}

// run runs a program of the environment to its end.
func (e environment) run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	text, err := e.command(t.Context(), folder, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, text)
	}
	return string(text)
}

// build makes an app's bundle.
func (e environment) build(t *testing.T, source string) []byte {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "app")
	if err := os.CopyFS(folder, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	e.run(t, folder, "flwr", "build")
	files, err := filepath.Glob(filepath.Join(folder, "*.fab"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// data writes a member's images and labels to files that numpy reads.
func (w *world) data(t *testing.T, name string) string {
	t.Helper()
	member := -1
	for i := range w.names {
		if w.names[i] == name {
			member = i
		}
	}
	data, err := fashion()
	if err != nil {
		t.Fatal(err)
	}
	shard, size := w.shards[member], w.config.Spec.Input.Size()
	values := make([]float32, len(shard.Points)*size)
	dataset.NewNormalizer(&data.Train).Batch(values, &data.Train, shard.Points)
	folder := t.TempDir()
	labels := npy.AppendHeader(nil, npy.Int64, []int{len(shard.Labels)})
	for _, label := range shard.Labels {
		labels = binary.LittleEndian.AppendUint64(labels, uint64(label))
	}
	for file, content := range map[string][]byte{
		"images.npy": append(npy.AppendHeader(nil, npy.Float32, []int{len(shard.Points), size}), raw(values)...), "labels.npy": labels,
	} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// port is one that is free.
func port(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// makeKey writes a key as SuperNodes want it, in OpenSSH's format, with the public half beside it.
const makeKey = `
import sys
from cryptography.hazmat.primitives import serialization as s
from cryptography.hazmat.primitives.asymmetric import ec
key = ec.generate_private_key(ec.SECP384R1())
open(sys.argv[1], "wb").write(key.private_bytes(s.Encoding.PEM, s.PrivateFormat.OpenSSH, s.NoEncryption()))
open(sys.argv[1] + ".pub", "wb").write(key.public_key().public_bytes(s.Encoding.OpenSSH, s.PublicFormat.OpenSSH))
`

// superNode starts flower-supernode for a member, with its key enrolled.
func (s *serving) superNode(t *testing.T, e environment, version, member string, config string) {
	t.Helper()
	folder := t.TempDir()
	key, authority := filepath.Join(folder, "key"), filepath.Join(folder, "authority.pem")
	e.run(t, folder, "python", "-c", makeKey, key)
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.registrar.EnrolKey(t.Context(), member, public); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(authority, s.authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--superlink", s.address, "--root-certificates", authority, "--auth-supernode-private-key", key}
	if config != "" {
		args = append(args, "--node-config", config)
	}
	args = append(args, apiPort(t, version)...)
	e.start(t, folder, "flower-supernode", args...)
}

// command is grange itself.
func command(t *testing.T) environment {
	t.Helper()
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(folder, "grange"), "grange/cmd/grange")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return environment{folder, t.TempDir()}
}

// Clients of start_client, old and new, and SuperNodes with authentication, old and new, train for five rounds next to two
// silos in one federation. Everything is a process of its own, started as docs/flower.md says.
func TestFlower(t *testing.T) {
	grange, e8, e23, e41 := command(t), release(t, oldClient), release(t, oldSuperNode), release(t, newest)
	w := newWorld(t, "mlp", 5, "north", "south", "shed-a", "shed-b", "shed-c", "shed-d") // for the data that the clients have
	root, err := filepath.Abs("../../../examples/flower")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	address := "127.0.0.1:" + port(t)
	app := filepath.Join(folder, "shed.fab")
	if err := os.WriteFile(app, e41.build(t, filepath.Join(root, "app")), 0o600); err != nil {
		t.Fatal(err)
	}
	grange.run(t, folder, "grange", "coordinator", "init", "coop", "--host", "127.0.0.1")
	for i, member := range []string{"shed-c", "shed-d"} {
		[]environment{e23, e41}[i].run(t, folder, "python", "-c", makeKey, member+".key")
		grange.run(t, folder, "grange", "coordinator", "enrol-key", "coop", member, "--key", member+".key.pub")
	}
	printed, ended := grange.start(t, folder, "grange", "coordinator", "start", "coop", filepath.Join(root, "flower.yaml"),
		"--listen", address, "--flower", "shed-a,shed-b", "--flower-app", app, "--json")
	for _, member := range []string{"north", "south"} {
		token := grange.run(t, folder, "grange", "coordinator", "invite", "coop", member, "--quiet")
		for { // until the coordinator listens
			join := grange.command(t.Context(), folder, "grange", "silo", "join", "https://"+address, "--dir", member, "--token", "-")
			join.Stdin = strings.NewReader(token)
			text, err := join.CombinedOutput()
			if err == nil {
				break
			}
			select {
			case err := <-ended:
				t.Fatalf("the coordinator ended: %v", err)
			case <-t.Context().Done():
				t.Fatalf("%s", text)
			case <-time.After(100 * time.Millisecond):
			}
		}
		grange.start(t, folder, "grange", "silo", "run", "--dir", member, "--data", "fashion", "--contribute", "300")
	}
	authority := filepath.Join(folder, "coop", "identity", "authority.pem")
	client := filepath.Join(root, "client.py")
	_, oldEnded := e8.start(t, folder, "python", client, address, w.data(t, "shed-a"))
	// The newer one takes its connection under TLS.
	_, newEnded := e41.start(t, folder, "python", client, address, w.data(t, "shed-b"), authority)
	for i, member := range []string{"shed-c", "shed-d"} {
		args := []string{"--superlink", address, "--root-certificates", authority, "--auth-supernode-private-key", member + ".key",
			"--node-config", `data="` + w.data(t, member) + `"`}
		[]environment{e23, e41}[i].start(t, folder, "flower-supernode", append(args, apiPort(t, []string{oldSuperNode, newest}[i])...)...)
	}
	for name, ended := range map[string]<-chan error{"coordinator": ended, "old client": oldEnded, "new client": newEnded} {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the %s ended with %v", name, err)
			}
		case <-time.After(2 * patience):
			t.Fatalf("the %s does not end", name)
		}
	}
	var result struct {
		Accuracy float64
		Rounds   []struct {
			Accuracy float64
			Absent   []any
		}
	}
	if err := json.Unmarshal([]byte(printed.text()), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Rounds) != 5 || result.Accuracy < 0.6 {
		t.Errorf("%+v", result)
	}
	for i, round := range result.Rounds {
		t.Logf("round %d: accuracy %.3f", i+1, round.Accuracy)
		if len(round.Absent) != 0 {
			t.Errorf("round %d went on without %v", i+1, round.Absent)
		}
	}
	t.Log(grange.run(t, folder, "grange", "coordinator", "status", "coop"))
}

// apiPort is the flag with which a SuperNode is told the port it talks to its apps on.
func apiPort(t *testing.T, version string) []string {
	if version == newest {
		return []string{"--port", port(t)}
	}
	return []string{"--clientappio-api-address", "127.0.0.1:" + port(t)}
}

// SuperNodes, old and new, run an app with a NumPyClient as well, and settings of its own; an app that fails is recorded, and
// takes part again in the next round. In between the coordinator is stopped and started again.
func TestFlowerNumPyClient(t *testing.T) {
	w := newWorld(t, "softmax", 3, "old-node", "new-node", "north")
	e23, e41 := release(t, oldSuperNode), release(t, newest)
	options := flower.Options{App: e23.build(t, "testdata/numpyapp"), RunConfig: map[string]string{"step": "0.125"}}
	s := w.serve(t, options)
	s.silos(t, "north")
	s.superNode(t, e23, oldSuperNode, "old-node", "")
	s.superNode(t, e41, newest, "new-node", "")
	for s.federation.Status().Round < 1 || s.federation.Status().Phase != "round" {
		select {
		case o := <-s.result:
			t.Fatalf("%+v", o)
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.stop()
	<-s.result
	s = w.serve(t, options)
	s.silos(t, "north")
	result := s.wait(t, patience)
	if len(result.Rounds) != 3 || len(result.Rounds[1].Absent) != 2 || len(result.Rounds[2].Absent) != 0 {
		t.Errorf("%+v", result.Rounds)
	}
	for _, name := range w.names[:2] {
		if got := s.notes(t, network.Accepted, name); len(got) != 2 || got[0] != "7 examples, loss 0.25" {
			t.Errorf("%s: %q", name, got)
		}
		if got := s.notes(t, network.Failed, name); len(got) != 1 || !strings.Contains(got[0], "error") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

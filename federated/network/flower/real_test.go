//go:build flower

package flower_test

import (
	"bytes"
	"context"
	"encoding/binary"
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

// start starts a program of the environment, which ends with the test.
func (e environment) start(t *testing.T, folder, program string, args ...string) (*output, <-chan error) {
	t.Helper()
	cmd := e.command(context.Background(), folder, program, args...)
	printed := &output{}
	cmd.Stdout, cmd.Stderr = printed, printed
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
	return printed, ended
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
	if version == newest {
		args = append(args, "--port", port(t))
	} else {
		args = append(args, "--clientappio-api-address", "127.0.0.1:"+port(t))
	}
	e.start(t, folder, "flower-supernode", args...)
}

// Clients of start_client, old and new, and SuperNodes with authentication, old and new, train for five rounds next to two
// Go members in one federation.
func TestFlower(t *testing.T) {
	w := newWorld(t, "mlp", 5, "north", "old-client", "new-client", "old-node", "new-node", "south")
	e8, e23, e41 := release(t, oldClient), release(t, oldSuperNode), release(t, newest)
	s := w.serve(t, flower.Options{Legacy: seats(t, "old-client,new-client"), App: e41.build(t, "../../../examples/flower/app")})
	s.silos(t, "north", "south")
	before, err := w.trainer.Evaluate(t.Context(), w.config.Initial)
	if err != nil {
		t.Fatal(err)
	}
	client, err := filepath.Abs("../../../examples/flower/client.py")
	if err != nil {
		t.Fatal(err)
	}
	_, oldEnded := e8.start(t, t.TempDir(), "python", client, s.address, w.data(t, "old-client"))
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(authority, w.authority.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	// The newer one takes its connection under TLS.
	_, newEnded := e41.start(t, t.TempDir(), "python", client, s.address, w.data(t, "new-client"), authority)
	s.superNode(t, e23, oldSuperNode, "old-node", `data="`+w.data(t, "old-node")+`"`)
	s.superNode(t, e41, newest, "new-node", `data="`+w.data(t, "new-node")+`"`)
	result := s.wait(t, patience)
	for _, round := range result.Rounds {
		t.Logf("round %d: accuracy %.3f", round.Round, round.Accuracy)
		if len(round.Absent) != 0 {
			t.Errorf("round %d went on without %+v", round.Round, round.Absent)
		}
	}
	if result.Accuracy < before.Accuracy+0.3 {
		t.Errorf("accuracy %v, from %v", result.Accuracy, before.Accuracy)
	}
	for _, name := range w.names {
		if got := s.notes(t, network.Accepted, name); len(got) != 5 || !strings.HasPrefix(got[0], "300 examples, loss ") {
			t.Errorf("%s: %q", name, got)
		}
	}
	// At the end the clients are sent home.
	for name, ended := range map[string]<-chan error{"old": oldEnded, "new": newEnded} {
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the %s client ended with %v", name, err)
			}
		case <-time.After(patience):
			t.Errorf("the %s client does not end", name)
		}
	}
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

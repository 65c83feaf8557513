package xla

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
)

// service is NVIDIA's multi-process service (MPS), which lets kernels of several processes run on a card at once. It is
// private to a Pool: its pipes are in a folder of their own.
type service struct {
	folder string
	keeper *exec.Cmd
	hold   io.Closer
}

// keeper is a shell script that waits for the end of its input, which comes when the Pool closes it and also when this
// program is killed, and then ends the service, so that none is ever left behind. Its arguments are the program that
// controls the service and the folder.
const keeper = `trap "" INT TERM HUP; cat >/dev/null; echo quit | "$0" >/dev/null 2>&1; rm -rf "$1"`

// startService starts the service. Where it is not installed or does not start, workers take turns instead, and the
// result is nil. A service that the user runs already is left as it is and used.
func startService(ctx context.Context, log *slog.Logger) *service {
	if os.Getenv("CUDA_MPS_PIPE_DIRECTORY") != "" {
		return &service{}
	}
	control, err := exec.LookPath("nvidia-cuda-mps-control")
	if err != nil {
		log.Warn("NVIDIA's multi-process service is not installed: members take turns on the card, at about half the speed",
			"missing", "nvidia-cuda-mps-control")
		return nil
	}
	folder, err := os.MkdirTemp("", "grange-mps-")
	if err != nil {
		log.Warn("no folder for the multi-process service", "error", err)
		return nil
	}
	s := &service{folder: folder, keeper: exec.Command("sh", "-c", keeper, control, folder)}
	s.keeper.Env = append(os.Environ(), s.environment()...)
	if s.hold, err = s.keeper.StdinPipe(); err == nil {
		err = s.keeper.Start()
	}
	if err != nil {
		log.Warn("the multi-process service has no keeper", "error", err)
		_ = os.RemoveAll(folder)
		return nil
	}
	start := exec.CommandContext(ctx, control, "-d")
	start.Env = s.keeper.Env
	if text, err := start.CombinedOutput(); err != nil {
		log.Warn("the multi-process service does not start", "error", err, "said", strings.TrimSpace(string(text)))
		s.stop()
		return nil
	}
	return s
}

// environment is what processes need to use the service.
func (s *service) environment() []string {
	if s.folder == "" {
		return nil
	}
	return []string{"CUDA_MPS_PIPE_DIRECTORY=" + s.folder, "CUDA_MPS_LOG_DIRECTORY=" + s.folder}
}

// stop ends a service that startService started.
func (s *service) stop() {
	if s.keeper == nil {
		return
	}
	_ = s.hold.Close()
	// The service ends by itself when its last user has; a failure to tell it so changes nothing.
	_ = s.keeper.Wait()
}

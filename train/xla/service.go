package xla

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
)

// service is NVIDIA's multi-process service (MPS), which lets kernels of several processes run on a card at once. It is
// private to a Pool: its pipes are in a folder of their own.
type service struct {
	control string
	folder  string
}

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
	s := &service{control: control, folder: folder}
	start := exec.CommandContext(ctx, control, "-d")
	start.Env = append(os.Environ(), s.environment()...)
	if text, err := start.CombinedOutput(); err != nil {
		log.Warn("the multi-process service does not start", "error", err, "said", strings.TrimSpace(string(text)))
		_ = os.RemoveAll(folder)
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
	if s.folder == "" {
		return
	}
	quit := exec.Command(s.control)
	quit.Env = append(os.Environ(), s.environment()...)
	quit.Stdin = strings.NewReader("quit\n")
	// It ends by itself when its last user has; a failure to tell it so changes nothing.
	_ = quit.Run()
	_ = os.RemoveAll(s.folder)
}

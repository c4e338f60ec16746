package machine

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/holdfast-go/holdfast/integration/images"
)

// Install installs a server for the whole machine.
func Install(ctx context.Context) error {
	return script(ctx, "install-server.sh", images.InstallServer)
}

// Build makes the images of images.Built that are missing.
func Build(ctx context.Context) error { return script(ctx, "build.sh", images.Build) }

// script runs one of our scripts; what it prints goes to standard error.
func script(ctx context.Context, name, text string) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("integration/images/%s: %w", name, err)
	}
	return nil
}

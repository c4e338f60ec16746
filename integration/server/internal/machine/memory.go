package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// forget is how long it is Remembered that an image cannot be pulled.
const forget = 10 * time.Minute

// "go test ./..." runs many processes; what one finds out about images is kept
// in files for the others.
func memory(name string) (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("holdfast-images-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(dir, strings.NewReplacer("/", "_", ":", "_").Replace(name)), nil
}

// Lock lets one process at a time pull, build and install. The lock is
// gone with the process.
func Lock() (unlock func(), err error) {
	path, err := memory("lock")
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// Remember notes why an image cannot be pulled.
func Remember(image, reason string) {
	if path, err := memory("no-" + image); err == nil {
		// Without the note the next process finds out for itself.
		_ = os.WriteFile(path, []byte(reason), 0o600)
	}
}

// Remembered returns why an image could not be pulled lately, or "".
func Remembered(image string) string {
	path, err := memory("no-" + image)
	if err != nil {
		return ""
	}
	about, err := os.Stat(path)
	if err != nil || time.Since(about.ModTime()) > forget {
		return ""
	}
	reason, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return string(reason)
}

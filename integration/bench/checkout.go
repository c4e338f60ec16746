package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildWith builds this command with the library and the client of another checkout: a tree in tmp
// has that checkout, but for integration, which is ours. So both sides measure in the same way,
// however old the other one is.
func buildWith(ctx context.Context, dir, tmp string) (program string, err error) {
	here, err := checkoutOf(ctx, ".")
	if err != nil {
		return "", err
	}
	there, err := checkoutOf(ctx, dir)
	if err != nil {
		return "", err
	}
	tree := filepath.Join(tmp, "tree")
	entries, err := os.ReadDir(there)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		from := there
		switch e.Name() {
		case ".git":
			continue
		case "integration":
			from = here
		}
		if err := copyTree(filepath.Join(tree, e.Name()), filepath.Join(from, e.Name())); err != nil {
			return "", err
		}
	}
	program = filepath.Join(tmp, "bench")
	build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", program, ".")
	build.Dir = filepath.Join(tree, "integration", "bench")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build this command with its library: %w\n%s", err, out)
	}
	return program, nil
}

// checkoutOf returns the root of the checkout that a folder is in.
func checkoutOf(ctx context.Context, dir string) (string, error) {
	const module = "github.com/holdfast-go/holdfast"
	var stderr strings.Builder
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir, list.Stderr = dir, &stderr
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("%s is in no checkout of %s: %w: %s", dir, module, err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// copyTree copies a file or a folder.
func copyTree(to, from string) error {
	about, err := os.Stat(from)
	if err != nil {
		return err
	}
	if about.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	return err
}

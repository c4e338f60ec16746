// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/holdfast-go/holdfast/integration/reexec"
)

// sideRole is a process that measures with one of two commits, on servers of its own. It ends when
// its input does.
const sideRole = "side"

// sides are this working tree and another commit.
func sides(ctx context.Context, s settings) (list []player, end func() error, err error) {
	tmp, err := os.MkdirTemp("", "holdfast-bench-against-")
	if err != nil {
		return nil, nil, err
	}
	var started []*reexec.Process
	end = func() (err error) {
		for _, p := range started {
			if ctx.Err() != nil {
				p.Kill()
				continue
			}
			err = errors.Join(err, p.Close())
		}
		return errors.Join(err, os.RemoveAll(tmp))
	}
	other, err := buildWith(ctx, s.against, tmp)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("-against: %w", err), end())
	}
	for _, side := range []struct{ name, program string }{{holdfastName, ""}, {s.against, other}} {
		p, err := reexec.Start(sideRole, s, func(cmd *exec.Cmd) { cmd.Path = cmp.Or(side.program, cmd.Path) })
		if err != nil {
			return nil, nil, errors.Join(err, end())
		}
		started = append(started, p)
		context.AfterFunc(ctx, p.Kill)
		list = append(list, player{side.name, holdfastRival().takes, func(_ context.Context, c cell) (values, error) { return ask(p, c) }})
	}
	return list, end, nil
}

// ask lets a side measure a cell.
func ask(p *reexec.Process, c cell) (got values, err error) {
	if err := p.Say(c.String()); err != nil {
		return nil, err
	}
	answer, err := p.Hear()
	if err != nil {
		return nil, err
	}
	return got, json.Unmarshal([]byte(answer), &got)
}

// measureCells is the role of a side.
func measureCells(p *reexec.Parent) (err error) {
	// The terminal and timeout(1), which signal the whole group, end the parent only: it cleans up, and ends its
	// children by their input.
	signal.Ignore(os.Interrupt, syscall.SIGTERM)
	var s settings
	if err := p.Job(&s); err != nil {
		return err
	}
	w := s.world()
	defer func() { err = errors.Join(err, w.close()) }()
	for {
		line, err := p.Hear()
		if err != nil {
			return nil // the end of the input
		}
		for _, c := range cells(1) {
			if c.String() != line {
				continue
			}
			got, err := c.measure(context.Background(), w, holdfastRival())
			if err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			text, err := json.Marshal(got)
			if err != nil {
				return err
			}
			p.Say(string(text))
		}
	}
}

// buildWith builds this command with the library and the client of a commit: a tree in tmp has that
// commit, but for integration, which is that of the working tree. So both sides measure in the same
// way.
func buildWith(ctx context.Context, commit, tmp string) (program string, err error) {
	do := func(dir, name string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out)), err
	}
	root, err := do(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	archive, tree := filepath.Join(tmp, "commit.tar"), filepath.Join(tmp, "tree")
	if _, err := do(root, "git", "archive", "-o", archive, commit, "--", ".", ":!integration"); err != nil {
		return "", err
	}
	if err := os.MkdirAll(tree, 0o755); err != nil {
		return "", err
	}
	if _, err := do(tree, "tar", "-xf", archive); err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(tree, "integration"), os.DirFS(filepath.Join(root, "integration"))); err != nil {
		return "", err
	}
	program = filepath.Join(tmp, "bench")
	_, err = do(filepath.Join(tree, "integration", "bench"), "go", "build", "-mod=mod", "-o", program, ".")
	return program, err
}

// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// script runs a shell with the command on its path, and the server in its environment.
func script(t *testing.T, where place, dir, text string) (int, string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", text)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH"), "HOME=" + dir, "HOLDFAST_ADDR=" + where[1]}
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// What flock(1) shows in its manual, with the lock's name in place of the file's.
func TestRunAsFlock(t *testing.T) {
	_, where := loaded(t)
	dir := t.TempDir()
	h := holding(t, where, "tmp")
	code, out := script(t, where, dir, `holdfast run -w .7 tmp -c echo; echo $?`)
	require.Equal(t, 0, code)
	require.Equal(t, "1\n", out)
	code, out = script(t, where, dir, `holdfast run -n tmp -c 'echo ran' || echo "somebody has it"`)
	require.Equal(t, 0, code)
	require.Equal(t, "somebody has it\n", out)
	h.finish()

	code, out = script(t, where, dir, `holdfast run local-lock-file echo 'a b c'`)
	require.Equal(t, 0, code)
	require.Equal(t, "a b c\n", out)

	// The script that locks itself.
	self := filepath.Join(dir, "self.sh")
	require.NoError(t, os.WriteFile(self, []byte(`#!/bin/sh
[ "${LOCKER}" != "$0" ] && exec env LOCKER="$0" holdfast run -n "$0" -- "$0" "$@"
echo "under $HOLDFAST_LOCK: $*"
holdfast run -n "$0" echo twice || echo once
`), 0o700))
	code, out = script(t, where, dir, `./self.sh 1 2`)
	require.Equal(t, 0, code)
	require.Equal(t, "under ./self.sh: 1 2\nonce\n", out)
}

// What "consul lock" documents: its flags have others' names here.
func TestRunAsConsulLock(t *testing.T) {
	d, where := loaded(t)
	dir := t.TempDir()
	h := holding(t, where, "service/lock")
	// -try, -timeout: give up after a time; the child does not run
	code, out := script(t, where, dir, `holdfast run service/lock --wait 3s -- echo ran`)
	require.Equal(t, 1, code)
	require.Empty(t, out)
	// -verbose
	code, out = script(t, where, dir, `holdfast run service/lock --wait 3s --verbose -- echo ran`)
	require.Equal(t, 1, code)
	require.Contains(t, out, "has it since")
	h.finish()
	// -child-exit-code, always
	code, _ = script(t, where, dir, `holdfast run service/lock -- sh -c 'exit 3'`)
	require.Equal(t, 3, code)
	// -shell; standard input is passed on
	code, out = script(t, where, dir, `echo hello | holdfast run service/lock -c 'cat; echo "$HOLDFAST_LOCK"'`)
	require.Equal(t, 0, code)
	require.Equal(t, "hello\nservice/lock\n", out)
	// -monitor-retry: an outage that is shorter than the lease ends nothing
	r := begin(t, where, "service/lock", "--lease", "1m", "--verbose", "--", "sh", "-c", "echo started; cat")
	r.hear("started")
	require.NoError(t, d.Nodes()[0].Pause())
	_, err := r.stdin.Write([]byte("still here\n"))
	require.NoError(t, err)
	r.hear("still here")
	require.NoError(t, d.Nodes()[0].Resume())
	r.finish()
}

// The page's commands that begin with "$ " run, and print what follows them.
func TestRunPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/run.md")
	require.NoError(t, err)
	_, where := loaded(t)
	dir := t.TempDir()
	blocks := regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		commands := strings.Split("\n"+block[1], "\n$ ")[1:]
		require.NotEmpty(t, commands)
		for _, each := range commands {
			command, want, _ := strings.Cut(strings.TrimSuffix(each, "\n"), "\n")
			_, out := script(t, where, dir, command)
			require.Equal(t, want, strings.TrimSuffix(out, "\n"), command)
		}
	}
}

package polyglot

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/client"
)

// A command can end before the process that renews its lock has begun to hear signals. It is not waited
// for, and renews nothing.
func TestACommandOfTheShellEndsAtOnce(t *testing.T) {
	if !slices.ContainsFunc(workers(t), func(w worker) bool { return w.name == "sh" }) {
		t.Skip("no shell with redis-cli here")
	}
	b := newBed(t)
	host, port := place(t, b.node.Addr)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 60 {
				cmd := exec.CommandContext(ctx, "sh", "shell/holdfast.sh", "-l", "600000", fmt.Sprint("at once ", i), "true")
				cmd.Env = append(os.Environ(), "REDIS_CLI=redis-cli -h "+host+" -p "+port)
				cmd.WaitDelay = time.Second
				if said, err := cmd.CombinedOutput(); !assert.NoError(t, err, "%s", said) {
					return
				}
			}
		})
	}
	all.Wait()
}

// A holdfast.sh that is killed leaves its command running. The lock is renewed for as long as that,
// and no longer.
func TestTheShellIsKilled(t *testing.T) {
	if !slices.ContainsFunc(workers(t), func(w worker) bool { return w.name == "sh" }) {
		t.Skip("no shell with redis-cli here")
	}
	b := newBed(t)
	host, port := place(t, b.node.Addr)
	input, stdin, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command("sh", "shell/holdfast.sh", "-l", "3000", "killed", "sh", "-c", "echo held; read -r line || :")
	cmd.Env = append(os.Environ(), "REDIS_CLI=redis-cli -h "+host+" -p "+port)
	cmd.Stdin = input
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.NoError(t, input.Close())
	_, err = stdout.Read(make([]byte, 5))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err = b.c.Acquire(ctx, "killed")
	require.ErrorIs(t, err, client.ErrTimeout, "the command works")
	require.NoError(t, stdin.Close())
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l, err := b.c.Acquire(ctx, "killed")
	require.NoError(t, err, "the command has ended, and nothing renews the lock")
	require.NoError(t, l.Release(t.Context()))
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/leaks"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { os.Exit(leaks.Check(m.Run())) }

// Clients lock over TCP, and the server ends with its context, whether they are still there or not.
func TestItServesLocks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, l, w) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	addr := strings.TrimSpace(line)

	a, b := open(t, addr), open(t, addr)
	// what an error repeats is no reply of its own
	require.ErrorContains(t, b.Redis().Do(ctx, b.Redis().B().Arbitrary("NO\r\n+SUCH").Build()).Error(), "NO  +SUCH")
	lock, err := a.Acquire(ctx, "x")
	require.NoError(t, err)
	_, err = b.TryAcquire(ctx, "x")
	require.ErrorIs(t, err, client.ErrBusy)
	got := make(chan error, 1)
	go func() {
		next, err := b.Acquire(ctx, "x")
		if err == nil {
			err = next.Release(ctx)
		}
		got <- err
	}()
	for waiting := 0; waiting == 0; {
		info, err := a.Inspect(ctx, "x")
		require.NoError(t, err)
		waiting = info.Waiters
	}
	require.NoError(t, lock.Release(ctx))
	require.NoError(t, <-got)
	stop()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		require.Fail(t, "it does not end")
	}
	_, err = net.Dial("tcp", addr)
	require.Error(t, err)
}

func open(t *testing.T, addr string) *client.Client {
	t.Helper()
	c, err := client.Open(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true}, client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

package container

import (
	"context"
	"net"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// containerFlavour returns a flavour that is an image, or skips the test.
func containerFlavour(t *testing.T) server.Flavour {
	t.Helper()
	f, err := server.Default()
	require.NoError(t, err)
	if f.Runtime != server.Container {
		t.Skipf("the server is %s: this is about containers", f)
	}
	return f
}

func TestPublishedPorts(t *testing.T) {
	f := containerFlavour(t)
	restore, err := publishPorts()
	require.NoError(t, err)
	t.Cleanup(restore)

	d := server.Single(t, server.WithFlavour(f), server.Owned())
	require.Equal(t, f.Image, d.Image)
	n := d.Nodes()[0]
	host, _, err := net.SplitHostPort(n.Addr)
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	require.NoError(t, do(n, "SET", "k", "v"))
	require.NoError(t, n.Kill())
	require.NoError(t, n.Restart())
	require.NoError(t, do(n, "PING"))

	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Log("no redis-server on PATH: what serves several nodes is not tested")
		return
	}
	require.Equal(t, server.Local, server.Replicated(t, 1, server.WithFlavour(f)).Flavour.Runtime)
}

func TestContainersOfKilledProcessesAreRemoved(t *testing.T) {
	f := containerFlavour(t)
	gone := exec.Command("true")
	require.NoError(t, gone.Run())
	pid := gone.Process.Pid
	require.NoError(t, leave(f.Image, pid))
	require.NoError(t, reap())
	left, err := Count(pid)
	require.NoError(t, err)
	require.Zero(t, left)
	d := server.Single(t, server.WithFlavour(f), server.Owned())
	require.NoError(t, reap())
	require.NoError(t, do(d.Nodes()[0], "PING"), "our own are left alone")
}

func do(n *server.Node, command ...string) error {
	_, err := n.Do(context.Background(), command...)
	return err
}

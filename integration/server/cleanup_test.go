// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/reexec"
	"github.com/holdfast-go/holdfast/integration/server"
)

// starter is a process that starts two servers, says where, and is killed.
const starter = "starter"

func start(p *reexec.Parent) error {
	d, err := server.Start(context.Background(), server.Spec{Kind: server.KindReplicated, Replicas: 1, Own: true})
	if err != nil {
		return err
	}
	for _, n := range d.Nodes() {
		p.Say(n.Addr, n.Info(context.Background(), "server", "run_id"))
	}
	_, err = p.Hear()
	return err
}

func TestNothingIsLeft(t *testing.T) { server.Each(t, testNothingIsLeft) }

func testNothingIsLeft(t *testing.T, f server.Flavour) {
	if f.Runtime == server.External {
		t.Skip("the server at HOLDFAST_REDIS was not started here")
	}
	tmp := t.TempDir()
	child := reexec.Spawn(t, starter, nil, func(cmd *exec.Cmd) {
		cmd.Env = append(cmd.Env, "TMPDIR="+tmp, "HOLDFAST_RUNTIME="+string(f.Runtime),
			"HOLDFAST_IMAGES="+f.Image, "HOLDFAST_SERVERS="+f.Binary)
	})
	var servers [2][2]string // address and run id
	for i := range servers {
		addr, id, _ := strings.Cut(child.Hear(""), " ")
		require.NotEmpty(t, id)
		require.True(t, answers(t, addr, id))
		servers[i] = [2]string{addr, id}
	}
	child.Signal(syscall.SIGKILL)
	require.Error(t, child.Close())

	// What is killed is not gone at once.
	gone := func(what string, condition func() bool) {
		require.Eventually(t, condition, soon, 10*time.Millisecond, "%s is left", what)
	}
	gone("a directory", func() bool {
		files, err := filepath.Glob(filepath.Join(tmp, "holdfast-server-*"))
		return err == nil && len(files) == 0
	})
	for _, s := range servers {
		gone("a server", func() bool { return !answers(t, s[0], s[1]) })
	}
	gone("a container", func() bool { return containers(t, f, child.Pid()) == "" })
}

// answers reports whether the server with a run id is at an address, where since then another test's can be.
func answers(t *testing.T, addr, id string) bool {
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	return (&server.Node{Addr: addr}).Info(ctx, "server", "run_id") == id
}

// containers are those that a process has.
func containers(t *testing.T, f server.Flavour, pid int) string {
	t.Helper()
	if f.Runtime != server.Container {
		return ""
	}
	list, err := exec.Command("docker", "ps", "--all", "--quiet", fmt.Sprintf("--filter=name=holdfast-%d-", pid)).Output()
	require.NoError(t, err)
	return string(list)
}

func TestStartSaysWhyItFails(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		_, err := server.Start(t.Context(), server.Spec{Flavour: f, Config: [][2]string{{"no-such-directive", "1"}}})
		require.ErrorContains(t, err, "no-such-directive")
	})
}

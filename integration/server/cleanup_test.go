package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// childVariable makes this test binary a program that starts two servers, says
// where, and panics when its standard input ends.
const childVariable = "HOLDFAST_SERVER_TEST_CHILD"

func child() {
	d, err := server.Start(context.Background(), server.Spec{Kind: server.KindReplicated, Replicas: 1, Own: true})
	if err != nil {
		panic(err)
	}
	for _, n := range d.Nodes() {
		fmt.Println(n.Addr, n.Info(context.Background(), "server", "run_id"))
	}
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	panic("as asked")
}

func TestNothingIsLeft(t *testing.T) {
	ends := map[string]func(*exec.Cmd) error{
		"SIGKILL":   func(c *exec.Cmd) error { return c.Process.Signal(syscall.SIGKILL) },
		"interrupt": func(c *exec.Cmd) error { return c.Process.Signal(syscall.SIGINT) },
		"panic":     func(c *exec.Cmd) error { return nil }, // its input ends in any case
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			server.Each(t, func(t *testing.T, f server.Flavour) {
				testNothingIsLeft(t, f, end)
			})
		})
	}
}

func testNothingIsLeft(t *testing.T, f server.Flavour, end func(*exec.Cmd) error) {
	if f.Runtime == server.External {
		t.Skip("the server at HOLDFAST_REDIS was not started here")
	}
	tmp := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"=1", "TMPDIR="+tmp, "HOLDFAST_RUNTIME="+string(f.Runtime),
		"HOLDFAST_IMAGES="+f.Image, "HOLDFAST_SERVERS="+f.Binary)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())

	var servers [][2]string // address and run id
	lines := bufio.NewScanner(stdout)
	for len(servers) < 2 && lines.Scan() {
		addr, id, _ := strings.Cut(lines.Text(), " ")
		require.NotEmpty(t, id)
		require.True(t, answers(addr, id))
		servers = append(servers, [2]string{addr, id})
	}
	require.Len(t, servers, 2)
	require.NoError(t, end(cmd))
	require.NoError(t, stdin.Close())
	require.Error(t, cmd.Wait())

	// What is killed is not gone at once, and a container that the janitor finds
	// here can be one that another process is removing.
	gone := func(what string, condition func() bool) {
		require.Eventually(t, condition, soon, 10*time.Millisecond, "%s is left", what)
	}
	gone("a directory", func() bool {
		files, err := filepath.Glob(filepath.Join(tmp, "holdfast-server-*"))
		return err == nil && len(files) == 0
	})
	for _, s := range servers {
		gone("a server", func() bool { return !answers(s[0], s[1]) })
	}
	if f.Runtime == server.Container {
		gone("a container", func() bool {
			n, err := server.Containers(cmd.Process.Pid)
			return err == nil && n == 0
		})
	}
}

// answers tells whether the server with a run id is at an address, where since
// then another test's can be. One that accepts and does not answer counts.
func answers(addr, id string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return !errors.Is(err, syscall.ECONNREFUSED)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(soon))
	if _, err := conn.Write([]byte("INFO server\r\nQUIT\r\n")); err != nil {
		return !closed(err)
	}
	reply, err := io.ReadAll(conn)
	return strings.Contains(string(reply), "run_id:"+id) || err != nil && !closed(err)
}

func closed(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func requireNoContainers(t *testing.T, f server.Flavour, pid int) {
	t.Helper()
	if f.Runtime != server.Container {
		return
	}
	n, err := server.Containers(pid)
	require.NoError(t, err)
	require.Zero(t, n)
}

func TestCloseLeavesNothing(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		d, err := server.Start(t.Context(), server.Spec{Flavour: f, Kind: server.KindReplicated, Replicas: 1})
		require.NoError(t, err)
		require.NoError(t, d.Nodes()[0].Kill())
		require.NoError(t, d.Nodes()[1].Pause())
		require.NoError(t, d.Close())
		require.NoError(t, d.Close(), "a second time")
		for _, n := range d.Nodes() {
			_, err := net.Dial("tcp", n.Addr)
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
		requireNoContainers(t, f, os.Getpid())
	})
}

func TestStartSaysWhyItFails(t *testing.T) {
	server.Each(t, func(t *testing.T, f server.Flavour) {
		_, err := server.Start(t.Context(), server.Spec{Flavour: f, Config: [][2]string{{"no-such-directive", "1"}}})
		require.ErrorContains(t, err, "no-such-directive")
		requireNoContainers(t, f, os.Getpid())
	})
}

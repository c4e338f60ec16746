// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

// The exit codes are what scripts rely on. Each wrong input is named.
func TestExitCodes(t *testing.T) {
	d, where := loaded(t)
	empty := server.Single(t, server.Owned())
	full := server.Single(t, server.Owned(), server.WithConfig("maxmemory", "1"))
	replicated := server.Replicated(t, 1)
	whole(t, replicated)
	_, err := d.Nodes()[0].Do(context.Background(), "FCALL", "holdfast_acquire", "1", "lock:held", "me", "600000")
	require.NoError(t, err)
	at, without := where[1], empty.Addrs()[0]
	replica := replicated.Nodes()[1].Addr
	const nowhere = "127.0.0.1:1"
	for _, c := range []struct {
		says string
		code int
		args []string
	}{
		{"held", 0, []string{"ls", "--addr", at}},
		{"me", 0, []string{"inspect", "held", "--addr", at}},
		{"nobody waits", 0, []string{"line", "held", "--addr", at}},
		{"is free", 0, []string{"line", "other", "--addr", at}},
		{"is free", 0, []string{"queue", "other", "--addr", at}},
		{"ACL SETUSER holdfast-loader", 0, []string{"acl", "--for", "loader"}},
		{"__start_holdfast", 0, []string{"completion", "bash"}},
		{"held", 0, []string{"__complete", "inspect", "--addr", at, "he"}},

		{nowhere, 1, []string{"ls", "--addr", nowhere}},
		{nowhere, 1, []string{"inspect", "x", "--addr", nowhere}},
		{nowhere, 1, []string{"line", "x", "--addr", nowhere}},
		{nowhere, 1, []string{"break", "x", "--reason", "r", "--yes", "--addr", nowhere}},
		{nowhere, 1, []string{"watch", "--json", "--addr", nowhere}},
		{nowhere, 1, []string{"acl", "--for", "client", "--check", "--addr", nowhere}},
		{"holdfast load", 1, []string{"inspect", "x", "--addr", without}},
		{"holdfast load", 1, []string{"break", "x", "--reason", "r", "--yes", "--addr", without}},
		{"OOM", 1, []string{"load", "--addr", full.Addrs()[0]}},
		{"replica", 1, []string{"ls", "--addr", replica}},
		{nowhere, 1, []string{"bench", "--addr", nowhere}},
		{"holdfast load", 1, []string{"bench", "--addr", without}},
		{"replica", 1, []string{"bench", "--addr", replica}},

		{"laod", 2, []string{"laod"}},
		{`"load"`, 2, []string{"laod"}},
		{"bogus", 2, []string{"help", "bogus"}},
		{"bogus", 2, []string{"completion", "bogus"}},
		{"--bogus", 2, []string{"ls", "--bogus"}},
		{"two dashes", 2, []string{"load", "-addr", at}},
		{"extra", 2, []string{"ls", "order:*", "extra"}},
		{"--sort", 2, []string{"ls", "--sort", "size"}},
		{"--older-than", 2, []string{"ls", "--older-than", "-1s"}},
		{"--listen", 2, []string{"ui", "--listen", "nowhere"}},
		{"--every", 2, []string{"exporter", "--every", "1ms"}},
		{"--listen", 2, []string{"exporter", "--listen", "9471"}},
		{"--listen", 2, []string{"ui", "--listen", ":99999"}},
		{"--groups", 2, []string{"exporter", "--groups", "-1"}},
		{"NAME", 2, []string{"inspect"}},
		{"NAME", 2, []string{"inspect", ""}},
		{"extra", 2, []string{"inspect", "x", "extra"}},
		{"NAME", 2, []string{"line"}},
		{"NAME", 2, []string{"break"}},
		{"--reason", 2, []string{"break", "held", "--yes", "--addr", at}},
		{"--reason", 2, []string{"break", "held", "--reason", " ", "--yes", "--addr", at}},
		{"--owner", 2, []string{"break", "held", "--owner", "", "--reason", "r", "--yes", "--addr", at}},
		{"--forget", 2, []string{"break", "held", "--reason", "r", "--forget", "--yes", "--addr", at}},
		{"--yes", 2, []string{"break", "held", "--reason", "r", "--addr", at}},
		{"--limit", 2, []string{"ls", "--limit", "-1"}},
		{"--limit", 2, []string{"ls", "--limit", "many"}},
		{"--limit", 2, []string{"line", "x", "--limit", "-1"}},
		{"--limit", 2, []string{"watch", "--json", "--limit", "-1"}},
		{"--every", 2, []string{"watch", "--json", "--every", "1ms"}},
		{"--count", 2, []string{"watch", "--count", "1"}},
		{"no terminal", 2, []string{"watch", "--addr", at}},
		{"extra", 2, []string{"bench", "extra"}},
		{"--for", 2, []string{"bench", "--for", "0s"}},
		{"--for", 2, []string{"bench", "--for", "long"}},
		{"--workers", 2, []string{"bench", "--workers", "1"}},
		{"--workers", 2, []string{"bench", "--workers", "501"}},
		{"--lease", 2, []string{"bench", "--lease", "1ms"}},
		{"--guard", 2, []string{"bench", "--guard", "1s"}},
		{"--replicas", 2, []string{"bench", "--replicas", "-1"}},
		{"--replicas", 2, []string{"bench", "--replicas", "1", "--quorum"}},
		{`"bogus"`, 2, []string{"bench", "--only", "alone,bogus"}},
		{"--quorum", 2, []string{"bench", "--addr", at + "," + without}},
		{"--sentinel-master", 2, []string{"bench", "--addr", at, "--quorum", "--sentinel-master", "m"}},
		{"--for", 2, []string{"acl"}},
		{`"admin"`, 2, []string{"acl", "--for", "admin"}},
		{"--guard", 2, []string{"acl", "--for", "loader", "--guard"}},
		{"--unload", 2, []string{"acl", "--for", "client", "--unload"}},
		{"--as", 2, []string{"acl", "--for", "client", "--as", "a b"}},
		{"--prefix", 2, []string{"acl", "--for", "client", "--prefix", "a b"}},
		{"--quorum", 2, []string{"ls", "--addr", at + "," + without}},
		{"--sentinel-master", 2, []string{"ls", "--addr", at, "--quorum", "--sentinel-master", "m"}},
		{"servers", 2, []string{"ls", "--addr", at, "--quorum"}},
		{"servers", 2, []string{"bench", "--addr", at, "--quorum"}},

		{"", 3, []string{"verify", "--addr", without}},
		{"free", 5, []string{"inspect", "other", "--addr", at}},
		{"nobody had it", 5, []string{"break", "other", "--reason", "r", "--yes", "--addr", at}},
		{"changed hands", 4, []string{"break", "held", "--owner", "other", "--reason", "r", "--yes", "--addr", at}},
		{"me", 0, []string{"break", "held", "--owner", "me", "--reason", "r", "--yes", "--addr", at}},
		{"forgotten", 0, []string{"break", "held", "--forget", "--yes", "--addr", at}},
		{"nobody had it", 5, []string{"break", "held", "--forget", "--yes", "--addr", at}},
	} {
		r := holdfast(t, nil, c.args...)
		require.Equal(t, c.code, r.code, "%v: %v", c.args, r)
		require.Contains(t, r.out+r.errors, c.says, "%v", c.args)
		switch c.code {
		case 1:
			failed := decode[told](t, holdfast(t, nil, append(c.args, "--json")...))
			require.Equal(t, 1, failed.ExitCode, "%v", c.args)
			require.Equal(t, strings.Replace(c.args[0], "line", "queue", 1), failed.Command)
			require.NotEmpty(t, failed.Errors, "%v", c.args)
		case 2:
			require.Empty(t, r.out, "%v", c.args)
		}
	}
}

// told is what JSON has of each command.
type told struct {
	Command  string
	ExitCode int `json:"exit_code"`
	Errors   []string
}

// What cannot be printed is no success, and an interruption has the usual code.
func TestOutputAndInterruption(t *testing.T) {
	d, _ := loaded(t)
	_, err := d.Nodes()[0].Do(context.Background(), "FCALL", "holdfast_acquire", "1", "lock:held", "me", "600000")
	require.NoError(t, err)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no full device to print to: ", err)
	}
	defer full.Close()
	for _, args := range []string{"ls", "ls --json", "inspect held", "queue held", "verify", "version --client"} {
		cmd := exec.Command(binary, append(strings.Fields(args), "--addr", d.Addrs()[0])...)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = full, &said
		require.Error(t, cmd.Run())
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), args)
		require.Contains(t, said.String(), "printing:", args)
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	for _, args := range []string{"inspect held", "inspect held --json", "verify --json", "doctor --json", "load"} {
		cmd := exec.Command(binary, append(strings.Fields(args), "--addr", silent.Addr().String())...)
		var out, said strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &said
		require.NoError(t, cmd.Start())
		conn, err := silent.Accept() // by then it hears signals
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		require.Error(t, cmd.Wait())
		require.Equal(t, 130, cmd.ProcessState.ExitCode(), args)
		if args == "load" {
			require.NotContains(t, said.String(), "check --addr")
			continue
		}
		require.Empty(t, said.String(), "who interrupts it knows")
		if strings.HasSuffix(args, "--json") {
			require.Equal(t, 130, decode[told](t, result{out: out.String()}).ExitCode, args)
		} else {
			require.Empty(t, out.String())
		}
	}
}

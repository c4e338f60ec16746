// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-go/holdfast/integration/server"
)

func dial(t *testing.T, p *server.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, command string) {
	t.Helper()
	_, err := conn.Write([]byte(command + "\r\n"))
	require.NoError(t, err)
}

// requireCut fails the test unless the other side has closed the connection.
func requireCut(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(soon)))
	n, err := conn.Read(make([]byte, 1))
	require.Zero(t, n)
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

// A stall keeps what is sent, and what it keeps arrives after it.
func TestProxyStalls(t *testing.T) {
	n := server.Single(t, server.Owned()).Nodes()[0]
	for name, stall := range map[string]func(*server.Proxy){
		"both ways": (*server.Proxy).Stall, "requests": (*server.Proxy).StallRequests, "replies": (*server.Proxy).StallReplies,
	} {
		t.Run(name, func(t *testing.T) {
			p := server.NewProxy(t, n.Addr)
			require.NoError(t, do(n, "FLUSHALL"))
			conn := dial(t, p)
			send(t, conn, "PING")
			requireReply(t, conn, "+PONG\r\n")
			stall(p)
			send(t, conn, "SET proxy:stalled 1")
			late := dial(t, p)
			send(t, late, "PING")
			requireSilent(t, conn)
			requireSilent(t, late)
			if name == "replies" {
				require.Eventually(t, func() bool { return size(t, n) == 1 }, soon, 5*time.Millisecond)
			} else {
				require.Zero(t, size(t, n), "the request has not arrived")
			}
			p.Resume()
			requireReply(t, conn, "+OK\r\n")
			requireReply(t, late, "+PONG\r\n")
		})
	}
}

func TestProxyDelays(t *testing.T) {
	p := server.NewProxy(t, server.Single(t).Nodes()[0].Addr)
	conn := dial(t, p)
	const late = 30 * time.Millisecond
	p.Delay(late)
	since := time.Now()
	send(t, conn, "PING")
	requireReply(t, conn, "+PONG\r\n")
	require.GreaterOrEqual(t, time.Since(since), 2*late)
	p.Delay(0)
	send(t, conn, "PING")
	requireReply(t, conn, "+PONG\r\n")
}

func TestProxyCuts(t *testing.T) {
	p := server.NewProxy(t, server.Single(t).Nodes()[0].Addr)
	conn := dial(t, p)
	send(t, conn, "PING")
	requireReply(t, conn, "+PONG\r\n")
	p.Stall()
	send(t, conn, "PING")
	p.Cut()
	requireCut(t, conn)
	p.Resume()
	again := dial(t, p)
	send(t, again, "PING")
	requireReply(t, again, "+PONG\r\n")
}

func TestProxyDropsReplies(t *testing.T) {
	n := server.Single(t).Nodes()[0]
	p := server.NewProxy(t, n.Addr)
	require.NoError(t, do(n, "DEL", "proxy:n"))
	p.DropReplies(2, "INCR")
	for range 2 {
		conn := dial(t, p)
		send(t, conn, "PING")
		requireReply(t, conn, "+PONG\r\n")
		send(t, conn, "INCR proxy:n")
		requireCut(t, conn)
	}
	require.Equal(t, 2, p.Dropped())
	conn := dial(t, p)
	send(t, conn, "INCR proxy:n")
	requireReply(t, conn, ":3\r\n") // the server ran those whose replies were lost
	require.NoError(t, do(n, "DEL", "proxy:n"))
}

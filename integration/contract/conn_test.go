// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"net"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/resp"
)

const ioWithin = resp.Within

// failure is an error reply, without the leading '-'.
type failure = resp.Failure

// conn is a connection of a test. For one goroutine.
type conn struct {
	tb   testing.TB
	resp *resp.Conn
}

// dial opens a connection that lives as long as the test.
func dial(tb testing.TB, addr string) *conn {
	tb.Helper()
	nc, err := net.DialTimeout("tcp", addr, ioWithin)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = nc.Close() })
	return &conn{tb, resp.New(nc)}
}

// do sends one command and returns its reply: int64, string, nil, failure, or
// []any of those.
func (c *conn) do(args ...string) any {
	c.tb.Helper()
	c.send(args...)
	return c.receive(ioWithin)
}

// send writes one command, so that many can be on their way at once.
func (c *conn) send(args ...string) {
	c.tb.Helper()
	if err := c.resp.Send(args); err != nil {
		c.tb.Fatal(err)
	}
}

// receive returns the next reply or message.
func (c *conn) receive(within time.Duration) any {
	c.tb.Helper()
	v, err := c.resp.Receive(within)
	if err != nil {
		c.tb.Fatalf("no reply from %s: %v", c.resp.RemoteAddr(), err)
	}
	return plain(v)
}

// plain is a reply without what RESP3 says of its kind: the contract promises the same in both.
func plain(v any) any {
	switch v := v.(type) {
	case resp.Status:
		return string(v)
	case resp.Push:
		return plain([]any(v))
	case resp.Table:
		return plain([]any(v))
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return v
}

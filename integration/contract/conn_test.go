package contract

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

const ioWithin = 20 * time.Second // a reply that takes longer is a failure, not patience

// failure is an error reply, without the leading '-'.
type failure string

// conn is a connection that speaks RESP itself, so that a test sees what the
// server sent and not what a client library made of it. For one goroutine.
type conn struct {
	tb   testing.TB
	addr string
	nc   net.Conn
	r    *bufio.Reader
}

// dial opens a connection that lives as long as the test.
func dial(tb testing.TB, addr string) *conn {
	tb.Helper()
	nc, err := net.DialTimeout("tcp", addr, ioWithin)
	if err != nil {
		tb.Fatal(err)
	}
	c := &conn{tb: tb, addr: addr, nc: nc, r: bufio.NewReader(nc)}
	tb.Cleanup(c.close)
	return c
}

func (c *conn) close() { _ = c.nc.Close() }

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
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(c.nc, b.String()); err != nil {
		c.tb.Fatal(err)
	}
}

// receive returns the next reply or message.
func (c *conn) receive(within time.Duration) any {
	c.tb.Helper()
	if err := c.nc.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.tb.Fatal(err)
	}
	v, err := c.read()
	if err != nil {
		c.tb.Fatalf("no reply from %s: %v", c.addr, err)
	}
	return v
}

func (c *conn) read() (any, error) {
	text, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	text = strings.TrimSuffix(text, "\r\n")
	kind, rest := text[0], text[1:]
	switch kind {
	case '+':
		return rest, nil
	case '-':
		return failure(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '_':
		return nil, nil
	case '$':
		return c.readBulk(rest)
	case '*', '~', '>':
		return c.readArray(rest, 1)
	case '%':
		return c.readArray(rest, 2)
	}
	return nil, fmt.Errorf("a reply of a kind that the contract does not know: %q", text)
}

func (c *conn) readBulk(size string) (any, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return nil, err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(c.r, b)
	return string(b[:n]), err
}

func (c *conn) readArray(size string, each int) (any, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return nil, err
	}
	all := make([]any, n*each)
	for i := range all {
		if all[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

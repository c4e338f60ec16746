package differential

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

type (
	failure string // an error reply
	status  string // a simple string
	push    []any  // out of band
	table   []any  // a map
)

// conn speaks RESP itself, so that nothing of what a server sends is hidden.
type conn struct {
	nc     net.Conn
	r      *bufio.Reader
	serial int
}

func newConn(nc net.Conn) *conn { return &conn{nc: nc, r: bufio.NewReader(nc)} }

// ask sends commands and returns all that arrives until a PING behind them is answered. Without
// commands it collects what was pushed.
func (c *conn) ask(cmds ...[]string) ([]any, error) {
	c.serial++
	mark := "mark" + strconv.Itoa(c.serial)
	if err := c.send(append(cmds[:len(cmds):len(cmds)], []string{"PING", mark})...); err != nil {
		return nil, err
	}
	var out []any
	for {
		v, err := c.read()
		if err != nil {
			return out, err
		}
		if pong, ok := v.([]any); v == mark || ok && len(pong) == 2 && pong[0] == "pong" && pong[1] == mark {
			return out, nil
		}
		out = append(out, v)
	}
}

// one sends a command and returns what arrives first. It does not disturb a transaction.
func (c *conn) one(cmd ...string) (any, error) {
	if err := c.send(cmd); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *conn) send(cmds ...[]string) error {
	var b strings.Builder
	for _, cmd := range cmds {
		fmt.Fprintf(&b, "*%d\r\n", len(cmd))
		for _, w := range cmd {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	if err := c.nc.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	_, err := io.WriteString(c.nc, b.String())
	return err
}

func (c *conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return status(rest), nil
	case '-':
		return failure(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '_':
		return nil, nil
	case '#':
		return rest == "t", nil
	case '$':
		return c.bulk(rest)
	case '*':
		return c.list(rest, 1)
	case '>':
		v, err := c.list(rest, 1)
		return push(v), err
	case '%':
		v, err := c.list(rest, 2)
		return table(v), err
	}
	return nil, fmt.Errorf("a reply of an unknown kind: %q", line)
}

func (c *conn) bulk(size string) (any, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return nil, err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(c.r, b)
	return string(b[:n]), err
}

func (c *conn) list(size string, each int) ([]any, error) {
	n, err := strconv.Atoi(size)
	if err != nil || n < 0 {
		return nil, err
	}
	out := make([]any, n*each)
	for i := range out {
		if out[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

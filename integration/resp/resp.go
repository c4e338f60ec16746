// SPDX-License-Identifier: Apache-2.0

// Package resp is a connection that speaks RESP itself, so that a test sees what the server sent and not
// what a client library made of it.
package resp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Within is how long a reply may take: one that takes longer is a failure, not patience.
const Within = 20 * time.Second

// What a server sends is one of these, int64, string, bool, nil, or []any of all of them.
type (
	Failure string // an error reply, without the leading '-'
	Status  string // a simple string
	Push    []any  // out of band
	Table   []any  // a map
)

// Conn is for one goroutine.
type Conn struct {
	net.Conn
	r *bufio.Reader
}

// New returns a connection over another one.
func New(over net.Conn) *Conn { return &Conn{over, bufio.NewReader(over)} }

// Send writes commands, so that many can be on their way at once.
func (c *Conn) Send(commands ...[]string) error {
	var b strings.Builder
	for _, words := range commands {
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, w := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
		}
	}
	_, err := io.WriteString(c, b.String())
	return err
}

// Receive returns the next reply or message.
func (c *Conn) Receive(within time.Duration) (any, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *Conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	kind, rest := line[0], line[1:]
	switch kind {
	case '+':
		return Status(rest), nil
	case '-':
		return Failure(rest), nil
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '_':
		return nil, nil
	case '#':
		return rest == "t", nil
	}
	n, err := strconv.Atoi(rest)
	if err != nil || n < 0 {
		return nil, err
	}
	switch kind {
	case '$':
		b := make([]byte, n+2)
		_, err = io.ReadFull(c.r, b)
		return string(b[:n]), err
	case '*', '~':
		return c.list(n)
	case '>':
		v, err := c.list(n)
		return Push(v), err
	case '%':
		v, err := c.list(2 * n)
		return Table(v), err
	}
	return nil, fmt.Errorf("a reply of an unknown kind: %q", line)
}

func (c *Conn) list(n int) (all []any, err error) {
	all = make([]any, n)
	for i := range all {
		if all[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"strconv"

	"github.com/holdfast-go/holdfast/integration/resp"
)

type (
	failure = resp.Failure
	push    = resp.Push
	table   = resp.Table
)

// conn hides nothing of what a server sends.
type conn struct {
	*resp.Conn
	serial int
}

// ask sends commands and returns all that arrives until a PING behind them is answered. Without
// commands it collects what was pushed.
func (c *conn) ask(cmds ...[]string) ([]any, error) {
	c.serial++
	mark := "mark" + strconv.Itoa(c.serial)
	if err := c.Send(append(cmds[:len(cmds):len(cmds)], []string{"PING", mark})...); err != nil {
		return nil, err
	}
	var out []any
	for {
		v, err := c.Receive(resp.Within)
		if err != nil {
			return out, err
		}
		if pong, ok := v.([]any); v == mark || ok && len(pong) == 2 && pong[0] == "pong" && pong[1] == mark {
			return out, nil
		}
		out = append(out, v)
	}
}

// one sends a command and returns what arrives first.
func (c *conn) one(cmd ...string) (any, error) {
	if err := c.Send(cmd); err != nil {
		return nil, err
	}
	return c.Receive(resp.Within)
}

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conns counts the connections that a process has not closed.
type conns struct {
	open  atomic.Int64
	ended atomic.Int64 // when one was closed last, in nanoseconds since 1970
}

// hungUp reports whether the process has closed a connection since then: what was under way on it has
// no answer.
func (c *conns) hungUp(since time.Time) bool { return c.ended.Load() >= since.UnixNano() }

type counted struct {
	net.Conn
	conns *conns
	once  sync.Once
}

// Close closes the connection.
func (c *counted) Close() error {
	c.once.Do(func() {
		c.conns.open.Add(-1)
		c.conns.ended.Store(time.Now().UnixNano())
	})
	return c.Conn.Close()
}

type dialer = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

func (c *conns) counting(dial dialer) dialer {
	return func(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, to, d, cfg)
		if err != nil {
			return nil, err
		}
		c.open.Add(1)
		return &counted{Conn: conn, conns: c}, nil
	}
}

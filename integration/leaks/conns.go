// SPDX-License-Identifier: Apache-2.0

package leaks

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conns counts the connections that a client has not closed.
type Conns struct {
	open  atomic.Int64
	ended atomic.Int64 // when one was closed last, in nanoseconds since 1970
}

// Open is how many there are.
func (c *Conns) Open() int64 { return c.open.Load() }

// HungUp reports whether one was closed since then: what was under way on it has no answer.
func (c *Conns) HungUp(since time.Time) bool { return c.ended.Load() >= since.UnixNano() }

type counted struct {
	net.Conn
	conns *Conns
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

// Counting is a dialer whose connections are counted.
func (c *Conns) Counting(dial dialer) dialer {
	return func(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, to, d, cfg)
		if err != nil {
			return nil, err
		}
		c.open.Add(1)
		return &counted{Conn: conn, conns: c}, nil
	}
}

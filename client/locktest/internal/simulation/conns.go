package simulation

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
)

// counted counts the connections that a process has not closed.
type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

// Close closes the connection.
func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

type dialer = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error)

func counting(dial dialer, open *atomic.Int64) dialer {
	return func(ctx context.Context, to string, d *net.Dialer, cfg *tls.Config) (net.Conn, error) {
		conn, err := dial(ctx, to, d, cfg)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return &counted{Conn: conn, open: open}, nil
	}
}

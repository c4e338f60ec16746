package client

import "context"

// Line is how many goroutines of this process stand in memory for the lock, and whether one of them
// deals with the server.
func (c *Client) Line(name string) (waiting int, led bool) {
	_, waiting, led = c.lines.Find(c.cfg.Prefix + name)
	return waiting, led
}

// PassRun is how often a lock is passed on in a row.
const PassRun = passRun

// Tracking reports whether client-side caching is in use.
func (c *Client) Tracking() bool { return c.cache.On() }

// Told does what a call does for an Observer that is unset, whatever it returns.
func (c *Client) Told(ctx context.Context, l *Lock, err error) {
	ask := Ask{"name", true}
	c.answer(ctx, ask, c.observer.asked(ctx, ask), l, nil, err)
	c.observer.connection(err)
}

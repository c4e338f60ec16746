package client

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

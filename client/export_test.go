package client

// Line is how many goroutines of this process stand in memory for the lock, and whether one of them deals with Redis.
func (c *Client) Line(name string) (waiting int, led bool) {
	shard := c.rooms.shard(c.cfg.Prefix + name)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	g := shard.rooms[c.cfg.Prefix+name]
	if g == nil {
		return 0, false
	}
	return len(g.line), true
}

// PassRun is how often a lock is passed on in a row.
const PassRun = passRun

// Tracking tells whether client-side caching is in use.
func (c *Client) Tracking() bool { return c.cache.on.Load() }

// SPDX-License-Identifier: Apache-2.0

package client

import "github.com/holdfast-go/holdfast/client/internal/fcall"

// Line is how many goroutines of this process wait behind the one that holds the lock, or that the
// server is asked for, and whether there is one.
func (c *Client) Line(name string) (waiting int, led bool) {
	holder, waiting, led := c.queues.Line(c.settings.Prefix + name)
	if waiting > 0 && holder == nil {
		waiting--
	}
	return waiting, led
}

// PassRun is how often a lock is passed on in a row.
const PassRun = 1000

// Tracking reports whether client-side caching is in use.
func (c *Client) Tracking() bool { return c.cache.On() }

// Through puts a Backend between the client and its own.
func (c *Client) Through(wrap func(fcall.Backend) fcall.Backend) {
	c.backend = wrap(c.backend)
	c.queues.Backend, c.keeper.Backend = c.backend, c.backend
}

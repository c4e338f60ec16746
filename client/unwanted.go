package client

import (
	"time"

	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// unclaimed hears of a grant that nobody waits for. It names its token when it gives the lock back,
// so that nothing newer is given back.
func (c *core) unclaimed(owner string, g inbox.Grant) {
	if key, ok := c.departed.key(owner); ok {
		c.giveUp(&held{core: c, key: key, owner: owner, first: g.Fence, terms: &terms{}}, 2*provisional)
	}
}

// giveUp gives back, in the background, what the server may have for an owner that nobody here
// waits with any more: until the server has answered, or it cannot matter any more.
func (c *core) giveUp(h *held, effort time.Duration) {
	now := time.Now()
	c.owe(h, now, now.Add(effort))
	if h.terms.copies.Replicas > 0 {
		for _, late := range overtaken {
			if late < h.terms.Length {
				h = &held{core: c, name: h.name, key: h.key, owner: h.owner, hold: h.hold, first: h.first, terms: h.terms}
				c.owe(h, now.Add(late), now.Add(late+effort))
			}
		}
	}
	c.keepalive.poke()
}

// overtaken are the times after which to give back again what had a connection of its own: this one
// may overtake it, by as long as a network holds a packet up.
var overtaken = []time.Duration{time.Second, 3 * time.Second, 10 * time.Second, 30 * time.Second}

func (c *core) owe(h *held, at, until time.Time) {
	h.closed, h.machine = true, lease.Unwanted(at, until)
	h.entry = entry{timed: h, index: -1}
	_ = c.keepalive.add(&h.entry) // ErrClosed: the lease ends it
}

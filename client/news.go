package client

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// What the server tells unasked comes here, by owner or slot, and goes to the locks that it
// concerns. These functions are called from goroutines of rueidis, and wait for nothing.

// broken: an operator broke the lock of an owner.
func (c *core) broken(owner string, fence int64, reason string) {
	for _, lock := range c.registry.owner(owner) {
		lock.broken(fence, reason)
	}
}

// changed: the key of an owner's lock has changed; "": all keys may have.
func (c *core) changed(owner string) {
	if owner == "" {
		go c.noticed(func(concerned) bool { return true })
		return
	}
	now := time.Now()
	for _, lock := range c.registry.owner(owner) {
		lock.noticed(now)
	}
}

// resubscribed: a subscription was made anew, so the primary of the slot may be another one.
func (c *core) resubscribed(slot uint16) {
	go c.noticed(func(lock concerned) bool { return lock.in(slot) })
}

func (c *core) noticed(wanted func(concerned) bool) {
	now := time.Now()
	for _, lock := range c.registry.pick(wanted) {
		lock.noticed(now)
	}
}

// uncached: the server refused CLIENT CACHING YES. What will not change ends all use of it.
func (c *core) uncached(err error) {
	if fcall.Lasting(err) {
		c.noTracking(err)
	}
}

func (c *core) noTracking(err error) {
	c.cache.Switch(false)
	c.journal.noTracking(err)
}

func denied(err error) bool {
	return errors.Is(fcall.Classify(context.Background(), err), ErrDenied)
}

package client

import (
	"context"
	"time"
)

// closeWait is what Close gives to calls and to clean-up that are under way, and then to the
// connections. Twice that is the second that its comment promises.
const closeWait = 500 * time.Millisecond

// Close ends the context of every lock with ErrClosed, fails every waiting Acquire with it, gives
// back what nobody got, and leaves no goroutine behind. Locks that are held are not released: work
// may still be going on under them, so they end with their lease. It blocks for a second at the
// most, whatever the server does; what could not be given back by then lapses with its lease. It is
// safe to call twice; both calls block.
func (c *Client) Close() {
	patience, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	c.stop(ErrClosed)
	if c.parts.Stop != nil {
		c.parts.Stop(ErrClosed)
	}
	c.keeper.Desert() // before it waits for calls that may have no answer
	c.inflight.close(patience)
	c.keeper.Close(patience)
	if c.inbox != nil {
		c.inbox.Close(patience)
	}
	c.events.close(patience)
	if c.parts.Close != nil {
		c.parts.Close()
	}
}

package client

import (
	"context"
	"sync"
	"time"
)

// closeWait is what Close gives to calls and to clean-up that are under way.
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
	c.gate.close(patience)
	c.keepalive.close(patience)
	c.inbox.Close(patience)
	if c.quorum != nil {
		c.quorum.Close()
	}
	var closing sync.WaitGroup
	for _, d := range c.deployments {
		closing.Go(d.close)
	}
	all := make(chan struct{})
	go func() {
		closing.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-patience.Done(): // a server that is silent
	}
	for _, d := range c.deployments {
		if d.wires != nil {
			d.wires.close()
		}
	}
	select {
	case <-all:
	case <-time.After(closeWait):
	}
}

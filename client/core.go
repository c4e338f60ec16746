package client

import (
	"context"

	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/quorum"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/holdfast-go/holdfast/cluster"
)

// core is what a lock needs of its client for as long as it is held.
type core struct {
	calls     server
	inbox     *inbox.Inbox
	cache     *tracking.Cache
	registry  *registry
	departed  *departed
	keepalive *keepalive
	journal   journal
	observer  *Observer       // nil: none
	slotted   bool            // Cluster: a channel belongs to a slot
	quorum    *quorum.Servers // nil: calls is one deployment
	closing   context.Context // ends with ErrClosed when Close is called
}

// ended is the error of a call that failed with err.
func (c *core) ended(ctx context.Context, err error) error {
	if err != nil && c.closing.Err() != nil {
		return ErrClosed
	}
	return ended(ctx, err)
}

// slot is where a lock's messages come from: its hash slot in Cluster, of several servers the one that
// has its line, and one for all elsewhere.
func (c *core) slot(key string) uint16 {
	switch {
	case c.slotted:
		return cluster.Slot(key)
	case c.quorum != nil:
		return uint16(c.quorum.Line(key))
	}
	return 0
}

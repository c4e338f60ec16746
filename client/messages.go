// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// What the server sends without being asked, and what concerns several locks of this client. These functions,
// but for confirm, are called from goroutines of others, and wait for nothing.

// unclaimed undoes a grant to an owner of this client that nobody waits with any more: after a
// failover the new primary can have it in its line still. It names the token, so that nothing newer
// is undone. Where the key was too long for the message, the provisional lease ends it. A message that is
// older than the lock's release changes nothing: that release keeps the minimum.
func (c *Client) unclaimed(owner string, g inbox.Grant) {
	locks := g.Key != "" && (c.settings.NoPrefix || strings.HasPrefix(g.Key, c.settings.Prefix))
	if locks && strings.HasPrefix(owner, c.identity+":") && !c.keeper.Returns(g.Key, owner) {
		c.keeper.Undo(&keeper.Undo{Key: g.Key, Owner: owner, Token: g.Fence, Until: time.Now().Add(2 * lease.Handover)})
	}
}

// confirm asks the server whether a lock is ours, by a renewal that prolongs nothing.
func (c *Client) confirm(ctx context.Context, h *holding.Holding) error {
	r, err := c.backend.Do(ctx, keeper.Renewal(h, time.Millisecond))
	if err == nil && (!r.Yes || r.Fence != h.First) {
		err = c.keeper.Lose(h, r)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
)

// ReleaseOwner gives a lock back for the owner of that string, all of its holds, whichever process
// took them by WithOwner: for work that one process begins and another one ends. The contexts of this
// client's Locks of that owner have ended when it returns, also if the server did not answer. One that was
// acquired meanwhile ends a round trip after the server gave it back. Those of other clients end when they
// notice: at once if they have held the lock for about a second with client-side caching, else at their next
// renewal. Until then two holders are possible. It blocks for one round trip, and for a second one where an
// acquisition crossed it. If ctx is over already, it does nothing. After ErrUnreachable it may be done yet, and
// then end what that owner has acquired since.
//
// Errors: ErrNotHeld when that owner does not have the lock; ErrArgument when it has it without
// WithOwner, as on a quorum always; the rest as TryAcquire, ErrBusy excepted.
func (c *Client) ReleaseOwner(ctx context.Context, name, owner string) error {
	key, err := c.question(ctx, name)
	if err == nil && owner == "" {
		err = fmt.Errorf("%w: Owner must not be empty", ErrArgument)
	}
	ours := c.keeper.Owned(key, owner)
	for _, h := range ours {
		if err == nil && h.Hold == "" {
			err = fmt.Errorf("%w: this client has it without WithOwner: use Lock.Release", ErrArgument)
		}
	}
	if err != nil {
		return opError("release", name, err)
	}
	// Who acquires meanwhile looks again, whichever of the two the server did first: or else it is known to the
	// keeper by the second count.
	c.released.Add(1)
	for _, h := range ours {
		_ = c.keeper.Lose(h, fcall.Reply{})
	}
	r, err := c.backend.Do(ctx, fcall.Call{Verb: fcall.Release, Key: key, Owner: owner, All: true})
	c.released.Add(1)
	if err != nil {
		return opError("release", name, c.ended(ctx, err))
	}
	for _, h := range c.keeper.Owned(key, owner) { // acquired since
		_ = c.confirm(ctx, h)
	}
	if !r.Yes {
		return opError("release", name, ErrNotHeld)
	}
	return nil
}

// confirm asks the server whether a lock is ours, by a renewal that prolongs nothing.
func (c *Client) confirm(ctx context.Context, h *holding.Holding) error {
	r, err := c.backend.Do(ctx, keeper.Renewal(h, time.Millisecond))
	if err == nil && (!r.Yes || r.Fence != h.First) {
		err = c.keeper.Lose(h, r)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// ErrResign is for fn of Lead: it gives the lead up, and campaigns for it again.
var ErrResign = errors.New("the lead is given up")

// The pauses of Lead between two campaigns.
const (
	shortPause = 100 * time.Millisecond
	longPause  = 10 * time.Second
	// After a term on several servers, which have no line: the others ask again within 1.5 s.
	votingPause = 3 * time.Second
)

// Lead campaigns for the lead: it waits in line for the lock, and runs fn while this process has it,
// under the lock's context. When the lead is lost, it waits until fn has returned, whatever that
// returns, and campaigns again. When fn returns ErrResign, the next in line leads, and this process
// campaigns again, after a pause. It rides out outages: pauses between campaigns grow from 0.1 s to
// 10 s while the server cannot be reached. So it blocks until ctx ends, or fn has returned something
// else while it led: nil, or an error of its own, ends the campaign. The lock is given back then.
//
// Who leads is what Inspect says. With WithLabel its address is there too, for those who want to
// reach it; Watch tells of changes. WithMaxHold bounds a term: each that ends so is a line in the log, and a
// Lost for the Observer. Like every lock it can be lost: do the work under fn's context, and give Fence to
// what must not receive orders of two leaders. MaxWait, GiveUpEarly and WithPolling have no effect here. It
// never re-enters: under the context of a Lock of the same name it waits for that one's end.
//
// Errors: what fn returned while it led, untouched; if ctx, or that of WithLockContext, ended, or the client
// was closed, and the lead was lost before fn returned, and not by its limit, the *LostError beside that; the
// context's, as Acquire, when ctx, or that of WithLockContext, ended between two terms; ErrInvalid and
// ErrClosed, at once.
func (c *Client) Lead(ctx context.Context, name string, fn func(context.Context) error, opts ...Option) error {
	var set settings
	WithOptions(opts...)(&set)
	parent, pause := cmp.Or(set.parent, ctx), shortPause
	outage, waited := error(nil), (*WaitError)(nil) // of the last campaign
	ended := func(of context.Context) error {
		if outage != nil && of.Err() == context.DeadlineExceeded {
			return outage
		}
		return opError("lead", name, begun(of))
	}
	for {
		lock, err := c.Acquire(ctx, name, WithOptions(opts...), WithoutReentry(), campaign, WithLockContext(parent))
		switch {
		case err == nil:
			err, lost := run(ctx, lock, func(work context.Context) (error, error) { return fn(work), nil })
			if lost == nil && !errors.Is(err, ErrResign) { // fn ended the campaign
				return err
			}
			limited := errors.Is(lost, ErrMaxHold) || errors.Is(lost, ErrMaxRenewals) // the end of a term is no loss
			if lost != nil && !limited && (ctx.Err() != nil || parent.Err() != nil || c.leaving.Err() != nil) {
				return beside(err, lost)
			}
			if outage, pause = nil, shortPause; c.backend.Voting() {
				pause = votingPause
			}
		case errors.Is(err, ErrInvalid) || errors.Is(err, ErrClosed):
			return err
		case errors.Is(err, ErrUnreachable):
			outage = err
		case ctx.Err() == nil && parent.Err() == nil || errors.As(err, &waited) && waited.Last != nil:
			outage, pause = nil, shortPause
		}
		select {
		case <-time.After(pause/2 + c.jitter(pause/2)):
		case <-ctx.Done():
			return ended(ctx)
		case <-parent.Done():
			return ended(parent)
		case <-c.leaving.Done():
			return opError("lead", name, context.Cause(c.leaving))
		}
		pause = min(2*pause, longPause)
	}
}

// campaign lets a wait last for as long as it takes: who leaves the line loses its place there.
func campaign(s *settings) { s.MaxWait, s.tries, s.GiveUpEarly = 0, 0, false }

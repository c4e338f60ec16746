// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"time"
)

// Run says what became of a call of Once.
type Run struct {
	Ran bool   // fn was called, here
	By  Holder // who has this interval; the zero value: nobody, and nobody gets it yet (Guard), or several
	// from now, before which asking again cannot help: what is left of the lease while fn runs elsewhere, and
	// then of the interval. With WithLimit it can be longer, and after a run here asking again helps while fewer
	// than n have run. Negative: the key has no end, see BusyError.Remaining
	End time.Duration
}

// Once runs fn unless it ran within the interval every before, on any process of the fleet. The server
// keeps the interval, from the moment that it gives it to a process, which then begins at once: so it
// does not matter how short fn is, and what the clocks of the processes say. If fn runs longer than
// every, the next one begins after its end. If fn fails, or its process dies, nobody runs it again in
// that interval. A process that is paused before fn begins, begins late: fn's context tells whether
// the interval is still its own.
//
// It does not wait: it returns when fn has run, or at once if that is not this process's to do. When
// another process has run it in this interval, and the server was heard within the last second, Once
// returns from memory. On a schedule, every is a little shorter than its period: a ticker as slow as every
// would miss every second interval when it is a moment early. Else call it much more often.
//
// The interval is from 10 ms to a year (8760 h). The lease is Config.Lease, but no longer than every; MinHold
// and RenewEvery have no effect. What ends the interval early lets fn run again: see docs/guarantees.md for
// what a failover can lose. fn's context is that of the lock. Each name is for Once alone, with one every.
// With WithLimit fn runs so many times in an interval; WithShared and WithOwner are ErrArgument.
//
// Errors: fn's, and *LostError if the lock was lost meanwhile, as Do: fn may have run twice; else as
// TryAcquire, but for ErrBusy: that another one has the interval is no error.
func (c *Client) Once(ctx context.Context, name string, every time.Duration, fn func(context.Context) error, opts ...Option) (Run, error) {
	lock, err := c.TryAcquire(ctx, name, WithOptions(opts...), WithoutReentry(), func(s *settings) {
		// The server keeps the lock for the interval, whatever becomes of this process.
		s.every, s.Lease, s.RenewEvery, s.MinHold = &every, min(s.Lease, every), 0, every
	})
	var busy *BusyError
	switch {
	case errors.As(err, &busy):
		return Run{By: busy.Holder, End: busy.Remaining}, nil
	case err != nil:
		return Run{}, err
	}
	_, err = run(ctx, lock, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
	return Run{Ran: true, By: parseHolder(lock.Owner(), lock.Fence()), End: max(0, every-time.Since(lock.holder.Began))}, err
}

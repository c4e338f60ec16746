// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/queue"
	"github.com/holdfast-go/holdfast/functions"
)

// The kinds of errors. Every error of this package is exactly one of them, or context.Canceled when
// the caller's own context was cancelled; that of a function which failed under a lock that was lost is
// ErrLost beside what it is. The number is what a web handler answers.
var (
	// ErrBusy (409): another has the lock, and the call did not want to wait, or the line is full.
	ErrBusy = fcall.ErrBusy

	// ErrTimeout (504): the call waited until MaxWait or the context's deadline. The server answered, or
	// nobody can tell yet: a question had been under way for less than 100 ms, or the next one was not due.
	ErrTimeout = errors.New("waited too long")

	// ErrUnreachable (503): the server is gone, silent, full, starting, or refuses. The outcome of
	// the call may be unknown. A try whose deadline passed before its answer is this too, however short that
	// was: give it longer than the server's worst answer takes, 100 ms or more.
	ErrUnreachable = fcall.ErrUnreachable

	// ErrClosed (503): Close or Shutdown was called.
	ErrClosed = errors.New("client closed")

	// ErrLost (500): the lock ended early. The work may have run beside another holder.
	ErrLost = holding.ErrLost

	// ErrInvalid (500): the program or the deployment is wrong. To try again does not help.
	ErrInvalid = fcall.ErrInvalid
)

// ErrReleased is the cause of a lock's context after its Release. No call returns it.
var ErrReleased = errors.New("released")

// More precise errors. Each is of one kind too.
var (
	// ErrBusy: 5000 wait already, or the lock has 128 holds.
	ErrLineFull = error(fcall.ErrLineFull)

	// ErrClosed: Shutdown was called. It is the cause of a lock's context too: give it back soon.
	ErrShutdown = error(fcall.NewKind("client shutting down", ErrClosed))

	// ErrUnreachable: fewer replicas than Replicas have it after ReplicaWait.
	ErrNotReplicated = error(fcall.ErrNotReplicated)

	// ErrLost, all of these: not renewed in time; deleted, evicted, or taken after a failover;
	// broken (see LostError.Reason); the limits that the caller set; and a lock that was not released
	// although its context had ended: it is given back Grace after the next renewal.
	ErrExpired     = error(holding.ErrExpired)
	ErrTaken       = error(holding.ErrTaken)
	ErrBroken      = error(holding.ErrBroken)
	ErrMaxHold     = error(holding.ErrMaxHold)
	ErrMaxRenewals = error(holding.ErrMaxRenewals)
	ErrAbandoned   = error(holding.ErrAbandoned)

	// ErrInvalid, all of these: released before; the functions are missing or too old; an ACL or a
	// password; the key holds something else; an argument, which the text names.
	ErrNotHeld  = error(holding.ErrNotHeld)
	ErrLibrary  = error(fcall.ErrLibrary)
	ErrDenied   = error(fcall.ErrDenied)
	ErrNotALock = error(fcall.ErrNotALock)
	ErrArgument = error(fcall.ErrArgument)
)

// BusyError says who has the lock. It is ErrBusy.
type BusyError struct {
	Name   string
	Holder Holder // the zero value: nobody, the lock is being handed over, nobody gets it yet (Guard), or several
	// of the holder's lease; negative: it has none (a plain string set by another service). Without a
	// holder, how long nobody gets it yet
	Remaining time.Duration
	Waiters   int // places in line; goroutines of one process share one
	// Why in a word of functions/README.md: "held"; "limited" or "shared", others have it, and the first of
	// their leases can end after Remaining; "kept", nobody works under it and MinHold keeps it for Remaining,
	// Holder had it; "settling", see Guard; "serving"; "foreign"
	Why string
}

func (e *BusyError) Error() string {
	rest := fmt.Sprintf(", lease %v", e.Remaining.Round(time.Millisecond))
	if e.Why == functions.WhySettling {
		rest = fmt.Sprintf(": %v more", e.Remaining)
	} else if e.Remaining < 0 {
		rest = ", without an end"
	}
	return fmt.Sprintf("holdfast: lock %q: %s%s, %d waiting", e.Name, e.who(), rest, e.Waiters)
}

func (e *BusyError) who() string {
	switch e.Why {
	case functions.WhySettling:
		return "nobody gets it yet, the server remembers too little for Guard"
	case functions.WhyLimited, functions.WhyShared:
		return "held by others, " + e.Why
	case functions.WhyKept:
		return fmt.Sprintf("%v: kept by MinHold after %s", ErrBusy, e.Holder)
	}
	return fmt.Sprintf("%v: %s", ErrBusy, e.Holder)
}

// Unwrap makes it ErrBusy.
func (e *BusyError) Unwrap() error { return ErrBusy }

// WaitError says that Acquire stopped waiting, and what it knew last. It is what Err says: ErrTimeout (and
// context.DeadlineExceeded, if a deadline was why), ErrBusy when the tries of WithPolling were used up or the
// turn would come too late, ErrUnreachable when the server did not answer, ErrClosed, or context.Canceled.
type WaitError struct {
	Name   string
	Waited time.Duration
	// in line, the first is 1; 0: not in line, or in the line of this process only
	Position int
	Last     *BusyError // who had it when last heard; nil if never heard
	Err      error
}

func (e *WaitError) Error() string {
	text := fmt.Sprintf("holdfast: lock %q: stopped waiting after %v: %v", e.Name, e.Waited.Round(time.Microsecond), e.Err)
	if e.Last != nil && e.Position > 0 {
		text += fmt.Sprintf(" (%s, place %d in line)", e.Last.who(), e.Position)
	} else if e.Last != nil {
		text += fmt.Sprintf(" (%s)", e.Last.who())
	}
	return text
}

// Unwrap returns Err.
func (e *WaitError) Unwrap() error { return e.Err }

// LostError is why a lock ended before its Release: the cause of its context, and what Renew and Release
// return then. It is ErrLost, and one of ErrExpired, ErrTaken, ErrBroken, ErrMaxHold, ErrMaxRenewals,
// ErrAbandoned; or ErrClosed alone, when the client was closed; or ErrShutdown, when it shuts down.
type LostError struct {
	Name  string
	Owner string
	Fence int64
	// of a break, in the words of the one who broke it: text from others, quote it in logs
	Reason string
	Err    error
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("holdfast: lock %q: %v", e.Name, e.Err)
	if errors.Is(e.Err, ErrLost) {
		text = fmt.Sprintf("holdfast: lock %q: %v: %v", e.Name, ErrLost, e.Err)
	}
	if e.Reason != "" {
		text += fmt.Sprintf(": %q", e.Reason)
	}
	return text
}

// Unwrap returns Err.
func (e *LostError) Unwrap() error { return e.Err }

// opError names the operation and the lock that an error belongs to.
func opError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("holdfast: %s %q: %w", op, name, err)
}

// ended is the error of a call whose context ended without an answer of the server. A deadline that passes
// while the server is silent is an outage; one that had passed before the call is the caller's.
func (c *Client) ended(ctx context.Context, err error) error {
	switch {
	case err != nil && c.closing.Err() != nil:
		return ErrClosed
	case errors.Is(err, queue.ErrClosed): // granted, but too late
		return context.Cause(c.leaving)
	case errors.Is(err, queue.ErrTimeout): // of a try, which does not wait; its deadline's timer may be late
	case ctx.Err() == nil || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return canceled(ctx)
	}
	return fmt.Errorf("%w: no answer before the context's deadline", ErrUnreachable)
}

// canceled is the error of a cancelled context. Its cause is shown, and not wrapped: it can be of
// another kind.
func canceled(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil && cause != ctx.Err() {
		return fmt.Errorf("%w: %v", ctx.Err(), cause)
	}
	return ctx.Err()
}

// begun is the error of a context that is over, as of a call that had not begun.
func begun(ctx context.Context) error {
	switch ctx.Err() {
	case nil:
		return nil
	case context.Canceled:
		return canceled(ctx)
	}
	return timeout(ctx)
}

// busy says who has the lock; nil: that is not known, as when a renewal of what was handed over was refused.
func (w *want) busy(r *fcall.Reply) *BusyError {
	if r == nil || r.Why == functions.WhyFree || r.Why == functions.WhyBroken {
		return nil
	}
	return &BusyError{Name: w.Name, Holder: parseHolder(r.Holder, r.Fence), Remaining: r.Remaining,
		Waiters: int(max(0, r.Waiters)), Why: r.Why}
}

// stopped is the error of a wait that ended without the lock.
func (w *want) stopped(ctx context.Context, began time.Time, position int, last *BusyError, err error) error {
	ends := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if p := w.parent; ends && p.Err() != nil && (ctx.Err() == nil || context.Cause(ctx) == errParent) {
		ctx, err = p, p.Err()
	}
	switch {
	case w.client.leaving.Err() != nil:
		err = context.Cause(w.client.leaving)
	case errors.Is(err, ErrInvalid):
		return opError("acquire", w.Name, err)
	case errors.Is(err, context.Canceled):
		err = canceled(ctx)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, queue.ErrTimeout):
		err = timeout(ctx)
	}
	return &WaitError{Name: w.Name, Waited: time.Since(began), Position: position, Last: last, Err: err}
}

// within is ctx until MaxWait is over.
func (s *settings) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.MaxWait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, s.MaxWait, errMaxWait)
}

// The causes of a wait's end by MaxWait, and by the context of WithLockContext.
var (
	errMaxWait = errors.New("MaxWait is over")
	errParent  = errors.New("the lock's context would be over")
)

// timeout is the error of a wait that a deadline ended.
func timeout(until context.Context) error {
	select {
	case <-until.Done(): // its timer may be late, and only then the cause says why
	case <-time.After(time.Second): // one of a kind that is never done
	}
	if context.Cause(until) == errMaxWait {
		return fmt.Errorf("%w: %w", ErrTimeout, errMaxWait)
	}
	return fmt.Errorf("%w: %w", ErrTimeout, context.DeadlineExceeded)
}

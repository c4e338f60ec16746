// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/bed"
)

// bounded is a context whose end is known.
type bounded struct {
	context.Context
	cancel context.CancelFunc
	ends   time.Time
}

// within returns a context that ends after d, by a deadline or by a cancel.
func within(parent context.Context, d time.Duration, cancels bool) *bounded {
	b := &bounded{ends: time.Now().Add(d)}
	if at, ok := parent.Deadline(); ok && at.Before(b.ends) {
		b.ends = at
	}
	if !cancels {
		b.Context, b.cancel = context.WithDeadline(parent, b.ends)
		return b
	}
	var cancel context.CancelCauseFunc
	b.Context, cancel = context.WithCancelCause(parent)
	timer := time.AfterFunc(time.Until(b.ends), func() { cancel(errors.New("the caller went away")) })
	b.cancel = func() { timer.Stop(); cancel(nil) }
	return b
}

// call is one call of the client.
type call struct {
	process *process
	who     string
	name    string
	verb    string
	began   time.Time
	ends    time.Time // of its context
	joins   bool      // it may be refused because of how others hold the lock
	local   bool      // it may fail because of what was done to its own Lock before
	short   bool      // its lease is not much longer than the network's latency
	try     bool
	all     bool // it is about all locks
}

// within notes what MaxWait leaves of the call's time. 0: it is not bounded so.
func (c *call) within(maxWait time.Duration) {
	if at := c.began.Add(maxWait); maxWait > 0 && at.Before(c.ends) {
		c.ends = at
	}
}

const moment = 300 * time.Millisecond

// done looks at how a call ended.
func (o *observer) done(c *call, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	l := o.locks[c.name]
	took := now.Sub(c.began)
	if err != nil {
		o.history.add(c.name, c.who, "%s failed after %v: %v", c.verb, took, err)
	}
	ends := c.ends
	if at := c.process.closedAt.Load(); at != nil && at.Add(time.Second).Before(ends) {
		ends = at.Add(time.Second)
	}
	if ends.Before(c.began) {
		ends = c.began
	}
	o.report.Count(Checks, "6 call", 1)
	if now.Sub(ends) > moment {
		o.broken(l.name, 6, "%s of %s returned %v after its context had ended", c.verb, c.who, now.Sub(ends))
	}
	if err != nil {
		o.checkKind(l, c, err, now)
	}
}

// checkKind looks whether an error is of one kind, and of one that can be.
func (o *observer) checkKind(l *lock, c *call, err error, now time.Time) {
	of := bed.Kinds(err)
	o.report.Count(Checks, "7 error", 1)
	if len(of) != 1 {
		o.broken(l.name, 7, "%s of %s failed with an error of the kinds %v: %v", c.verb, c.who, of, err)
		return
	}
	if text := o.unexpected(c, of[0], err, now); text != "" {
		o.broken(l.name, 7, "%s of %s: %s: %v", c.verb, c.who, text, err)
	}
}

// unexpected says why an error cannot be, "" if it can.
func (o *observer) unexpected(c *call, kind string, err error, now time.Time) string {
	host := c.process
	closed := c.process.isClosed()
	switch kind {
	case "busy":
		var busy *client.BusyError
		ours := errors.As(err, &busy) && labelOf(busy.Holder.Owner) == c.process.label // that needs no server
		if c.try && !ours && !host.cut.IsZero() && c.began.Sub(host.cut) > 1200*time.Millisecond {
			return fmt.Sprintf("busy, and nothing came through for %v", c.began.Sub(host.cut))
		}
	case "timeout":
		if c.all || c.verb == "value" || o.locks[c.name].believedBy(c.process) {
			return "" // its own process has the lock, may have one of them, or asks for the value
		}
		if !host.cut.IsZero() && c.began.After(host.cut) && now.Sub(c.began) > 250*time.Millisecond {
			patience := waitersAsk + time.Second
			if o.need > 0 { // the other one rides out an outage of a lease, by questions to the line's server
				patience += o.mix.guard
			}
			if !c.try && now.Sub(c.began) < patience {
				o.report.Count(Admitted, "known: behind another goroutine of the process, silence between its questions is not heard", 1)
				return ""
			}
			return "a time-out, and the server was never heard"
		}
	case "unreachable":
		if o.partial {
			o.report.Count(Admitted, "known: a wait ends while the server that has the line is asked in vain, and nobody else is", 1)
			return ""
		}
		if !o.faulty && !c.short && !closed && now.Sub(c.began) > 100*time.Millisecond {
			return "an outage where there was no fault"
		}
	case "closed":
		if !closed {
			return "closed by nobody"
		}
	case "invalid":
		return o.invalid(c, err)
	}
	return ""
}

func (o *observer) invalid(c *call, err error) string {
	lends := false // others ask by its owner string
	for name, l := range o.locks {
		lends = lends || l.lenders[c.process.label] && (c.all || name == c.name)
	}
	switch {
	case errors.Is(err, client.ErrArgument) && (c.joins || lends):
	case errors.Is(err, client.ErrNotHeld) && c.local:
	case errors.Is(err, client.ErrLibrary) && !o.libMissing.Before(c.began.Add(-recovery)):
	default:
		return "invalid, and nothing was wrong"
	}
	return ""
}

// releaseAgain is after what time a Release asks again.
const releaseAgain = 5 * time.Millisecond

// checkRelease looks at a Release that returned nil: the server cannot have said, before, that the
// lock was another's.
func (o *observer) checkRelease(h *holder, began time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !h.process.faulty.Before(began) {
		return // a reply may have been lost
	}
	onlyRefusals := len(o.mix.faults) == 1 && o.mix.faults["loss and refusal"] > 0
	if !onlyRefusals && h.process.conns.HungUp(began) {
		return // the same: who is told that the server is a replica hangs up
	}
	yes, no := false, false
	for _, r := range o.locks[h.name].releases {
		if r.owner == h.owner && !r.at.Before(began) {
			// One that comes later can be a repeat: the first request failed with a connection that had
			// ended, and nobody can tell whether it had left. Where nothing but refusals happens, it did
			// not.
			first := r.at.Sub(began) < releaseAgain || onlyRefusals
			yes, no = yes || r.yes, no || !r.yes && first
		}
	}
	if no || yes {
		o.report.Count(Checks, "7 release", 1)
	}
	if no && !yes {
		o.broken(h.name, 7, "Release of %s returned nil, and the server had said that the lock is another's", h.who)
	}
}

// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
)

// launch makes the call that the machine asked for, unless that is its caller's own. e.mu is held.
func (e *entry) launch() {
	if !e.due || e.machine.call.Op == Acquire {
		return
	}
	a := e.machine.call
	ctx, cancel := context.WithCancel(context.Background())
	e.due, e.cancel = false, cancel
	go func() {
		defer cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.machine.wants(a) {
			e.make(ctx, a, false, time.Now())
		}
	}()
}

// make makes a call in this goroutine, now. e.mu is held, but not while it waits.
func (e *entry) make(ctx context.Context, a Action, tracked bool, now time.Time) {
	c, claim, state := e.form(a), e.claimed(a), (*inbox.State)(nil)
	c.Tracked = tracked
	e.mu.Unlock()
	if claim != nil {
		state = claim.Ready(ctx, silence)
		c.Channel, now = state.Channel, time.Now()
	}
	var o fcall.Outcome
	o.Reply, o.Err = e.Backend.Do(ctx, c)
	over := ctx.Err() // a lock's context looks at its lease, and may end it: not under a mutex
	e.mu.Lock()
	e.answered(a, o, over, now, state)
}

// claimed is the claim of an owner that is about to wait, so that its messages are received; else nil.
// e.mu is held.
func (e *entry) claimed(a Action) *inbox.Claim {
	if a.Op != Wait || e.Inbox == nil {
		return nil
	}
	if e.claim == nil {
		owner, _ := e.ids(a.Owner)
		e.claim = e.Inbox.Claim(e.Backend.Slot(e.key), owner, func(g inbox.Grant) { e.receive(owner, g) })
	}
	return e.claim
}

// ride has the wait that the machine asked for follow a release, behind which it finds the lock free, in one
// pipeline where that can be, and of several servers when they have answered; or go with what others
// ask. Else nil: it is made apart. e.mu is held.
func (e *entry) ride() *keeper.Ride {
	if !e.due {
		return nil
	}
	a, state := e.machine.call, (*inbox.State)(nil)
	ride := &keeper.Ride{Length: a.Terms.Length}
	if !e.Backend.Voting() {
		claim := e.claimed(a)
		if claim != nil {
			state = claim.State()
		}
		if state == nil || state.Channel == "" || a.Terms.Replicas > 0 { // a release waits for no replica
			e.launch()
			return nil
		}
		ride.Call = e.form(a)
		ride.Call.Channel, e.riding, e.rides = state.Channel, ride, a.Owner
	}
	e.due = false
	ride.Answered = func(o fcall.Outcome, sent time.Time) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.riding == ride {
			e.riding = nil
		}
		if ride.Call.Verb != "" {
			e.answered(a, o, nil, sent, state)
		} else if e.machine.wants(a) {
			e.due = true
			e.launch()
		}
	}
	return ride
}

// form is the call of an action. e.mu is held.
func (e *entry) form(a Action) fcall.Call {
	t := a.Terms
	owner, hold := e.ids(a.Owner)
	c := fcall.Call{Verb: verbs[a.Op], Key: e.key, Owner: owner, Hold: hold, Fence: a.Token, TTL: t.TTL,
		Guard: t.GuardText, MinHold: t.MinHoldText, Crowd: t.Crowd, Valued: t.Valued, Replicas: t.Replicas, ReplicaWait: t.ReplicaWait}
	if w := a.Waiter; a.Op == Wait && w.GiveUpEarly && w.Until > 0 {
		c.MaxWait = min(max(time.Millisecond, w.Until-e.now()), functions.MaxTTL*time.Millisecond)
	}
	if a.Run && t.MinHold == 0 && hold == "" && !e.Backend.Voting() {
		c.Tokens = min(passRun, int64(t.Length/time.Microsecond))
	}
	return c
}

var verbs = [...]fcall.Verb{Acquire: fcall.Acquire, Wait: fcall.Wait, Renew: fcall.Renew}

// answered is an answer to a call, or that there is none. over is the end of the call's context, state that
// of the subscription when it was made. e.mu is held.
func (e *entry) answered(a Action, o fcall.Outcome, over error, sent time.Time, state *inbox.State) {
	if o.Err == nil {
		e.Answered()
	}
	if !e.machine.wants(a) {
		if o.Err == nil && o.Yes && a.Owner != e.machine.owner && a.Owner != e.machine.h.Owner {
			e.undo(Action{Owner: a.Owner, Terms: a.Terms}) // it was undone meanwhile, and the undo may have been first
		}
		return
	}
	if e.err = o.Err; errors.Is(o.Err, fcall.ErrNotReplicated) {
		e.short = o.Err
	}
	now := time.Now()
	ev := Event{Kind: Denied, No: a.No, Token: o.Fence, Top: max(o.Top, o.Fence), Unknown: o.Doubt || o.Err != nil && fcall.Unknown(o.Err)}
	switch {
	case o.Err != nil && over != nil:
		e.end(a.Waiter, over)
		return
	case errors.Is(o.Err, fcall.ErrUnreachable),
		errors.Is(o.Err, context.Canceled), errors.Is(o.Err, context.DeadlineExceeded): // of a release, with which it went
		ev.Kind = NoAnswer
	case o.Err != nil:
	case o.Yes:
		e.sent, e.left, e.granted = lease.At(now, sent), 0, now
		ev.Kind, ev.Late = Yes, lease.Past(now, lease.Deadline(sent, a.Terms.Length))
		ev.Confirm = a.Op == Wait && a.Terms.Replicas > 0
	default:
		if sent.Sub(e.asked) >= e.look { // a whole pause ago, so this was no poll
			e.look = min(2*e.look, longestLook)
		}
		e.asked, e.heard = sent, state
		ev.Kind, ev.Spent, ev.Left = e.no(a, o.Reply), o.Spent, o.Why == functions.WhyDone
	}
	e.step(now, ev)
}

// no is an answer that the lock is somebody else's, or that its turn would come too late.
func (e *entry) no(a Action, r fcall.Reply) Kind {
	if e.last == nil || e.last.Fence != r.Fence {
		e.look = lookPause
	}
	e.last = &r
	e.refusal().Store(int64(e.now()))
	if a.Op == Wait {
		a.Waiter.Position = int(max(0, r.Waiters))
	}
	switch {
	case r.Why == functions.WhyDone:
		e.err = &fcall.Done{Value: r.Value, Since: e.asked, Keep: r.Remaining}
		return Denied
	case r.Waiters < 0:
		e.err = fmt.Errorf("%w: its turn would come too late, as number %d in line", fcall.ErrBusy, -r.Waiters)
		r.Waiters = -r.Waiters - 1
		return Denied
	case e.heard == nil:
	case e.heard.Channel == "" || r.Subscribers > 0:
		e.unheard = 0
	default: // the subscription is at another node: a replica, or a primary that was demoted
		e.claim.Unheard(e.heard)
		if e.unheard++; e.unheard == unheardOf {
			e.Unheard()
		}
	}
	return No
}

// receive is a message for an owner of this queue: of a place, or of what a holder has. It is called by the
// inbox.
func (e *entry) receive(owner string, g inbox.Grant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch h := e.h; {
	case g.Key != "" && g.Key != e.key: // of a channel that somebody wrote by hand
	case g.Look() && h != nil && h.Owner == owner:
		e.Keeper.Notice(h)
	case g.Look() || g.Key == "" || e.fixed != "":
		e.step(time.Now(), Event{Kind: Timer})
	default:
		e.grant(owner, g)
	}
}

// grant is a lock that was handed over. The message says the lease's end by the server's clock; the
// last answer to a wait told that clock's time, and it is counted from before that was asked for:
// never late. One that too little is left of, that is by another clock (more is left than can be, or it
// came by another subscription than that answer, perhaps from another primary), or that is to stand
// unrenewed, is confirmed by a renewal first.
func (e *entry) grant(owner string, g inbox.Grant) {
	ev := Event{Kind: Grant, Owner: owner, Token: g.Fence, Top: g.Fence + g.Tokens - 1, Confirm: true}
	now := time.Now()
	if t := e.machine.call.Terms; t != nil && e.heard != nil && e.heard.Channel != "" && e.last.ServerMS > 0 {
		whole := min(t.Length, lease.Handover)
		ago := lease.Since(now, e.asked)
		left := time.Duration(g.UntilMS-e.last.ServerMS)*time.Millisecond - ago
		// No more than all can be left: the rest is rounding. A token is not ahead of the server's clock.
		another := left > whole+2*time.Millisecond || e.heard.Stale() || g.Fence/1000 > e.last.ServerMS+ago.Milliseconds()
		left -= ago/100 + lease.Margin(left)
		ev.Confirm = t.RenewEvery == 0 || t.Replicas > 0 || left < whole/2 || another
		e.left, e.granted = left, now
	}
	e.step(now, ev)
}

// pause is how long to wait before asking again, after a call that failed a short time. Else a moment after
// the holder's lease, and about a second, so that those who live notice a dead one within its
// provisional lease; less often while nothing changes.
func (e *entry) pause() time.Duration {
	r := e.last
	switch {
	case e.machine.State() == Confirming: // what was granted is good for two seconds, however long the outage was
		return failPause + e.Jitter(4*failPause)
	case r == nil || e.err != nil:
		return failPause + e.Jitter(max(4*failPause, min(lookPause, (e.now()-e.machine.due)/8)))
	case r.Again > 0:
		return r.Again
	}
	pause := e.look + e.Jitter(e.look/2)
	pause += beat - (e.now()+pause)%beat // with others, in one pipeline
	polls := e.heard == nil || e.heard.Channel == "" || r.Subscribers == 0
	switch {
	case r.Why == functions.WhyKept || r.Why == functions.WhySettling:
		if pause = longestSleep; polls {
			pause = lookPause
		}
	case polls || r.Why == functions.WhyForeign || r.Why == functions.WhyServing:
		pause = pollPause
	case e.fixed != "": // of several that wait by one owner string, one is notified
		pause = min(pause, sharedPause)
	}
	if r.Remaining >= 0 && r.Why != functions.WhyServing {
		stagger := time.Duration(min(max(0, r.Waiters), 20)) * time.Millisecond
		pause = min(pause, r.Remaining+time.Millisecond+stagger)
	}
	return pause
}

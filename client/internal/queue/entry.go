// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
)

// entry is the queue of a key with what its machine knows nothing of: calls, subscriptions, the
// Holding. All of it is guarded by mu: that of the key's shard, or of its own one for a queue of one.
type entry struct {
	*Queues
	*shard
	key   string
	fixed string // the owner string of the caller's choice; "": fresh ones

	machine Machine
	h       *holding.Holding // what a holder here has
	claim   *inbox.Claim     // of the present owner, from its first wait on
	first   Waiter           // nearly always the only one

	due    bool         // the machine's call is to be made
	riding *keeper.Ride // the last one, of the owner rides; nil: it has an answer
	rides  string
	cancel context.CancelFunc // of the last call that no caller's goroutine made
	timer  *time.Timer        // of the machine's pause

	sent    time.Time     // what was granted was asked for then
	left    time.Duration // what was handed over is good for so long; 0: it was granted for a whole lease
	granted time.Time     // when that was heard of: not before the server's clock had the token
	last    *fcall.Reply  // the last refusal, when it was asked for, and by which subscription
	asked   time.Time
	heard   *inbox.State  // nil: by none
	err     error         // of the last call; nil: it was answered
	short   error         // too few replicas had the last grant; nil: they did, or there was none
	unheard int           // answers in a row that found no subscriber on our channel
	look    time.Duration // the next pause of a waiter that can be notified
}

// ended is what a Waiter's goroutine gets.
type ended struct {
	Waited
	turn   chan struct{} // closed when done; nil: nobody blocks
	done   bool
	holder *holding.Holder
	err    error
}

// fresh makes the next owner of the place.
func (e *entry) fresh(label string) string {
	e.drop()
	if e.fixed != "" {
		return e.HoldID()
	}
	return e.Owner(label)
}

// ids are the owner string, and the hold, of what the machine knows as an owner: for an owner of the
// caller's choice that is the hold.
func (e *entry) ids(owner string) (_, hold string) {
	if e.fixed != "" {
		return e.fixed, owner
	}
	return owner, ""
}

// drop ends the claim of a place that is given up.
func (e *entry) drop() {
	if e.claim != nil {
		e.claim.Drop()
		e.claim = nil
	}
}

// step is an event for the machine, and does what that asks for; but the wait that follows a Release is left
// to the caller. e.mu is held.
func (e *entry) step(now time.Time, ev Event) {
	ev.Now = now.Sub(e.born)
	for _, a := range e.machine.Step(ev) {
		switch a.Op {
		case Acquire, Wait, Renew:
			e.due = true
		case Abandon:
			if e.due = false; e.cancel != nil {
				e.cancel()
			}
		case Undo:
			e.undo(a)
		case Serve:
			e.serve(a, now)
		case Fail:
			e.fail(a.Waiter, a.Err)
		}
	}
	state := e.machine.State()
	if state != Held {
		e.h = nil
	}
	if state == Absent {
		e.drop()
		if e.keys[e.key] == e {
			delete(e.keys, e.key)
		}
	}
	if pauses := e.machine.Pauses(); !pauses && e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	} else if pauses && e.timer == nil {
		e.timer = time.AfterFunc(e.pause(), func() {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.step(time.Now(), Event{Kind: Timer})
		})
	}
	switch {
	case ev.Kind == Release:
	case ev.Kind == Timer && !e.Backend.Voting():
		if ride := e.ride(); ride != nil {
			e.Keeper.Ask(ride)
		}
	default:
		e.launch()
	}
}

func (w *Waiter) finish() {
	if w.done = true; w.turn != nil {
		close(w.turn)
	}
}

// undo gives back what an owner may have, in the background.
func (e *entry) undo(a Action) {
	owner, hold := e.ids(a.Owner)
	until := time.Now().Add(lineTime)
	if a.Terms != nil {
		until = until.Add(a.Terms.Length)
	}
	u := &keeper.Undo{Key: e.key, Owner: owner, Hold: hold, Token: a.Token, Again: a.Again, Until: until}
	if a.Owner == e.rides && a.Token == 0 {
		u.After = e.riding
	}
	e.Keeper.Undo(u)
}

// serve gives the lock to a waiter: a new Holding, or the next token of the one that is here.
func (e *entry) serve(a Action, now time.Time) {
	w := a.Waiter
	if e.short = nil; a.First {
		w.holder, w.err = e.hold(a)
		if e.last != nil && e.last.Holder != "" {
			w.Last = e.last
		}
	} else {
		w.holder = e.h.Pass(now) // what is due of it comes no earlier, so the keeper need not look
	}
	w.finish()
}

// hold makes a Holding of what was granted on basis. It fails after Close.
func (e *entry) hold(a Action) (*holding.Holder, error) {
	owner, hold := e.ids(a.Owner)
	g := holding.Grant{Name: e.first.Name, Key: e.key, Owner: owner, Hold: hold, Terms: a.Terms,
		First: a.Token, Top: a.Top, Since: e.granted, Doubt: a.Again, LostError: e.LostError}
	if g.Lease = lease.New(a.Terms, e.sent); e.left != 0 {
		g.Lease = lease.Provisional(a.Terms, e.granted, e.granted.Add(e.left))
	}
	if a.Terms.Crowd != 0 { // see fcall.Reply
		g.Slot, g.Top = int(a.Top-a.Token+1), a.Token
	}
	t := holding.New(g)
	e.h = t.Holding
	if e.claim != nil {
		e.h.Finally(e.claim.Drop)
		e.claim = nil
	}
	if !e.Keeper.Add(e.h) {
		e.undo(a)
		e.h.Close()
		return nil, ErrClosed
	}
	return t, nil
}

// fail ends a waiter's call without the lock.
func (e *entry) fail(w *Waiter, err error) {
	w.err, w.Last = err, e.last
	none := w.Terms.Replicas == 0 // then too few are no reason
	switch {
	case err == fcall.ErrUnreachable && (!errors.Is(e.err, err) || none && errors.Is(e.err, fcall.ErrNotReplicated)):
		w.err = fmt.Errorf("%w: no answer before the wait's end", err)
	case err == fcall.ErrUnreachable || err == errRefused:
		w.err = e.err
	case err == ErrTimeout && e.short != nil && !none:
		w.err = e.short
	}
	if e.h != nil { // of this process
		t := e.h.Holder()
		until, _ := t.Stands()
		w.Last = &fcall.Reply{Holder: t.Owner, Fence: t.Fence, Remaining: max(0, time.Until(until)), Why: functions.WhyHeld}
	}
	w.finish()
}

// end is the end of a waiter's context. Who cancelled it is told that, and not how the server is.
func (e *entry) end(w *Waiter, why error) {
	waits := !w.done
	e.step(time.Now(), Event{Kind: End, Waiter: w})
	if waits && errors.Is(why, context.Canceled) {
		w.err = why
	}
}

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

// stir wakes the agent, and starts it if there is none. e.mu is held.
func (e *entry) stir() {
	if e.wake == nil {
		e.wake = make(chan struct{}, 1)
	}
	if !e.agent {
		e.agent = true
		go e.run()
		return
	}
	e.poke()
}

func (e *entry) poke() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// run is the agent: the one goroutine that asks the server for those who wait, until nobody does.
func (e *entry) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		now := time.Now()
		switch {
		case e.call.Op != 0:
			e.make()
			continue
		case !e.timer.IsZero() && !now.Before(e.timer):
			e.timer = time.Time{}
			e.step(Event{Kind: Timer})
			continue
		case e.timer.IsZero():
			e.agent = false
			return
		}
		timer.Reset(e.timer.Sub(now))
		e.mu.Unlock()
		select {
		case <-timer.C:
		case <-e.wake:
		}
		e.mu.Lock()
	}
}

// make makes the call that the machine asked for. e.mu is held, but not while it waits.
func (e *entry) make() {
	call := e.call
	e.call = Action{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(e.Closing))
	e.cancel = cancel
	if call.Op == Wait {
		e.stand(call)
	}
	p, c := e.place, e.form(call)
	e.mu.Unlock()
	if p != nil && call.Op == Wait {
		state := p.claim.Ready(ctx, silence)
		c.Channel = state.Channel
		e.mu.Lock()
		p.state = state
		e.mu.Unlock()
	}
	o, sent := e.ask(ctx, c)
	e.mu.Lock()
	over := ctx.Err() != nil
	cancel()
	if !over {
		e.cancel = nil
		e.answered(context.Background(), call, o, sent)
	}
}

// stand makes the place of an owner that is about to wait, so that its messages are received. e.mu is
// held.
func (e *entry) stand(a Action) {
	if e.Inbox != nil && e.place == nil {
		owner, _ := e.ids(a.Owner)
		p := &place{entry: e, owner: owner}
		p.claim = e.Inbox.Claim(e.Slot(e.key), owner, p.receive)
		e.place = p
	}
}

// ride takes the wait that the agent was asked for, and has it follow a release, behind which it finds the
// lock free: in one pipeline where that can be, and of several servers when they have answered. e.mu is
// held.
func (e *entry) ride() *keeper.Ride {
	a := e.call
	if a.Op != Wait {
		return nil
	}
	if e.Backend.Voting() {
		e.call = Action{}
		return &keeper.Ride{Answered: func(fcall.Outcome, time.Time) {
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.machine.wants(a) {
				e.call = a
				e.stir()
			}
		}}
	}
	e.stand(a)
	if e.place == nil {
		return nil
	}
	if e.place.state = e.place.claim.State(); e.place.state.Channel == "" {
		return nil
	}
	e.call = Action{}
	c := e.form(a)
	c.Channel = e.place.state.Channel
	return &keeper.Ride{Call: c, Answered: func(o fcall.Outcome, sent time.Time) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.late(a, o)
		e.answered(context.Background(), a, o, sent)
	}}
}

// late undoes what a call gave to an owner that was undone meanwhile: the undo may have been first. e.mu
// is held.
func (e *entry) late(a Action, o fcall.Outcome) {
	if o.Err == nil && o.Yes && a.Owner != e.machine.owner && a.Owner != e.machine.h.owner {
		e.undo(Action{Owner: a.Owner, Terms: a.Terms})
	}
}

// form is the call of an action. e.mu is held.
func (e *entry) form(a Action) fcall.Call {
	t := a.Terms
	owner, hold := e.ids(a.Owner)
	c := fcall.Call{Key: e.key, Owner: owner, Hold: hold, TTL: t.TTL, Guard: t.GuardText, MinHold: t.MinHoldText,
		Replicas: t.Replicas, ReplicaWait: t.ReplicaWait}
	switch a.Op {
	case Acquire:
		c.Verb = fcall.Acquire
	case Wait:
		c.Verb = fcall.Wait
		if w := a.Waiter; w.GiveUpEarly && w.Until > 0 {
			c.MaxWait = min(max(time.Millisecond, w.Until-e.now()), functions.MaxTTL*time.Millisecond)
		}
	case Renew:
		c.Verb, c.Fence = fcall.Renew, a.Token
	}
	if a.Run && t.MinHold == 0 && hold == "" && !e.Backend.Voting() {
		c.Tokens = min(passRun, int64(t.Length/time.Microsecond))
	}
	return c
}

// ask makes a call. e.mu is not held.
func (e *entry) ask(ctx context.Context, c fcall.Call) (o fcall.Outcome, sent time.Time) {
	sent = time.Now()
	o.Reply, o.Err = e.Backend.Do(ctx, c)
	return o, sent
}

// answered is an answer to a call, or that there is none. e.mu is held. An answer that nobody waits for
// any more is dropped by the machine.
func (e *entry) answered(ctx context.Context, a Action, o fcall.Outcome, sent time.Time) {
	if ctx.Err() == nil && (errors.Is(o.Err, context.Canceled) || errors.Is(o.Err, context.DeadlineExceeded)) {
		// It went with a release, whose context ended.
		o.Err = fmt.Errorf("%w: no answer in time", fcall.ErrUnreachable)
	}
	if e.err = o.Err; errors.Is(o.Err, fcall.ErrNotReplicated) {
		e.short = o.Err
	}
	switch ev := (Event{No: a.No, Token: o.Fence, Top: max(o.Top, o.Fence)}); {
	case o.Err != nil && ctx.Err() != nil:
		e.end(ctx, a.Waiter.call)
	case errors.Is(o.Err, fcall.ErrUnreachable):
		ev.Kind, ev.Unknown = NoAnswer, fcall.Unknown(o.Err)
		e.step(ev)
	case o.Err != nil:
		ev.Kind = Denied
		e.step(ev)
	case o.Yes:
		e.yes(a, ev, sent)
	default:
		e.no(a, ev, o.Reply, sent)
	}
}

func (e *entry) yes(a Action, ev Event, sent time.Time) {
	t, now := a.Terms, time.Now()
	ev.Kind, ev.Late = Yes, lease.Past(now, lease.Deadline(sent, t.Length))
	ev.Confirm = a.Op == Wait && t.Replicas > 0
	e.basis, e.granted = lease.New(t, sent), now
	if a.Op == Renew {
		ev.Top = e.toldTop(a.Token)
	}
	e.step(ev)
}

func (e *entry) no(a Action, ev Event, r fcall.Reply, sent time.Time) {
	e.last, e.asked = &r, sent
	if e.shard != nil {
		if len(e.shard.refused) >= mostRefused {
			clear(e.shard.refused)
		}
		e.shard.refused[e.key] = e.now()
	}
	ev.Kind, ev.Spent = No, r.Spent
	if e.asker, e.position = a.Waiter, 0; a.Op == Wait {
		e.position = int(max(0, r.Waiters))
	}
	switch {
	case r.Waiters < 0:
		e.err = fmt.Errorf("%w: %w, as number %d in line", fcall.ErrBusy, errLate, -r.Waiters)
		r.Waiters = -r.Waiters - 1
		ev.Kind = Denied
	case a.Op == Wait && e.place != nil:
		e.hears(&r)
	}
	e.step(ev)
}

// hears looks whether the server found a subscriber on the channel that it was given. If not, the
// subscription is at another node: a replica, or a primary that was demoted.
func (e *entry) hears(r *fcall.Reply) {
	p := e.place
	if p.heard = p.state; p.state.Channel == "" || r.Subscribers > 0 {
		e.unheard = 0
		return
	}
	p.claim.Unheard(p.state)
	if e.unheard++; e.unheard == unheardOf {
		e.Unheard()
	}
}

// receive is a message for the owner of a place, or of a Holding. It is called by the inbox.
func (p *place) receive(m inbox.Grant) {
	e := p.entry
	if h := p.h.Load(); h != nil {
		switch {
		case m.Look():
			e.Keeper.Notice(h)
		case m.Fence != h.First && m.Key == h.Key && h.Hold == "":
			e.Keeper.Undo(&keeper.Undo{Key: h.Key, Owner: h.Owner, Token: m.Fence, Until: time.Now().Add(undoFor(h.Terms))})
		}
		return
	}
	e.mu.Lock()
	if p.h.Load() != nil { // this very moment
		e.mu.Unlock()
		p.receive(m)
		return
	}
	defer e.mu.Unlock()
	switch {
	case m.Key != "" && m.Key != e.key: // of a channel that somebody wrote by hand
	case e.place != p:
	case m.Look() || m.Key == "" || e.fixed != "":
		e.step(Event{Kind: Timer})
	default:
		e.grant(m)
	}
}

// grant is a lock that was handed over. The message says the lease's end by the server's clock; the
// last answer to a wait told that clock's time, and it is counted from before that was asked for:
// never late. One that too little is left of, that came by another subscription than that answer
// (perhaps from another primary, with another clock), or that is to stand unrenewed, is confirmed by a
// renewal first.
func (e *entry) grant(g inbox.Grant) {
	ev := Event{Kind: Grant, Owner: e.place.owner, Token: g.Fence, Top: g.Fence + g.Tokens - 1, Late: true}
	if w := e.machine.First(); w != nil && e.last != nil && e.last.ServerMS > 0 && e.place.heard.Channel != "" {
		t, now := w.Terms, time.Now()
		length := time.Duration(g.UntilMS-e.last.ServerMS) * time.Millisecond
		left := length - now.Sub(e.asked)
		left -= now.Sub(e.asked)/100 + lease.Margin(left)
		ev.Late = t.RenewEvery == 0 || t.Replicas > 0 || left < min(t.Length, provisional)/2 || e.place.heard.Stale()
		e.basis, e.granted = lease.Provisional(t, now, now.Add(left)), now
	}
	if g.Fence > e.told.Fence {
		e.told = g
	}
	e.step(ev)
}

// toldTop is the last token of the run of a grant that a renewal confirms.
func (e *entry) toldTop(token int64) int64 {
	if e.told.Fence == token {
		return token + e.told.Tokens - 1
	}
	return token
}

// pause is how long to wait before asking again. short: after a call that failed. Else a moment after
// the holder's lease, and about a second, so that those who live notice a dead one within its
// provisional lease; far down the line less often.
func (e *entry) pause(short bool) time.Duration {
	r := e.last
	switch {
	case short || r == nil:
		return failPause + e.Jitter(4*failPause)
	case r.Again > 0:
		return r.Again
	}
	pause := lookPause + e.Jitter(lookPause/2)
	if far := r.Waiters / 64; far > 1 {
		pause *= time.Duration(min(far, 8))
	}
	polls := e.place == nil || e.place.state.Channel == "" || r.Subscribers == 0
	switch {
	case r.Why == functions.WhyKept || r.Why == functions.WhySettling:
		pause = min(r.Remaining+time.Millisecond, longestSleep)
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

// undoFor is for how long something can be left of an owner: its lease, and the time of the line.
func undoFor(t *lease.Terms) time.Duration {
	if t == nil {
		return lineTime
	}
	return t.Length + lineTime
}

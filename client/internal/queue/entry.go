package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/holding"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/keeper"
	"github.com/holdfast-go/holdfast/client/internal/lease"
)

// entry is the queue of a key with what its machine knows nothing of: calls, subscriptions, the
// Holding. All of it is guarded by mu: that of the key's shard, or its own for a queue of one.
type entry struct {
	*Queues
	mu    *sync.Mutex
	shard *shard // nil: in no map
	name  string
	key   string
	fixed string // the owner string of the caller's choice; "": fresh ones

	machine Machine
	h       *holding.Holding // what a holder here has
	place   *place           // of the present owner, from its first wait on
	first   waiter           // nearly always the only one

	call   Action // for the agent; Op 0: none
	timer  time.Time
	agent  bool
	wake   chan struct{}
	cancel context.CancelFunc // of the agent's call

	basis   lease.Lease  // what Serve makes a Holding of
	granted time.Time    // when it was heard of: not before the server's clock had the token
	told    inbox.Grant  // the last grant by message
	asked   time.Time    // when the last answered wait was sent
	last    *fcall.Reply // the last refusal
	err     error        // of the last call that failed
	short   error        // too few replicas had the last grant; nil: they did, or there was none
	unheard int          // answers in a row that found no subscriber on our channel
	// whom a wait was asked for last, and where that one stood in the server's line
	asker    *Waiter
	position int
	epoch    int64
}

// place is the owner of a place in the server's line, and then of a Holding: what messages are for.
type place struct {
	entry *entry
	owner string
	claim *inbox.Claim
	state inbox.State // when the last wait was made
	heard inbox.State // when the last wait was made that was answered: by that server's clock
	h     atomic.Pointer[holding.Holding]
}

// waiter is a Waiter of the machine with what its goroutine gets.
type waiter struct {
	Waiter
	turn   chan struct{} // closed when done; nil: nobody blocks
	done   bool
	asked  bool
	own    bool
	holder *holding.Holder
	err    error
	last   *fcall.Reply
	behind *fcall.Reply
	at     int
}

func newEntry(q *Queues, r *Request) *entry {
	e := &entry{Queues: q, name: r.Name, key: r.Key, fixed: r.Owner, epoch: r.Epoch}
	e.machine.Fresh, e.machine.Asks = e.fresh, r.Owner != ""
	return e
}

// waiter returns a place for the caller's goroutine.
func (e *entry) waiter(ctx context.Context, r *Request) *waiter {
	w := &e.first
	if e.machine.State() != Absent {
		w = &waiter{}
	}
	w.Terms, w.GiveUpEarly, w.Fresh, w.call = r.Terms, r.GiveUpEarly, r.Fresh, w
	if at, ok := ctx.Deadline(); ok {
		w.Until = max(1, at.Sub(e.born))
	}
	w.Hot = !r.Try && e.hot()
	return w
}

// waited is what a call says of its wait.
func (w *waiter) waited() Waited {
	return Waited{Asked: w.asked, Position: w.at, Last: w.last, Behind: w.behind}
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
	if p := e.place; p != nil && p.h.Load() == nil {
		p.claim.Drop()
	}
	e.place = nil
}

// step is an event for the machine, and does what that asks for. e.mu is held.
func (e *entry) step(ev Event) {
	now := time.Now()
	ev.Now = now.Sub(e.born)
	for _, a := range e.machine.Step(ev) {
		switch a.Op {
		case Wait, Renew:
			e.call = a
			e.stir()
		case Abandon:
			if e.cancel != nil {
				e.cancel()
			}
			e.call = Action{}
		case Undo:
			e.undo(a)
		case GiveBack:
			e.h = nil
		case Serve:
			e.serve(a, now)
		case Fail:
			e.fail(a)
		case Own:
			w := a.Waiter.call
			w.own = true
			w.finish()
		case Start:
			e.timer = now.Add(e.pause(a.Short))
			e.stir()
		case Stop:
			e.timer = time.Time{}
			e.poke()
		}
	}
	if e.machine.State() != Held {
		e.h = nil
	}
	if e.machine.State() == Absent {
		e.drop()
		if e.shard != nil && e.shard.keys[e.key] == e {
			delete(e.shard.keys, e.key)
		}
	}
}

func (w *waiter) finish() {
	if w.done = true; w.turn != nil {
		close(w.turn)
	}
}

// undo gives back what an owner may have, in the background.
func (e *entry) undo(a Action) {
	owner, hold := e.ids(a.Owner)
	e.Keeper.Undo(&keeper.Undo{Key: e.key, Owner: owner, Hold: hold, Token: a.Token, Again: a.Again,
		Until: time.Now().Add(undoFor(a.Terms))})
}

// serve gives the lock to a waiter: a new Holding, or the next token of the one that is here.
func (e *entry) serve(a Action, now time.Time) {
	w := a.Waiter.call
	e.short = nil
	if !a.First {
		w.holder = e.h.Pass(now) // what is due of it comes no earlier, so the keeper need not look
		w.finish()
		return
	}
	w.holder, w.err = e.hold(a.Owner, a.Token, a.Top, a.Waiter.Terms, a.Again)
	w.behind = e.behind()
	w.finish()
}

// hold makes a Holding of what was granted on basis. It fails after Close.
func (e *entry) hold(id string, first, top int64, terms *lease.Terms, doubt bool) (*holding.Holder, error) {
	owner, hold := e.ids(id)
	t := holding.New(holding.Grant{Name: e.name, Key: e.key, Owner: owner, Hold: hold, Terms: terms,
		First: first, Top: top, Since: e.granted, Lease: e.basis, Doubt: doubt, Epoch: e.epoch, LostError: e.LostError})
	e.h = t.Holding
	p := e.place
	if e.place = nil; p != nil {
		e.h.Finally(p.claim.Drop)
	}
	if !e.Keeper.Add(e.h) {
		e.undo(Action{Owner: id, Token: first, Terms: terms})
		e.h.Close()
		return nil, ErrClosed
	}
	if p != nil {
		p.h.Store(e.h) // now messages may reach it
	}
	return t, nil
}

// fail ends a waiter's call without the lock.
func (e *entry) fail(a Action) {
	w := a.Waiter.call
	w.last, w.behind = e.last, e.behind()
	switch a.Err {
	case Busy:
		w.err = fcall.ErrBusy
		if e.h != nil {
			w.last = e.here()
		}
	case Timeout:
		if w.err = ErrTimeout; e.short != nil {
			w.err = e.short
		}
		if e.h != nil {
			w.last = e.here()
		}
	case Unreachable:
		w.err = e.err
		if !errors.Is(w.err, fcall.ErrUnreachable) {
			w.err = fmt.Errorf("%w: no answer before the wait's end", fcall.ErrUnreachable)
		}
	case Refused:
		w.err = e.err
	case Closed:
		w.err = ErrClosed
	}
	if a.Waiter == e.asker {
		w.at = e.position
	}
	w.finish()
}

// end is the end of a waiter's context. Who cancelled it is told that, and not how the server is.
func (e *entry) end(ctx context.Context, w *waiter) {
	waits := !w.done
	e.step(Event{Kind: End, Waiter: &w.Waiter})
	if waits && errors.Is(ctx.Err(), context.Canceled) {
		w.err = ctx.Err()
	}
}

// here is a refusal by a holder of this process.
func (e *entry) here() *fcall.Reply {
	t := e.h.Holder()
	until, _ := t.Stands()
	return &fcall.Reply{Holder: t.Owner, Fence: t.Fence, Remaining: max(0, time.Until(until)), Waiters: int64(e.machine.Waiting())}
}

// behind is who had the lock when the server last said so.
func (e *entry) behind() *fcall.Reply {
	if e.last == nil || e.last.Holder == "" {
		return nil
	}
	return e.last
}

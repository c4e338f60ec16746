package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/tracking"
	"github.com/holdfast-go/holdfast/functions"
)

// attempt is one call of TryAcquire or Acquire.
type attempt struct {
	client *Client
	name   string
	key    string
	owner  string
	hold   string    // "" for an acquisition with an owner of its own
	set    *settings // the client's own, or a copy that options changed; never written after
	line   *line     // inside the process; nil if it does not share

	began  time.Time
	until  context.Context // Acquire: of the wait, all of it
	behind *BusyError      // who had the lock when the server last said so; nil if it never did

	question tracking.Question // Try: keep the answer 'busy' until the key changes
}

func (c *Client) attempt(name string, opts []Option) (*attempt, error) {
	key, err := c.key(name)
	if err != nil {
		return nil, err
	}
	a := &attempt{client: c, name: name, key: key, set: &c.settings}
	if len(opts) > 0 {
		set := c.settings
		WithOptions(opts...)(&set)
		if err := set.complete(); err != nil {
			return nil, err
		}
		if set.owner != "" && set.label != c.settings.label {
			return nil, fmt.Errorf("%w: WithLabel has no effect beside WithOwner, whose string is all that others see", ErrArgument)
		}
		a.set = &set
	}
	if a.owner = a.set.owner; a.owner != "" {
		a.hold = c.holdID()
	}
	return a, nil
}

// parent is of the lock's context.
func (a *attempt) parent(ctx context.Context) context.Context {
	if a.set.parent != nil {
		return a.set.parent
	}
	return ctx
}

// outer is the lock of this name that ctx was taken under, if it is to be re-entered.
func (a *attempt) outer(ctx context.Context) *tenure {
	if a.set.alone {
		return nil
	}
	t, _ := ctx.Value(tenureKey{&a.client.core, a.key}).(*tenure)
	if t == nil || a.set.owner != "" && a.set.owner != t.held.owner {
		return nil
	}
	return t
}

// identify makes the owner string, before the first command.
func (a *attempt) identify() {
	if a.owner == "" {
		a.owner = a.client.owner(a.set.label)
	}
}

// run is how many tokens to ask for: more than one for who shares the lock with others of the
// process.
func (a *attempt) run(waiting bool) int64 {
	if a.line == nil || a.client.quorum != nil || a.set.minHold > 0 || !waiting && a.line.Waiting() == 0 {
		return 1
	}
	return min(passRun, int64(a.set.terms.Length/time.Microsecond))
}

// request asks for the lock, with so many tokens.
func (a *attempt) request(block int64) fcall.Request {
	terms := &a.set.terms
	return fcall.Request{Owner: a.owner, TTL: terms.ttl, Guard: terms.guard, Block: block, Hold: a.hold}
}

// try asks once, by a call that ctx bounds.
func (a *attempt) try(ctx, parent context.Context) (*Lock, *BusyError, error) {
	sent := time.Now()
	var r fcall.Reply
	var err error
	if a.question.Tracked() {
		r, err = a.client.calls.AcquireTracked(ctx, a.key, a.request(1))
	} else {
		r, err = a.client.calls.Acquire(ctx, a.set.terms.copies, a.key, a.request(a.run(false)))
	}
	if err != nil {
		if fcall.Unknown(err) || a.client.quorum != nil {
			a.giveUp(a.owner)
		}
		return nil, nil, err
	}
	if !r.Yes {
		busy := a.busy(r)
		a.remember(busy, sent)
		a.concede()
		return nil, busy, nil
	}
	l, err := a.granted(parent, grant{r.Fence, r.Block, lease.New(&a.set.terms.Terms, sent), false})
	return l, nil, err
}

// concede gives back what some of several servers gave. The owner is used up then.
func (a *attempt) concede() {
	if a.client.quorum != nil {
		a.giveUp(a.owner)
		a.owner = ""
		a.identify()
	}
}

// grant is what the server gave to an attempt.
type grant struct {
	fence, block int64
	machine      lease.Lease
	lined        bool // the owner stood in the server's line
}

func (a *attempt) newHeld(g grant) *held {
	h := &held{core: &a.client.core, name: a.name, key: a.key, owner: a.owner, hold: a.hold, terms: &a.set.terms, line: a.line,
		first: g.fence, top: g.fence + g.block - 1, since: time.Now(), machine: g.machine, lined: g.lined}
	h.entry = entry{timed: h, index: -1}
	h.initial = tenure{held: h, fence: g.fence, began: h.since}
	h.tenure = &h.initial
	return h
}

func (a *attempt) busy(r fcall.Reply) *BusyError {
	return &BusyError{Name: a.name, Holder: parseHolder(r.Holder, 0), Remaining: r.Remaining, Waiters: int(r.Waiters)}
}

// remember that the lock is busy, for the tries that follow: the first time only that it was, the
// next time until when.
func (a *attempt) remember(busy *BusyError, sent time.Time) {
	switch {
	case a.line != nil: // those who wait have no use for it
	case a.question.Tracked():
		a.client.cache.Keep(a.question, tracking.Refusal, busy, sent, busy.Remaining)
	default:
		a.client.cache.Notice(a.key)
	}
}

// errLate says nothing about the server: another one may have asked for a longer lease.
var errLate = errors.New("the answer took longer than the lease")

// granted makes the Lock that the server granted. What comes too late is given back.
func (a *attempt) granted(parent context.Context, g grant) (*Lock, error) {
	h := a.newHeld(g)
	l, err := h.tenure.lock(parent, false)
	switch {
	case err != nil:
	case parent.Err() != nil:
		err = canceled(parent)
	case !g.machine.Ours(time.Now()):
		err = fmt.Errorf("%w: %w", ErrUnreachable, errLate)
	default:
		if a.line != nil {
			a.line.Show(h)
		}
		err = h.keepalive.add(&h.entry)
	}
	if err != nil {
		if l != nil {
			l.hold.cancel(err)
		}
		a.giveUp(a.owner)
		return nil, err
	}
	return l, nil
}

// giveUp undoes, in the background, what a call whose outcome is unknown may have done.
func (a *attempt) giveUp(owner string) {
	if a.hold == "" {
		a.client.departed.add(owner, a.key)
	}
	h := &held{core: &a.client.core, name: a.name, key: a.key, owner: owner, hold: a.hold, terms: &a.set.terms}
	a.client.core.giveUp(h, a.set.terms.Length+lineTime)
}

// abdicate ends the lead of the process's line. owner, if not "", may stand in the server's line:
// the next one takes that place over if its terms are the same, and then abdicate returns true. An
// outage ends the waiting of all.
func (a *attempt) abdicate(owner string, outage error) (adopted bool) {
	if outage != nil {
		a.line.Dismiss(turn{err: outage})
		return false
	}
	a.line.Leave(func(next shows) turn {
		if owner == "" || *next.terms != a.set.terms || over(next.until) {
			return turn{}
		}
		adopted = true
		return turn{owner: owner}
	})
	return adopted
}

// lineTime is how long a line outlives the last lease.
const lineTime = time.Minute

// holdID names a hold: unlike any other of this owner, also of other processes.
func (c *Client) holdID() string {
	id := c.id + "." + c.next()
	return id[:min(len(id), functions.MaxHoldBytes)]
}

package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/inbox"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/client/internal/quorum"
)

// wait takes the lock or stands in line for it, and leads its place meanwhile: if it fails, the
// next one there leads, and takes over the position in the server's line. adopted, if not "", is an
// owner that stands there already.
func (a *attempt) wait(ctx context.Context, adopted string) (*Lock, error) {
	if a.line != nil {
		a.owner = adopted
	}
	a.identify()
	w := &wait{attempt: a, owes: adopted != ""}
	l, err := w.queue(ctx)
	if l != nil {
		return l, nil
	}
	owner := ""
	if w.owes {
		owner = a.owner
	}
	outage := error(nil)
	if errors.Is(err, ErrUnreachable) && !errors.Is(err, errLate) && !errors.Is(err, ErrNotReplicated) && a.until.Err() == nil {
		outage = ErrUnreachable
	}
	if a.line != nil && a.abdicate(owner, outage) {
		return nil, err
	}
	if w.owes {
		a.giveUp(owner) // a grant that crossed with this goes on to the next
	}
	return nil, err
}

// queue is wait without that care. A client that is not subscribed yet tries first: the uncontended
// path costs one command and no subscription. Of several servers, all are tried whenever the one that
// has the line cannot be waited at.
func (w *wait) queue(ctx context.Context) (*Lock, error) {
	c := w.client
	slot := c.slot(w.key)
	for try := !w.owes && !c.inbox.Listening(slot) && !w.set.giveUpEarly; ; try = true {
		if try {
			if l, err := w.first(ctx); l != nil || err != nil {
				return l, err
			}
		}
		asking := w.asking
		l, err := w.line(ctx, slot)
		switch {
		case !errors.Is(err, quorum.ErrNoLine):
			return l, err
		case w.until.Err() != nil:
			return nil, w.failed(w.until.Err())
		}
		if !w.heard.IsZero() { // the others have answered
			w.asking = asking
		}
		w.owes, w.polls = false, true
		w.concede()
		stop := error(nil)
		if errors.Is(err, quorum.ErrForgotten) {
			stop = w.yield()
		} else {
			stop = w.sleep(w.set.interval/2 + c.jitter(w.set.interval))
		}
		if stop != nil {
			return nil, stop
		}
	}
}

// yield waits while another has the lock, and the server that has the line does not know. It asks for
// no vote meanwhile: there is one that the holder is to get back.
func (w *wait) yield() error {
	for pause := w.set.interval; ; pause = min(2*pause, max(w.set.interval, time.Second)) {
		if err := w.sleep(pause/2 + w.client.jitter(pause)); err != nil {
			return err
		}
		w.asks()
		left, forgotten := w.client.quorum.Forgotten(w.until, w.key)
		if !forgotten {
			return nil
		}
		w.answered(w.last)
		if left > 0 {
			pause = min(pause, left+time.Millisecond)
		}
	}
}

// first tries without a place in line.
func (w *wait) first(ctx context.Context) (*Lock, error) {
	w.asks()
	l, busy, err := w.try(w.until, w.parent(ctx))
	switch {
	case errors.Is(err, ErrNotReplicated) || errors.Is(err, errLate): // the server has answered
		return nil, w.failed(err)
	case err != nil: // if it was done all the same, that is being given back
		w.owner = ""
		w.identify()
		return nil, w.outage(err)
	case l == nil:
		w.answered(busy)
	}
	return l, nil
}

// line stands in the server's line.
func (w *wait) line(ctx context.Context, slot uint16) (*Lock, error) {
	waiter, err := w.client.inbox.Enter(slot, w.owner)
	if err != nil {
		return nil, w.failed(ErrClosed)
	}
	defer waiter.Leave()
	return w.stand(ctx, waiter)
}

// stand asks for the lock until it has it: after every (re)subscription, when the holder's lease
// has ended, and often enough that a grant whose message was lost, and a dead holder of one, cost
// about a second.
func (w *wait) stand(ctx context.Context, waiter *inbox.Waiter) (*Lock, error) {
	for patience := w.patience(); ; patience = w.set.interval {
		w.asks() // for the subscription, to begin with
		state, err := waiter.Ready(w.until, patience)
		if err != nil {
			return nil, w.failed(err)
		}
		select { // what was heard before the question is older than its answer, which tells of it if it holds
		case <-waiter.Grants:
		default:
		}
		sent := time.Now()
		w.owes = true
		r, err := w.client.calls.Wait(w.until, w.key, w.inLine(state.Channel))
		if errors.Is(err, quorum.ErrNoLine) {
			if r.Remaining > 0 { // it has said so itself
				w.answered(w.busy(r))
			}
			return nil, err
		}
		if err != nil {
			if err := w.outage(err); err != nil {
				return nil, err
			}
			continue
		}
		w.answered(w.busy(r))
		switch {
		case r.Yes && w.set.terms.copies.Replicas > 0:
			if l, err := w.confirm(ctx, inbox.Grant{Fence: r.Fence}, state.Channel); l != nil || err != nil {
				return l, err
			}
			continue
		case r.Yes:
			return w.done(w.granted(w.parent(ctx), grant{r.Fence, r.Block, lease.New(&w.set.terms.Terms, sent), true}))
		case r.Waiters < 0:
			w.owes, w.last.Waiters = false, int(-r.Waiters)-1
			return nil, w.error(fmt.Errorf("%w: its turn would come too late, as number %d in line", ErrBusy, -r.Waiters))
		}
		w.position, w.short = int(r.Waiters), time.Time{}
		w.hearing(waiter, state, r)
		if l, err := w.pause(ctx, waiter, state, r, sent); l != nil || err != nil {
			return l, err
		}
	}
}

// patience is for the first subscription.
func (w *wait) patience() time.Duration {
	if w.polls {
		return 0
	}
	return silence
}

// done says that what was granted is given back already, if it could not be taken up.
func (w *wait) done(l *Lock, err error) (*Lock, error) {
	w.owes = false
	if err != nil {
		return nil, w.failed(err)
	}
	return l, nil
}

// hearing looks whether the server found a subscriber on the channel that it was given. If not, the
// subscription is at another node: a replica, or a primary that was demoted.
func (w *wait) hearing(waiter *inbox.Waiter, state inbox.State, r fcall.Reply) {
	if state.Channel == "" || r.Subscribers > 0 {
		w.unheard = 0
		return
	}
	waiter.Unheard(state)
	if w.unheard++; w.unheard == 4 {
		w.client.journal.unheard()
	}
}

func (w *wait) inLine(channel string) fcall.Request {
	r := w.request(w.run(true))
	r.Channel = channel
	if deadline, ok := w.until.Deadline(); ok && w.set.giveUpEarly {
		r.MaxWait = min(max(time.Millisecond, time.Until(deadline)), maxLease)
	}
	return r
}

// pause waits for a grant, or until it is time to ask again.
func (w *wait) pause(ctx context.Context, waiter *inbox.Waiter, state inbox.State, r fcall.Reply, sent time.Time) (*Lock, error) {
	timer := time.NewTimer(w.again(r, state.Channel))
	defer timer.Stop()
	select {
	case g := <-waiter.Grants:
		return w.accept(ctx, g, r, sent, state)
	case <-timer.C:
	case <-state.Changed:
	case <-w.until.Done():
		return nil, w.failed(w.until.Err())
	case <-w.client.closing.Done():
		return nil, w.failed(ErrClosed)
	}
	return nil, nil
}

// accept makes a Lock of a grant. The message says the lease's end by the server's clock; r told
// that clock's time, and it is counted from before that was asked for: never late. A grant whose
// token is not above that of the holder that r told of is older than r: what the server said last
// counts. One that too little is left of, that came while the connection changed (perhaps to
// another primary), that is to stand unrenewed, or that replicas must have, is confirmed first. An
// owner of the caller's choice asks: the grant may be of the hold of another one. So does one who
// needs a majority: it is its turn, and no more.
func (w *wait) accept(ctx context.Context, g inbox.Grant, r fcall.Reply, sent time.Time, state inbox.State) (*Lock, error) {
	if g.Fence <= r.Fence || w.hold != "" || w.client.quorum != nil {
		return nil, nil
	}
	length := min(w.set.terms.Length, provisional)
	now := time.Now()
	left := time.Duration(g.UntilMS-r.ServerMS)*time.Millisecond - now.Sub(sent)
	left = min(left-now.Sub(sent)/100, length) - lease.Margin(length)
	if w.set.terms.RenewEvery == 0 || w.set.terms.copies.Replicas > 0 || left < length/2 || state.Stale() {
		return w.confirm(ctx, g, state.Channel)
	}
	return w.hears(ctx, grant{g.Fence, g.Block, lease.Provisional(&w.set.terms.Terms, now, now.Add(left)), true})
}

// hears makes a Lock of a grant. The server tells of a break on the channel on which it told of the
// grant.
func (w *wait) hears(ctx context.Context, g grant) (*Lock, error) {
	l, err := w.done(w.granted(w.parent(ctx), g))
	if err == nil {
		l.tenure.held.heard()
	}
	return l, err
}

// confirm makes a grant a whole lease by a renewal, which the server takes with its memory full
// too.
func (w *wait) confirm(ctx context.Context, g inbox.Grant, channel string) (*Lock, error) {
	sent := time.Now()
	w.asks()
	r, err := w.client.calls.Renew(w.until, w.set.terms.copies, w.key,
		fcall.Renewal{Owner: w.owner, TTL: w.set.terms.ttl, Channel: channel, Fence: g.Fence, Hold: w.hold})
	switch {
	case errors.Is(err, ErrNotReplicated):
		return nil, w.unreplicated(err)
	case err != nil:
		return nil, w.outage(err)
	case !r.Yes || r.Fence != g.Fence:
		w.answered(w.last)
		return nil, nil // ask how the line stands
	}
	w.answered(w.last)
	return w.hears(ctx, grant{r.Fence, r.Block, lease.New(&w.set.terms.Terms, sent), true})
}

// sharedPause is how often those ask who wait by an owner string of the caller's choice.
const sharedPause = 250 * time.Millisecond

// again is how long to wait before asking again: a moment after the holder's lease, and about a
// second, so that those who live notice a dead one within its provisional lease. Those far down the
// line ask less often.
func (w *wait) again(r fcall.Reply, channel string) time.Duration {
	pause := time.Second + w.client.jitter(500*time.Millisecond)
	if far := r.Waiters / 64; far > 1 {
		pause *= time.Duration(min(far, 8))
	}
	// nobody will tell: poll. Place 0: a plain string has no line, nor a lock that nobody gets yet
	if channel == "" || r.Waiters == 0 && r.Holder != "" || r.Subscribers == 0 {
		pause = min(w.set.interval, time.Second, w.set.terms.Length/2) // a turn is kept for no more than a lease
	}
	if r.Again > 0 {
		return min(r.Again, w.set.interval)
	}
	if w.hold != "" { // of several that wait by one owner string, one is told
		pause = min(pause, sharedPause)
	}
	if r.Remaining >= 0 {
		stagger := time.Duration(min(r.Waiters, 20)) * time.Millisecond
		pause = min(pause, r.Remaining+time.Millisecond+stagger)
	}
	return pause
}

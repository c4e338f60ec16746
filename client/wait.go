package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// wait is one Acquire in line.
type wait struct {
	*attempt
	heard    time.Time // when the server last answered
	position int
	last     *BusyError
	retried  bool // the first call in line was repeated
	asked    bool // the owner may stand in line, or have been granted the lock; Close waits for it to leave
}

// provisional is the longest lease of a lock handed over, until it is confirmed.
const provisional = functions.ProvisionalTTL * time.Millisecond

// wait takes the lock or stands in line for it, and leads its room meanwhile: if it fails, the next one of the room leads,
// and takes over the place in line.
func (a *attempt) wait(ctx, until context.Context) (*Lock, error) {
	w := &wait{attempt: a}
	l, err := w.queue(ctx, until)
	if w.asked {
		defer a.client.tasks.Done()
	}
	if l != nil {
		return l, nil
	}
	owner := ""
	if w.asked && a.client.closing.Err() == nil { // else there is nobody to take the place over
		owner = a.owner
	}
	if a.room != nil && a.room.leave(nil, owner, a.set) && owner != "" {
		return nil, err
	}
	if w.asked {
		a.leaveLine() // a grant that crossed with this goes on to the next
	}
	return nil, err
}

// queue is wait without that care. A client that is not subscribed yet tries first: the uncontended path costs one command and no
// subscription.
func (w *wait) queue(ctx, until context.Context) (*Lock, error) {
	slot := w.client.slot(w.key)
	// A shared owner tries first in any case: it joins a lock that it has with a hold of its own, where waiting would touch
	// the unnamed hold, which may be another's.
	if w.hold != "" || !w.client.inbox.listening(slot) && !w.set.giveUpEarly {
		l, busy, err := w.try(ctx, until)
		if err != nil {
			return nil, w.failed(until, err)
		}
		if l != nil {
			return l, nil
		}
		w.heard, w.last = time.Now(), busy
	}
	seat, err := w.client.inbox.seat(slot, w.owner)
	if err != nil {
		return nil, w.failed(until, err)
	}
	defer seat.leave()
	if w.asked = w.client.enlist(); !w.asked {
		return nil, w.failed(until, ErrClosed)
	}
	return w.stand(ctx, until, seat)
}

// stand asks for the lock until it has it: after every (re)subscription, when the holder's lease has ended, and often
// enough that a grant whose message was lost, and a dead holder of one, cost about a second.
func (w *wait) stand(ctx, until context.Context, seat *seat) (*Lock, error) {
	for {
		state, err := seat.ready(until)
		if err != nil {
			return nil, w.failed(until, err)
		}
		sent := time.Now()
		r, err := w.client.wait(until, w.key, w.owner, w.set.ttl, w.run(), state.channel, w.patience(until))
		switch {
		case err != nil:
			if err := w.outage(until, err); err != nil {
				return nil, err
			}
			continue
		case r.yes:
			return w.taken(ctx, until, r.fence, sent)
		case r.place < 0:
			w.last = r.busy(w.name)
			w.last.Waiters = int(-r.place) - 1
			return nil, w.error(fmt.Errorf("%w: its turn would come too late, as number %d in line", ErrTimeout, -r.place))
		}
		w.heard, w.position, w.last = time.Now(), int(r.place), r.busy(w.name)
		timer := time.NewTimer(w.again(r, state.channel))
		select {
		case g := <-seat.grants:
			timer.Stop()
			if l, err := w.accept(ctx, g, sent, r.server, state); l != nil || err != nil {
				return l, err
			}
		case <-timer.C:
		case <-state.changed:
			timer.Stop()
		case <-until.Done():
			timer.Stop()
			return nil, w.failed(until, until.Err())
		case <-w.client.closing.Done():
			timer.Stop()
			return nil, w.failed(until, ErrClosed)
		}
	}
}

// run is how many tokens one that stands in line reserves: always the same, because a grant does not say.
func (w *wait) run() int64 {
	if w.room == nil {
		return 1
	}
	return passRun
}

// accept makes a Lock of a grant. The message says the lease's end by the server's clock; the reply to wait told that
// clock's time, and it is counted from before that was sent: never late. It returns nil if the lock must be confirmed
// first, by asking again: too little is left, the connection changed (perhaps to another primary), or the lease is to
// stand unrenewed.
func (w *wait) accept(ctx context.Context, g grant, sent time.Time, server int64, state seatState) (*Lock, error) {
	lease := min(w.set.lease, provisional)
	now := time.Now()
	left := time.Duration(g.until-server)*time.Millisecond - now.Sub(sent)
	left = min(left-now.Sub(sent)/100, lease) - margin(lease)
	if w.hold != "" || w.set.noRenewal || left < lease/2 || state.stale() {
		return nil, nil
	}
	l, err := w.granted(ctx, g.fence, w.run(), now, now.Add(left))
	if err == nil {
		w.client.inbox.remember(l.held, state.channel)
	}
	return l, err
}

// taken makes a Lock of a whole lease. The line knows owners, not holds: with a hold of its own, that is added and the
// unnamed one given back.
func (w *wait) taken(ctx, until context.Context, fence int64, sent time.Time) (*Lock, error) {
	if w.hold == "" {
		return w.granted(ctx, fence, w.run(), sent, sent.Add(w.set.lease-margin(w.set.lease)))
	}
	l, busy, err := w.try(ctx, until)
	if l == nil {
		if err == nil {
			err = busy
		}
		return nil, w.failed(until, err)
	}
	if _, err := w.client.release(until, w.key, w.owner, ""); err != nil && unknown(err) {
		w.client.log.Warn("holdfast: the unnamed hold of an owner could not be given back; the lease will end it", "lock", w.name, "error", err)
	}
	return l, nil
}

// again is how long to wait before asking again: a moment after the holder's lease, and about a second, so that
// whoever is alive in line notices a dead one within its provisional lease. Those far down the line ask less often.
func (w *wait) again(r reply, channel string) time.Duration {
	beat := time.Second + rand.N(500*time.Millisecond)
	if far := time.Duration(r.place / 64); far > 1 {
		beat *= far
	}
	if channel == "" || r.place == 0 { // nobody will tell: poll. Place 0: a plain string has no line
		beat = w.set.interval
	}
	if r.pttl >= 0 {
		stagger := min(time.Duration(r.place), 20) * time.Millisecond
		beat = min(beat, time.Duration(r.pttl)*time.Millisecond+time.Millisecond+stagger)
	}
	return beat
}

// patience is the wait that the server may promise; 0: any.
func (w *wait) patience(until context.Context) time.Duration {
	deadline, ok := until.Deadline()
	if !w.set.giveUpEarly || !ok {
		return 0
	}
	return max(time.Millisecond, time.Until(deadline))
}

// outage decides about a failed call: nil to ask again after a pause. A place in line survives an outage of a lease; a
// first call whose answer was lost with its connection is repeated once, because there may be a place by then.
func (w *wait) outage(until context.Context, err error) error {
	first := w.heard.IsZero()
	again := first && unknown(err) && !w.retried || !first && time.Since(w.heard) <= w.set.lease
	if !again || !errors.Is(err, ErrUnreachable) {
		return w.failed(until, err)
	}
	w.retried = true
	return w.sleep(until, 20*time.Millisecond+rand.N(80*time.Millisecond))
}

func (w *wait) sleep(until context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-until.Done():
		return w.failed(until, until.Err())
	case <-w.client.closing.Done():
		return w.failed(until, ErrClosed)
	}
}

// failed is the error of a wait that ends with err: a WaitError if the context is why.
func (w *wait) failed(until context.Context, err error) error {
	if until.Err() == nil || errors.Is(err, ErrClosed) {
		return opError("acquire", w.name, err)
	}
	err = until.Err()
	if cause := context.Cause(until); cause != err {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrTimeout) {
		err = fmt.Errorf("%w: %w", ErrTimeout, err)
	}
	return w.error(err)
}

func (w *wait) error(err error) error {
	return &WaitError{Name: w.name, Waited: time.Since(w.started), Position: w.position, Last: w.last, Err: err}
}

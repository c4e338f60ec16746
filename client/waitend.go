package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// wait is one Acquire in the server's line.
type wait struct {
	*attempt
	heard time.Time // when the server last answered
	// since when an answer is waited for, through failed calls too; zero: it has come
	asking   time.Time
	position int
	last     *BusyError
	retried  bool      // the first call in line was repeated
	short    time.Time // since when too few replicas have what it was granted; zero: they do, or nobody asked
	unheard  int       // answers in a row that found no subscriber on our channel
	polls    bool      // the server that has the line could not be waited at
	owes     bool      // the owner may stand in line, or have been granted the lock
}

// errMaxWait is the cause of a wait's end by MaxWait.
var errMaxWait = errors.New("MaxWait is over")

// silence is how long a call must be without an answer for the end of a wait to be the server's
// doing.
const silence = 100 * time.Millisecond

// asks notes that an answer of the server is waited for, since now or longer.
func (w *wait) asks() {
	if w.asking.IsZero() {
		w.asking = time.Now()
	}
}

func (w *wait) answered(busy *BusyError) {
	w.heard, w.asking, w.last = time.Now(), time.Time{}, busy
	if busy != nil && busy.Holder.Owner != "" && busy.Holder.Owner != w.owner {
		w.behind = busy
	}
}

// failed is the error of a wait that ends with err.
func (w *wait) failed(err error) error {
	switch {
	case w.client.closing.Err() != nil:
		return w.error(ErrClosed)
	case w.until.Err() == nil:
		return opError("acquire", w.name, err)
	case errors.Is(w.until.Err(), context.Canceled):
		return w.error(canceled(w.until))
	case !w.short.IsZero():
		return w.error(fmt.Errorf("%w: until the wait's end", ErrNotReplicated))
	case w.unanswered():
		return w.error(fmt.Errorf("%w: no answer before the wait's end", ErrUnreachable))
	}
	return w.error(timeout(w.until))
}

// unanswered reports whether the wait ends in an outage. One of several servers may be silent.
func (w *wait) unanswered() bool {
	if w.client.quorum != nil && !w.heard.IsZero() && time.Since(w.heard) < majoritySilence {
		return false
	}
	return !w.asking.IsZero() && time.Since(w.asking) >= silence
}

// majoritySilence is longer than it takes to find that the server that has the line is silent, and to
// ask the others.
const majoritySilence = time.Second

// timeout is the error of a wait that a deadline ended.
func timeout(until context.Context) error {
	if context.Cause(until) == errMaxWait {
		return fmt.Errorf("%w: %w", ErrTimeout, errMaxWait)
	}
	return fmt.Errorf("%w: %w", ErrTimeout, context.DeadlineExceeded)
}

func (w *wait) error(err error) error {
	return &WaitError{Name: w.name, Waited: time.Since(w.began), Position: w.position, Last: w.last, Err: err}
}

// outage decides about a failed call: nil to ask again after a pause. A place in line survives an
// outage of a lease; a first call whose answer was lost with its connection is repeated once,
// because there may be a place by then.
func (w *wait) outage(err error) error {
	first := w.heard.IsZero()
	again := first && fcall.Unknown(err) && !w.retried || !first && time.Since(w.heard) <= w.set.terms.Length
	if !again || !errors.Is(err, ErrUnreachable) {
		return w.failed(err)
	}
	w.retried = true
	return w.sleep(20*time.Millisecond + w.client.jitter(80*time.Millisecond))
}

// unreplicated decides about a grant that too few replicas have: like an outage, it is ridden out for
// a lease.
func (w *wait) unreplicated(err error) error {
	if w.short.IsZero() {
		w.short = time.Now()
	}
	if time.Since(w.short) > w.set.terms.Length {
		return w.failed(err)
	}
	w.answered(w.last)
	return w.sleep(20*time.Millisecond + w.client.jitter(80*time.Millisecond))
}

func (w *wait) sleep(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-w.until.Done():
		return w.failed(w.until.Err())
	case <-w.client.closing.Done():
		return w.failed(ErrClosed)
	}
}

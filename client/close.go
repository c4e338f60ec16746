// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// closeWait is what Close gives to calls and to clean-up that are under way, and then to the
// connections. Twice that is the second that its comment promises.
const closeWait = 500 * time.Millisecond

// Close ends the context of every lock with ErrClosed, fails every waiting Acquire with it, gives
// back what nobody got, and leaves no goroutine behind. Locks that are held are not released: work
// may still be going on under them, so they end with their lease. It blocks for a second at the
// most, whatever the server does; what could not be given back by then lapses with its lease. It is
// safe to call twice; both calls block.
func (c *Client) Close() {
	patience, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	c.stop(ErrClosed)
	c.keeper.Desert() // before it waits for calls that may have no answer
	c.inflight.close(patience)
	c.keeper.Close(patience)
	if c.inbox != nil {
		c.inbox.Close(patience)
	}
	c.events.close(patience)
	if c.end != nil {
		c.end()
	}
}

// Shutdown ends the client without leaving locks to their leases, as a server does on SIGTERM. Calls for
// locks and those that wait fail with ErrShutdown at once, which is an ErrClosed, and give up their places; a
// call that the server was sent, when it has answered. The context of each lock ends with ErrShutdown as its
// cause; the lock itself is renewed, whatever MaxHold says, until its holder releases it, and goes to the next
// in line then: Do, Once and Lead release when their function has returned, and return what that returned.
// Release returns nil, unless the lock was lost. A lock without renewal ends with its lease, and a function
// whose lock is lost is not waited for. A lock whose context had ended before is released after Grace, as
// ever: so give calls no context that SIGTERM ends.
//
// It blocks until all locks are released or ctx ends, and then for Close, which it calls in any case. What
// still works then is not given back: its lease ends it. So does it where a Release had failed with
// ErrUnreachable, and the server is away still. Shut servers and schedulers down first, so that nothing new
// comes in.
//
// Errors: ErrTimeout or context.Canceled when ctx ended while locks were held, some of which the text names, or
// calls of Release under way; ErrClosed when Close was called meanwhile.
func (c *Client) Shutdown(ctx context.Context) error {
	c.leave(ErrShutdown)
	over := c.keeper.Halt(ErrShutdown)
	c.inflight.close(ctx)
	select {
	case <-over.Done():
	case <-c.closing.Done():
	case <-ctx.Done():
	}
	c.releases.close(ctx)
	done, err := over.Err() != nil && c.releases.idle.Err() != nil, cmp.Or(begun(ctx), ErrClosed)
	var names []string
	for _, h := range c.keeper.Owned("", "") {
		names = append(names, h.Name)
	}
	if c.Close(); done {
		return nil
	}
	left := "locks were held, or about to be released"
	if n := len(names); n > 0 {
		left = fmt.Sprintf("left to their leases: %q, %d in all", names[:min(n, 10)], n)
	}
	return fmt.Errorf("holdfast: shutdown: %s: %w", left, err)
}

// inflight counts calls under way: those that may take a lock, which Close and Shutdown shut, and releases.
type inflight struct {
	calls atomic.Int64 // shut is added to it once
	shut  sync.Once
	idle  context.Context // ends when it is shut and no call is under way
	empty context.CancelFunc
}

const shut = math.MinInt64 / 2

// enter returns false after close; otherwise the caller calls leave.
func (f *inflight) enter() bool {
	if f.calls.Add(1) > 0 {
		return true
	}
	f.leave()
	return false
}

func (f *inflight) leave() {
	if f.calls.Add(-1) == shut {
		f.empty()
	}
}

// close shuts it, and waits until no call is under way.
func (f *inflight) close(patience context.Context) {
	f.shut.Do(func() {
		f.calls.Add(shut + 1) // as one more call
		f.leave()
	})
	select {
	case <-f.idle.Done():
	case <-patience.Done():
	}
}

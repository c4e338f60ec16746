// SPDX-License-Identifier: Apache-2.0

package fcall

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// rueidis does not always return when a context ends: while a connection is being made, and while
// 1,024 commands are unanswered, it waits. Where neither can be, a call goes straight, in the goroutine of
// its caller; so does one whose context cannot end, where Close ends its connection. Otherwise it runs in
// a goroutine of its own, and is left behind when its context ends, or the client closes. Its outcome is
// unknown then. A call that went straight to a slot that has moved waits for the connection to its new node,
// if there is none: rueidis follows the redirect by itself. To send none straight in a Cluster costs each
// a third more.

// undated hides a deadline from rueidis, which would give it to the connection while no other call uses
// that: calls that came later would fail with it.
type undated struct{ context.Context }

func (undated) Deadline() (deadline time.Time, ok bool) { return deadline, false }

// unending has no Done either, only an Err.
//
// rueidis checks Err before it writes a command: a call that nobody waits for any more is not sent.
// With Done it would return before the answer. Without, the goroutine ends with the answer or the
// connection, so abandoned calls can be counted and their changes noticed.
type unending struct{ undated }

func (unending) Done() <-chan struct{} { return nil }

// health is where the slot of a key has the count of ended connections, plus one, of when it was last
// answered, and that count now. It is nil where calls never go straight.
func (c *Caller) health(key string) (at *atomic.Uint32, now uint32) {
	if c.Ended == nil {
		return nil, 0
	}
	return &c.healthy[c.Slot(key)], c.Ended.Load() + 1
}

// group counts those of the calls that were given up that are about slots near that of the key.
func (c *Caller) group(key string) *atomic.Int64 { return &c.given[c.Slot(key)>>groupBits] }

// abandon notes that n more calls were given up.
func (c *Caller) abandon(key string, n int64) {
	c.abandoned.Add(n)
	c.group(key).Add(n)
}

// straight reports whether rueidis need not connect for a call: a slot of that health has been answered since
// a connection ended, so it has one.
func straight(at *atomic.Uint32, now uint32) bool {
	return at != nil && now <= Shared && at.Load() == now
}

// landed ends a call that went straight. One that was given up is followed by another one on its
// connection, which is answered after it.
func (c *Caller) landed(key string, err error) error {
	if isContext(err) {
		c.abandon(key, 1)
		go func() {
			c.Redis.Do(context.Background(), c.Command(&Call{Verb: Inspect, Key: key}))
			c.Changed(key, false)
			c.flying.Add(-1)
			c.abandon(key, -1)
		}()
		return err
	}
	c.flying.Add(-1)
	if err != nil && refused(err) == nil && c.Closing.Err() != nil {
		return context.Cause(c.Closing)
	}
	return err
}

// admit refuses calls that would only wait: in a Cluster those to slots near which calls were given up, because
// a node that is silent must keep nobody from the others.
func (c *Caller) admit(ctx context.Context, key string) error {
	if n := c.abandoned.Load(); n >= maxAbandoned && c.group(key).Load() >= ofGroup && ctx.Err() == nil {
		return &Refusal{ErrUnreachable, fmt.Sprintf("%d calls were given up, and have no answer yet", n)}
	}
	return ctx.Err()
}

// Pipe makes calls by a fn that uses Command and Decode, and fills in their outcomes. It returns when ctx or
// closing ends, whatever fn does, with the error of ctx or the cause of closing for each. fn's context has no
// Done, only an Err, unless neither can end.
func (c *Caller) Pipe(ctx, closing context.Context, calls []Call, fn func(context.Context, []Call, []Outcome)) []Outcome {
	key, done, outcomes := calls[0].Key, make(chan struct{}), make([]Outcome, len(calls))
	err := c.admit(ctx, key)
	switch {
	case err != nil:
	case ctx.Done() == nil && closing.Done() == nil:
		c.run(ctx, calls, outcomes, fn, done)
		return outcomes
	default:
		go c.run(unending{undated{ctx}}, calls, outcomes, fn, done)
		select {
		case <-done:
			return outcomes
		case <-ctx.Done():
			err = ctx.Err()
		case <-closing.Done():
			err = context.Cause(closing)
		}
		c.abandon(key, 1)
		go func() {
			<-done
			c.abandon(key, -1)
		}()
	}
	outcomes = make([]Outcome, len(calls)) // not sent; or left behind, where the others are written yet
	for i := range outcomes {
		outcomes[i].Err = err
		c.written(&calls[i], Reply{}, err)
	}
	return outcomes
}

// run runs fn, and closes done.
func (c *Caller) run(ctx context.Context, calls []Call, outcomes []Outcome, fn func(context.Context, []Call, []Outcome), done chan<- struct{}) {
	defer close(done)
	c.flying.Add(1)
	fn(ctx, calls, outcomes)
	c.flying.Add(-1)
	for i, o := range outcomes {
		c.written(&calls[i], o.Reply, o.Err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
	"github.com/holdfast-go/holdfast/client/internal/lease"
	"github.com/holdfast-go/holdfast/functions"
)

const (
	leastKeep  = 2 * time.Second // so long a value is kept at least: those who wait for it need a moment to ask
	mostValues = 16 << 20        // bytes of values that a client remembers
)

// OnceValue returns a value that all processes of the fleet share: an access token, an answer that is expensive
// to compute. It is made by fn, at most once in the interval every, and one process at a time runs its fn. A
// call that comes meanwhile waits for that value, until ctx ends or MaxWait is over. A later call gets it from
// the server by one command, or from memory if this client had it before. If fn fails or panics, or its process
// dies, the next call in line runs its own fn. An error of fn goes to its own caller only.
//
// The interval is from 10 ms to a year (8760 h). It begins when the process that makes the value gets the
// lock. For the calls that wait a value is kept for two seconds at least, from when fn has made it. It can be
// kept for longer by as long as it was under way to the server: up to a lease. So let every be shorter than
// the value is good for. If fn learns how long that is, it says so by KeepFor.
//
// The value stands in Redis in clear text, and has at most 64 KiB. It is gone early if the key is: after a
// break (holdfast break), a deletion, an eviction, or a failover that loses it. The next call that asks the
// server makes another one. Clients that have it in memory go on with it until its interval ends, and no
// longer than the every of the call that brought it, unless a call has WithFreshAnswer. If the server
// cannot keep it (maxmemory, or no answer until the lease ends), the client whose fn made it has it all the
// same, and the next one that asks runs its own.
//
// Use such a name for nothing but OnceValue, with one every: the interval is that of the process that makes
// the value. It is not possible on a quorum, nor with WithOwner, WithLimit, WithShared or WithPolling;
// MinHold and GiveUpEarly have no effect. Of several calls in one process one asks, with its own options and
// its own fn, and the others wait for it, or until fn's context ends: so fn must not ask for its own name. If
// that one finds no server, they fail with it.
//
// Errors: fn's; ErrArgument if its value is too long; *LostError, together with the value or fn's error, if the
// lock was lost while fn ran, and another fn may have run too; else as Acquire. The caller may change the bytes
// that it gets.
func (c *Client) OnceValue(ctx context.Context, name string, every time.Duration, fn func(context.Context) ([]byte, error), opts ...Option) ([]byte, error) {
	opts = append(slices.Clip(opts), WithoutReentry(), func(s *settings) {
		s.every, s.valued, s.MinHold, s.GiveUpEarly, s.parent = &every, true, 0, false, cmp.Or(s.parent, ctx)
	})
	began := time.Now()
	w, err := c.want(ctx, name, opts)
	if err = cmp.Or(err, context.Cause(c.leaving), w.begun(ctx)); err != nil {
		return nil, opError("once value", name, err)
	}
	wait, cancel := w.set.within(ctx)
	defer cancel()
	v, mine := c.values.join(w.Key, w.set.fresh)
	for ; !mine; v, mine = c.values.join(w.Key, w.set.fresh) {
		select {
		case <-v.ready:
			if v.err != nil {
				return nil, v.err
			} else if v.over() || w.set.fresh && v.done.Since.Before(began) { // fresh: that was asked earlier
				continue
			}
			return []byte(v.done.Value), nil
		case <-wait.Done():
		case <-w.parent.Done():
			wait = w.parent
		case <-c.leaving.Done(): // who asks may be giving the lock back, to a server that is silent
		}
		return nil, w.stopped(wait, began, 0, nil, wait.Err())
	}
	done := &fcall.Done{}
	defer func() { c.values.finish(w.Key, v, done, every) }()
	lock, err := c.Acquire(wait, name, opts...)
	if errors.As(err, &done) {
		return []byte(done.Value), nil
	} else if err != nil {
		if errors.Is(err, ErrUnreachable) && !errors.Is(err, ErrNotReplicated) && wait.Err() == nil {
			v.err = err // or all who wait would find that out, one after the other
		}
		if e, ok := err.(*WaitError); ok { // it may have waited for another goroutine before; e is the Observer's
			err = &WaitError{name, time.Since(began), e.Position, e.Last, e.Err}
		}
		return nil, err
	}
	value, err := run(ctx, lock, func(ctx context.Context) ([]byte, error) {
		// fn may go on for long without its lock, while others have a value.
		defer context.AfterFunc(ctx, func() { c.values.finish(w.Key, v, &fcall.Done{}, every) })()
		value, err := fn(ctx)
		if err == nil && len(value) > functions.MaxValue {
			err = opError("once value", name, fmt.Errorf("%w: the value must have at most %d bytes, not %d", ErrArgument, functions.MaxValue, len(value)))
		} else if err == nil {
			good := cmp.Or(lock.holder.Keep, every) - time.Since(lock.holder.Began)
			lock.holder.Final = &fcall.Done{Value: string(value), Since: time.Now(), Keep: max(leastKeep, good)}
		}
		return value, err
	})
	if err == nil {
		done = lock.holder.Final
	}
	return value, err
}

// KeepFor says, in fn of OnceValue with fn's context, how long its value is good for, where that shows only
// then: the expires_in of a token. The interval is d in place of every; it begins when fn's process got the
// lock, and is two seconds at least and a year at most. Each client remembers the value for its own every at
// most, and then asks again. It is for fn itself, before it returns, and for no goroutine that fn leaves.
func KeepFor(ctx context.Context, d time.Duration) {
	innermost(ctx).Keep = max(1, min(d, maxLease)) // 0 says nothing
}

// values are those that this client knows, and those that it is asking for.
type values struct {
	mu    sync.Mutex
	known map[string]*value
	asked map[string]*value
	bytes int // of those that are known
}

// value is written until ready is closed, and not after.
type value struct {
	ready chan struct{}
	done  fcall.Done // the zero value: there is none
	err   error      // of all who wait for it
}

// join returns the value of a key, or with fresh only one that is being asked for. mine: the caller is to ask
// for it, and to finish.
func (s *values) join(key string, fresh bool) (v *value, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v = s.known[key]; v != nil && !fresh && !v.over() {
		return v, false
	}
	if v = s.asked[key]; v == nil {
		v, mine = &value{ready: make(chan struct{})}, true
		s.asked[key] = v
	}
	return v, mine
}

// finish tells those who wait, once. Without a value the next of them asks, and what was known stays. If
// there is too much to remember, some of it is forgotten.
func (s *values) finish(key string, v *value, done *fcall.Done, every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[key] != v {
		return
	}
	v.done = *done
	v.done.Keep = min(done.Keep, max(leastKeep, every)) // it may be broken, or the server's clock have been set back
	close(v.ready)
	if delete(s.asked, key); v.over() {
		return
	}
	s.forget(key)
	s.known[key], s.bytes = v, s.bytes+v.size(key)
	for key := range s.known {
		if s.bytes <= mostValues {
			break
		}
		s.forget(key)
	}
}

// over reports whether there is no value, or one that is not to be counted on any more.
func (v *value) over() bool { return lease.Past(time.Now(), v.done.Since.Add(v.done.Keep)) }

func (v *value) size(key string) int { return len(key) + len(v.done.Value) + 256 }

func (s *values) forget(key string) {
	if v := s.known[key]; v != nil {
		delete(s.known, key)
		s.bytes -= v.size(key)
	}
}

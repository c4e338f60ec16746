// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Locks are several locks of one caller. It is safe for concurrent use.
type Locks struct {
	all []*Lock // sorted by name, each taken under those before
}

// AcquireAll takes all of the locks or none, and waits for them as Acquire does. Names that are given twice
// count once. MaxWait is for all of them together. Each lock has a token, and a lease, of its own.
//
// They are taken one after the other in the order of their names, a round trip each, so callers that
// give the same names in any order never wait for each other in a circle; those that it has are kept
// from others while it waits for the next one.
//
// The locks have one context, which ends when the first of them does. An Acquire of each of the
// names under it re-enters that lock.
//
// To hold one lock and wait for others, by AcquireAll too, can still end in a circle, also if it is one of
// these names: then MaxWait or the context ends it.
//
// Errors: as Acquire, for the lock that could not be acquired; the *LostError of one that was lost while it
// waited for the next, also by MaxHold; ErrArgument for no names. After an error none of them is held or
// waited for; those that were acquired are given back, without MinHold, in the background.
func (c *Client) AcquireAll(ctx context.Context, names []string, opts ...Option) (*Locks, error) {
	if len(names) == 0 {
		return nil, fmt.Errorf("holdfast: acquire all: %w: the list of names must not be empty", ErrArgument)
	}
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	w, err := c.want(ctx, sorted[0], opts)
	if err != nil {
		return nil, fmt.Errorf("holdfast: acquire all: %w", err)
	}
	until, cancel := w.set.within(ctx)
	defer cancel()
	parent, s := w.parent, &Locks{}
	for _, name := range sorted {
		l, err := c.Acquire(until, name, WithOptions(opts...), WithMaxWait(0), WithLockContext(parent))
		for _, held := range slices.Backward(s.all) { // the first that was lost meanwhile is why
			err = cmp.Or(opError("acquire all", name, held.holder.Cause()), err)
		}
		if l != nil {
			s.all, parent = append(s.all, l), l.Context()
		}
		if err != nil {
			for _, l := range s.all {
				l.decline()
			}
			return nil, err
		}
	}
	return s, nil
}

// Context ends when the first of the locks is lost or released, or when its parent does; see Lock.Context.
func (s *Locks) Context() context.Context { return s.all[len(s.all)-1].Context() }

// Lock returns the lock of that name; nil if it is none of them. To release it ends the context of all.
func (s *Locks) Lock(name string) *Lock {
	for _, l := range s.all {
		if l.Name() == name {
			return l
		}
	}
	return nil
}

// Release gives all of them back at the same time, as Lock.Release does for one, and blocks as long.
//
// Errors: the *LostError of one that was lost before, if there is one; else the first error.
func (s *Locks) Release(ctx context.Context) error { return worst(s.release(ctx)) }

// release gives the locks back at the same time: a server that is silent costs the time of one. The
// last one's context has ended before anybody else can have one of them, because it is under each.
func (s *Locks) release(ctx context.Context) []error {
	released := make([]error, len(s.all))
	var all sync.WaitGroup
	for i, l := range s.all {
		all.Go(func() { released[i] = l.Release(ctx) })
	}
	all.Wait()
	return released
}

func worst(released []error) (err error) {
	for _, e := range released {
		if err == nil || isLost(e) && !isLost(err) || errors.Is(e, ErrLost) && !errors.Is(err, ErrLost) {
			err = e
		}
	}
	return err
}

// isLost reports whether err is a *LostError, also one of a client that was closed.
func isLost(err error) bool {
	var lost *LostError
	return errors.As(err, &lost)
}

// DoAll is Do for several locks: it runs fn while all of them are held, under their context. Fence of
// that context is the token of the lock whose name is the last in order; take AcquireAll and
// Locks.Lock for the token of each.
func (c *Client) DoAll(ctx context.Context, names []string, fn func(context.Context) error, opts ...Option) (err error) {
	s, err := c.AcquireAll(ctx, names, opts...)
	if err != nil {
		return err
	}
	defer func() {
		released := s.release(ctx)
		for i, e := range released {
			if e != nil && !isLost(e) {
				c.events.unreleased(s.all[i].Name(), e)
			}
		}
		if lost := worst(released); isLost(lost) {
			err = beside(err, lost)
		}
	}()
	return fn(s.Context())
}

package client

import (
	"sync"
	"time"
)

// concerned is what the server's news concern: a lock that left a channel, or that is tracked.
type concerned interface {
	broken(fence int64, reason string) // an operator took the lock with this token
	noticed(now time.Time)             // its key may have changed
	in(slot uint16) bool
}

// registry finds by owner what the server tells of unasked. Several have one owner if that is of
// the caller's choice.
type registry struct {
	mu     sync.Mutex
	owners map[string]listing
}

// listing is nearly always of one.
type listing struct {
	one  concerned
	more []concerned
}

func newRegistry() *registry { return &registry{owners: map[string]listing{}} }

func (r *registry) add(owner string, c concerned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.owners[owner]
	for _, other := range l.all() {
		if other == c {
			return
		}
	}
	if l.one == nil {
		l.one = c
	} else {
		l.more = append(l.more, c)
	}
	r.owners[owner] = l
}

func (r *registry) remove(owner string, c concerned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var left listing
	for _, other := range r.owners[owner].all() {
		switch {
		case other == c:
		case left.one == nil:
			left.one = other
		default:
			left.more = append(left.more, other)
		}
	}
	if left.one == nil {
		delete(r.owners, owner)
	} else {
		r.owners[owner] = left
	}
}

func (l listing) all() []concerned {
	if l.one == nil {
		return nil
	}
	return append([]concerned{l.one}, l.more...)
}

// owner returns those of an owner.
func (r *registry) owner(owner string) []concerned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owners[owner].all()
}

// pick returns those for which wanted returns true.
func (r *registry) pick(wanted func(concerned) bool) (picked []concerned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.owners {
		for _, c := range l.all() {
			if wanted(c) {
				picked = append(picked, c)
			}
		}
	}
	return picked
}

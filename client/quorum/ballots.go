package quorum

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// ballot is what is known here of the votes for one owner. An owner string is for one lock, once: it is
// never used again after it was given back. So a giving back can be repeated at any time.
type ballot struct {
	request fcall.Call // for a vote

	mu    sync.Mutex
	lease time.Duration
	over  bool // it is given back
	seats []seat
	used  time.Time
	kept  time.Time // the end of its minimum, when it was won
}

// seat is what is known of one server.
type seat struct {
	asked, heard int       // requests for its vote, and their outcomes
	maybe        bool      // one of those was a vote, or can have been
	last         time.Time // the end of the last lease that it said yes to, from when that was asked for
}

// length is a lease as the library takes it.
func length(ttl string) time.Duration {
	ms, _ := strconv.ParseInt(ttl, 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// asks notes that a request for a vote leaves for a server. It reports whether that may be.
func (b *ballot) asks(server int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.seats[server].asked++
	}
	return !b.over
}

// answered notes the outcome of that. A no says nothing about a vote: it can be older than a yes that
// was heard of before.
func (b *ballot) answered(server int, sent time.Time, o fcall.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.seats[server]
	s.heard++
	switch {
	case o.Err == nil && o.Yes:
		s.maybe, s.last = true, later(s.last, sent.Add(b.lease))
	case o.Err != nil && fcall.Unknown(o.Err):
		s.maybe = true
	}
}

// renewed notes the answer to a renewal.
func (b *ballot) renewed(server int, sent time.Time, ttl string, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.used = sent; yes {
		b.lease = max(b.lease, length(ttl))
		b.seats[server].last = later(b.seats[server].last, sent.Add(length(ttl)))
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lapsed reports whether a server that has nobody for the lock may be asked for its vote again, and
// notes that it is: it never voted, or what it voted for has ended by now. Before that it may have been
// told to break the lock.
func (b *ballot) lapsed(server int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || !now.After(b.seats[server].last) {
		return false
	}
	b.seats[server].asked++
	return true
}

// again is the request for a vote that a server has lost: with what is left of the minimum.
func (b *ballot) again(ttl string, now time.Time) fcall.Call {
	b.mu.Lock()
	defer b.mu.Unlock()
	call := b.request
	if call.TTL, call.MinHold = ttl, ""; b.kept.After(now) {
		call.MinHold = fcall.TTL(b.kept.Sub(now))
	}
	return call
}

func (s *seat) matters() bool { return s.maybe || s.heard < s.asked }

// matters reports whether a server may have something to give back.
func (b *ballot) matters(server int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seats[server].matters()
}

// leaves notes that a giving back leaves for a server. It returns what left is to be called with: how
// many requests it covers. While one is under way that is none: both can wait for one connection, and
// then nobody knows which of them the server heard first.
func (b *ballot) leaves(server int) (covers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if s := b.seats[server]; s.heard == s.asked {
		return s.asked
	}
	return -1
}

// left notes that a server has done a giving back.
func (b *ballot) left(server, covers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := &b.seats[server]; s.asked == covers {
		s.maybe = false
	}
}

// won notes when the votes of a majority were asked for.
func (b *ballot) won(sent time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept = sent.Add(length(b.request.MinHold))
}

// ballots are those of all owners who may have votes.
type ballots struct {
	mu sync.Mutex
	by map[string]*ballot
}

const sweepEvery = 1024 // ballots

// open returns the ballot of a request's owner.
func (all *ballots) open(call fcall.Call, servers int) *ballot {
	now := time.Now()
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.by[call.Owner]
	if b == nil {
		b = &ballot{seats: make([]seat, servers), request: fcall.Call{Verb: fcall.Acquire, Key: call.Key, Owner: call.Owner,
			TTL: call.TTL, Guard: call.Guard, MinHold: call.MinHold}}
		if all.by[call.Owner] = b; len(all.by)%sweepEvery == 0 {
			all.sweep(now)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lease, b.used = max(b.lease, length(call.TTL)), now
	return b
}

// sweep drops those of which nothing is left anywhere, although nobody could say so.
func (all *ballots) sweep(now time.Time) {
	for owner, b := range all.by {
		b.mu.Lock()
		if now.Sub(b.used) > 2*b.lease {
			delete(all.by, owner)
		}
		b.mu.Unlock()
	}
}

// find returns an owner's ballot, or nil: nothing is left of it.
func (all *ballots) find(owner string) *ballot {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.by[owner]
}

// settle drops an owner's ballot if nothing is left of it. It reports whether that is so: no further
// request for a vote may leave then, as of a goroutine that was late.
func (all *ballots) settle(owner string, b *ballot) bool {
	if b != nil && !b.close() {
		return false
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.by, owner)
	return true
}

// close ends the ballot, unless a server may have something to give back.
func (b *ballot) close() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	left := slices.ContainsFunc(b.seats, func(s seat) bool { return s.matters() })
	b.over = b.over || !left
	return !left
}

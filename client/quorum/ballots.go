// SPDX-License-Identifier: Apache-2.0

package quorum

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// ballot is what is known here of the votes for one owner. An owner string is for one lock, once: it is
// never used again after it was given back. So a giving back can be repeated at any time.
type ballot struct {
	request fcall.Call // for a vote: the last one, as waiters of one owner may want other leases

	all   *ballots // its mutex is that of what follows
	calls int      // for votes, so far
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
	late         bool      // one of those had no answer: it may run yet, also behind a giving back
	last         time.Time // the end of the last lease that it said yes to, from when that was asked for
}

// length is a lease as the library takes it.
func length(ttl string) time.Duration {
	ms, _ := strconv.ParseInt(ttl, 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// wanted is the request for a vote. A call that was given up still runs beside the next one of its owner.
func (b *ballot) wanted() fcall.Call {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	return b.request
}

// asks notes that a request for a vote leaves for a server. It reports whether that may be.
func (b *ballot) asks(server int) bool {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if !b.over {
		b.seats[server].asked++
	}
	return !b.over
}

// heard notes the outcome of a request for a vote, or of a renewal. A no says nothing about a vote: it
// can be older than a yes that was heard of before.
func (b *ballot) heard(server int, sent time.Time, call fcall.Call, o fcall.Outcome) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	s, yes, ttl := &b.seats[server], o.Err == nil && o.Yes, length(call.TTL)
	if call.Verb == fcall.Acquire {
		s.heard++
		s.late = s.late || o.Err != nil && fcall.Unknown(o.Err)
		s.maybe = s.maybe || yes || s.late
	}
	b.used = sent
	if end := sent.Add(ttl); yes && end.After(s.last) {
		b.lease, s.last = max(b.lease, ttl), end
	}
}

// again returns the request for a vote that a server has lost: with what is left of the minimum. It notes
// that it leaves, if it may: the server never voted, or what it voted for has ended by now. Before that
// it may have been told to break the lock. A renewal for a millisecond only asks: a vote for so long would be
// over at once, and a minimum keep it from its owner too.
func (b *ballot) again(server int, renewal fcall.Call, now time.Time) (call fcall.Call, may bool) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if renewal.Verb != fcall.Renew || length(renewal.TTL) <= time.Millisecond || b.over || !now.After(b.seats[server].last) {
		return call, false
	}
	b.seats[server].asked++
	call = b.request
	if call.TTL, call.MinHold = renewal.TTL, ""; b.kept.After(now) {
		call.MinHold = fcall.TTL(b.kept.Sub(now))
	}
	return call, true
}

func (s *seat) matters() bool { return s.maybe || s.heard < s.asked }

// leaves notes that a giving back leaves for a server, and reports whether that may have something. It
// returns what left is to be called with: how many requests it covers. While one is under way that is
// none: both can wait for one connection, and then nobody knows which of them the server heard first.
func (b *ballot) leaves(server int) (covers int, matters bool) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.over = true
	s := &b.seats[server]
	if covers = -1; s.heard == s.asked {
		covers = s.asked
	}
	return covers, s.matters()
}

// left notes that a server has done a giving back.
func (b *ballot) left(server, covers int) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if s := &b.seats[server]; s.asked == covers {
		s.maybe = false
	}
}

// won notes when the votes of a majority were asked for.
func (b *ballot) won(sent time.Time) {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.kept = sent.Add(length(b.request.MinHold))
}

// ballots are those of all owners who may have votes.
type ballots struct {
	servers int
	mu      sync.Mutex
	by      map[string]*ballot
}

const many = 1024 // ballots, or rivals, of which some can be dropped

// open returns the ballot of a request's owner, and which of its calls this is.
func (all *ballots) open(call fcall.Call) (b *ballot, nth int) {
	now := time.Now()
	all.mu.Lock()
	defer all.mu.Unlock()
	if b = all.by[call.Owner]; b == nil {
		b = &ballot{all: all, used: now, seats: make([]seat, all.servers)}
		if all.by[call.Owner] = b; len(all.by)%many == 0 {
			// those of which nothing is left anywhere, although nobody could say so
			maps.DeleteFunc(all.by, func(_ string, b *ballot) bool { return now.Sub(b.used) > 2*b.lease })
		}
	}
	b.lease, b.used, b.calls = max(b.lease, length(call.TTL)), now, b.calls+1
	b.request = fcall.Call{Verb: fcall.Acquire, Key: call.Key, Owner: call.Owner, TTL: call.TTL, Guard: call.Guard, MinHold: call.MinHold}
	return b, b.calls
}

// find returns an owner's ballot. One that was dropped is over. Who gives back again knows that a request
// for a vote may run late, on a connection that has ended since: then a server may have something that did
// not answer, and all if it was dropped.
func (all *ballots) find(owner string, again bool) *ballot {
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.by[owner]
	if b == nil {
		seats := slices.Repeat([]seat{{late: true}}, all.servers)
		b = &ballot{all: all, over: true, request: fcall.Call{Owner: owner}, seats: seats}
	}
	if again {
		all.by[owner] = b
		for i := range b.seats {
			b.seats[i].maybe = b.seats[i].maybe || b.seats[i].late
		}
	}
	return b
}

// settle drops a ballot if nothing is left of it. It reports whether that is so: no further request for a
// vote may leave then, as of a goroutine that was late. The nth call does not end those after it.
func (b *ballot) settle(nth int) bool {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	if nth < b.calls || slices.ContainsFunc(b.seats, func(s seat) bool { return s.matters() }) {
		return false
	}
	b.over = true
	delete(b.all.by, b.request.Owner)
	return true
}

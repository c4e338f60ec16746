package quorum

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/client/internal/fcall"
)

// ballot is what is known here of the votes for one owner.
type ballot struct {
	owner string
	guard string // of its request

	mu    sync.Mutex
	lease time.Duration
	over  bool   // it was given back: a vote that comes now is one too many
	going bool   // that is under way: what it leaves behind is given back after it
	owed  bool   // it left something behind
	at    []seat // by server
	used  time.Time
	fence int64 // of the lock, when it was won
	turns int   // at the line's server, without a majority
	waits int   // answers of it that said no
}

// seat is what is known of one server.
type seat struct {
	maybe bool      // a request left whose outcome is unknown, was a vote, or a place in line
	last  time.Time // the end of the last lease that it said yes to, from when that was asked for

	sent, heard int // requests, and their outcomes
}

func newBallot(owner string, servers int) *ballot {
	return &ballot{owner: owner, at: make([]seat, servers)}
}

// length is a lease as the library takes it.
func length(ttl string) time.Duration {
	ms, _ := strconv.ParseInt(ttl, 10, 64)
	return time.Duration(ms) * time.Millisecond
}

// asked notes that a request leaves for a server.
func (b *ballot) asked(from int) (before bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.at[from]
	before, s.maybe = s.maybe, true
	s.sent++
	return before
}

// answered notes the outcome. before is what asked returned. late says that the owner has given up
// meanwhile, and that the server may have voted after it heard of that.
func (b *ballot) answered(from int, before bool, sent time.Time, r fcall.Reply, err error) (late bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.at[from]
	s.heard++
	switch unknown := err != nil && fcall.Unknown(err); {
	case err == nil && r.Yes:
		s.last = sent.Add(b.lease)
		s.maybe = true // also if it was given back meanwhile
		return b.owes()
	case unknown:
		s.maybe = true
		return b.owes()
	default: // a later request can have been heard of before
		s.maybe = before || s.last.After(sent)
		return false
	}
}

// owes reports whether a vote is to be given back now. b.mu is held.
func (b *ballot) owes() bool {
	b.owed = b.owed || b.going
	return b.over && !b.going
}

// goes notes that the lock is being given back. A second giving back that crossed the first would make
// servers say that it is another's.
func (b *ballot) goes() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over, b.going = true, true
}

// unanswered notes that a server may not have heard of that. It reports whether it is over, so that
// the server is to be told once more.
func (b *ballot) unanswered() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.owes()
}

// went notes that it is over. It reports whether something was left behind.
func (b *ballot) went() (owed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	owed, b.going, b.owed = b.owed, false, false
	return owed
}

// renewed notes the answer to a renewal.
func (b *ballot) renewed(from int, sent time.Time, ttl string, yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lease = length(ttl); yes {
		b.at[from].last = sent.Add(b.lease)
	}
	b.used = sent
}

// lapsed reports whether a server that has nobody for the lock may be asked for its vote again: it
// never voted, or what it voted for has ended by now. Before that it may have been told to break the
// lock.
func (b *ballot) lapsed(from int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.over && now.After(b.at[from].last)
}

// elsewhere reports whether another server than that has a vote for the owner.
func (b *ballot) elsewhere(than int, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for from, s := range b.at {
		if from != than && s.last.After(now) {
			return true
		}
	}
	return false
}

// matters reports whether a server may have something to give back.
func (b *ballot) matters(from int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at[from].maybe
}

// tells notes that a giving back leaves for a server. It returns what gone is to be called with.
func (b *ballot) tells(from int) (covers int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.at[from]; s.heard == s.sent {
		return s.sent
	}
	return overtaken
}

// overtaken is what a giving back covers while a request is under way: nothing. Both can wait for one
// connection, and then nobody knows which of them the server heard first.
const overtaken = -1

// gone notes that a server has done a giving back: it has nothing of the owner's any more, of as many
// requests as that covers. It reports whether no server has anything.
func (b *ballot) gone(from, covers int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := &b.at[from]; s.sent == covers {
		s.maybe = false
	}
	return !slices.ContainsFunc(b.at, func(s seat) bool { return s.maybe })
}

// patience is how often the votes are collected in vain before whoever has them is not believed to be
// giving the lock back just now: a giving back reaches one server before the others.
const patience = 5

// again is how long to wait before the votes are collected once more, and whether that is one of the
// first times.
func (b *ballot) again() (pause time.Duration, patient bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns++
	return time.Millisecond << min(b.turns-1, 6), b.turns <= patience
}

// waitsAgain notes a question to the server that has the line. It reports whether it is not the first.
func (b *ballot) waitsAgain() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waits++
	return b.waits > 1
}

// won notes the token that a majority has.
func (b *ballot) won(fence int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fence = fence
}

func (b *ballot) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// stale reports whether nothing is left of it anywhere.
func (b *ballot) stale(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Sub(b.used) > 2*b.lease
}

// ballots are those of all owners, until their leases are long over.
type ballots struct {
	mu      sync.Mutex
	servers int
	opened  int
	by      map[string]*ballot
}

const sweepEvery = 1024 // ballots

func newBallots(servers int) ballots { return ballots{servers: servers, by: map[string]*ballot{}} }

// open returns the ballot of a request's owner.
func (all *ballots) open(r fcall.Request) *ballot {
	now := time.Now()
	all.mu.Lock()
	defer all.mu.Unlock()
	b := all.by[r.Owner]
	if b == nil {
		b = newBallot(r.Owner, all.servers)
		all.by[r.Owner] = b
		if all.opened++; all.opened%sweepEvery == 0 {
			all.sweep(now)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.guard, b.lease, b.used = r.Guard, length(r.TTL), now
	return b
}

func (all *ballots) sweep(now time.Time) {
	for owner, b := range all.by {
		if b.stale(now) {
			delete(all.by, owner)
		}
	}
}

// find returns an owner's ballot, or nil.
func (all *ballots) find(owner string) *ballot {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.by[owner]
}

// known is how a lock stands, with the holder's token if that is known here: servers that voted late
// have higher ones.
func (all *ballots) known(s fcall.Standing) fcall.Standing {
	b := all.find(s.Owner)
	if b == nil || !s.Held {
		return s
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fence > 0 {
		s.Fence = b.fence
	}
	return s
}

// release returns the ballot of an owner that gives the lock back. Of one that is not known here, each
// server may have something.
func (all *ballots) release(owner string) *ballot {
	b := all.find(owner)
	if b == nil {
		b = newBallot(owner, all.servers)
		for from := range b.at {
			b.at[from].maybe = true
		}
	}
	b.goes()
	return b
}

// end notes that an owner gives back what it has.
func (all *ballots) end(owner string) *ballot {
	b := all.find(owner)
	if b != nil {
		b.end()
	}
	return b
}

// forget drops the ballot of an owner that nothing is left of.
func (all *ballots) forget(owner string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.by, owner)
}

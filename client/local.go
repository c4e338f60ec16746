package client

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// Inside one process only one goroutine at a time deals with Redis for a lock: it leads. The others stand in a line of
// memory, first come first served, and while the lease is good the lock goes from holder to holder there, each with the
// next token of a run that was reserved with the lock. After a bounded run it is given back, so that other processes
// get their turn. This is lock cohorting (Dice, Marathe, Shavit: Lock Cohorting, PPoPP 2012) applied to a lease.
const (
	passRun   = 1000                 // passes in a row, and the tokens reserved for them
	passSlice = 2 * time.Millisecond // no pass after this much of a run
)

// rooms are the locks that this process deals with now, by key.
type rooms struct {
	seed   maphash.Seed
	shards [64]roomShard
}

type roomShard struct {
	mu    sync.Mutex
	rooms map[string]*room
}

// room is one lock's line inside the process. It exists while somebody leads, holds or stands in it. shard.mu guards it.
type room struct {
	shard  *roomShard
	key    string
	holder *held     // who has the lock; nil while the leader asks for it
	since  time.Time // when the run began
	line   []*ticket
}

// ticket is a place in a room's line.
type ticket struct {
	attempt *attempt
	turn    chan turn // buffered: whoever gives the turn never waits
}

// turn is what the head of a room's line gets: the lock itself, or the lead. owner is then who stands in Redis's line
// for this process already, "" if nobody does.
type turn struct {
	held  *held
	owner string
}

func newRooms() *rooms {
	r := &rooms{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].rooms = map[string]*room{}
	}
	return r
}

// enter returns the lock's room, and a ticket if somebody leads already.
func (r *rooms) enter(a *attempt) (*room, *ticket) {
	shard := r.shard(a.key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	g := shard.rooms[a.key]
	if g == nil {
		g = &room{shard: shard, key: a.key}
		shard.rooms[a.key] = g
		return g, nil
	}
	t := &ticket{attempt: a, turn: make(chan turn, 1)}
	g.line = append(g.line, t)
	return g, t
}

func (r *rooms) shard(key string) *roomShard {
	return &r.shards[maphash.String(r.seed, key)%uint64(len(r.shards))]
}

// holder is who of this process has the lock, nil if nobody has.
func (r *rooms) holder(key string) *held {
	shard := r.shard(key)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	if g := shard.rooms[key]; g != nil {
		return g.holder
	}
	return nil
}

// crowded tells whether somebody stands in the line: then a run of tokens is worth reserving.
func (g *room) crowded() bool {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	return len(g.line) > 0
}

// took notes that the leader has the lock; if that was lost already, the next one leads.
func (g *room) took(h *held) {
	g.shard.mu.Lock()
	g.holder, g.since = h, time.Now()
	g.shard.mu.Unlock()
	h.mu.Lock()
	lost := h.lost != nil
	h.mu.Unlock()
	if lost {
		g.leave(h, "", nil)
	}
}

// pass gives the lock from h, whose last hold was just released, to the head of the line. It returns false when it must go
// back to Redis: the run is over, the lease is too short, or the next one asked for other settings than the server knows.
func (g *room) pass(h *held) bool {
	now := time.Now()
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if g.holder != h || len(g.line) == 0 || h.fence >= h.top || now.Sub(g.since) > passSlice {
		return false
	}
	t := g.line[0]
	if *t.attempt.set != *h.set {
		return false
	}
	next := h.heir(now)
	if next == nil {
		return false
	}
	g.drop(0)
	g.holder = next
	t.turn <- turn{held: next}
	return true
}

// leave ends the hold of h, or (h nil) the lead: the head of the line leads now. owner, if not "", stands in Redis's line
// with these settings; leave returns true if the new leader took that place over.
func (g *room) leave(h *held, owner string, set *settings) (adopted bool) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	if g.holder != h {
		return false
	}
	g.holder = nil
	if len(g.line) == 0 {
		delete(g.shard.rooms, g.key)
		return false
	}
	t := g.line[0]
	g.drop(0)
	if owner != "" && *t.attempt.set == *set {
		t.turn <- turn{owner: owner}
		return true
	}
	t.turn <- turn{}
	return false
}

// drop takes place i off the line. shard.mu is held.
func (g *room) drop(i int) {
	if i == 0 {
		g.line[0] = nil
		g.line = g.line[1:]
		return
	}
	g.line = append(g.line[:i], g.line[i+1:]...)
}

// await blocks until the ticket's turn, or until ends or the client closes. A turn that crossed with that is passed on.
func (g *room) await(t *ticket, until context.Context) (turn, error) {
	var err error
	select {
	case got := <-t.turn:
		return got, nil
	case <-until.Done():
		err = until.Err()
	case <-t.attempt.client.closing.Done():
		err = ErrClosed
	}
	g.shard.mu.Lock()
	for i, other := range g.line {
		if other == t {
			g.drop(i)
			g.shard.mu.Unlock()
			return turn{}, err
		}
	}
	g.shard.mu.Unlock()
	switch got := <-t.turn; {
	case got.held != nil:
		if l, lost := got.held.lock(until, ""); lost == nil {
			t.attempt.client.detach(t.attempt.set.lease, func(ctx context.Context) { _ = l.Release(ctx) })
		}
	case !g.leave(nil, got.owner, t.attempt.set) && got.owner != "":
		t.attempt.giveUp(got.owner, "")
	}
	return turn{}, err
}

// snapshot is who of this process holds the lock, for those who stop waiting in its line.
func (g *room) snapshot() (h *held, waiters int) {
	g.shard.mu.Lock()
	defer g.shard.mu.Unlock()
	return g.holder, len(g.line)
}

// heir is the next holder of the same server-side ownership: one token on, with a Lock, context, cause and limits of its
// own. It returns nil if h cannot be passed on: lost, capped, or with too little of its lease left.
func (h *held) heir(now time.Time) *held {
	h.mu.Lock()
	if h.lost != nil || len(h.locks) > 0 || h.deadline.Sub(now) < min(h.set.lease, provisional)/4 {
		h.mu.Unlock()
		return nil
	}
	next := &held{client: h.client, room: h.room, name: h.name, key: h.key, owner: h.owner, set: h.set, first: h.first,
		fence: h.fence + 1, top: h.top, deadline: h.deadline, renewAt: h.renewAt, watched: h.watched, tracked: h.tracked,
		looked: h.looked, index: -1}
	h.mu.Unlock()
	if h.set.maxHold > 0 {
		next.capAt = now.Add(h.set.maxHold)
	}
	if !h.client.renewals.replace(h, next) {
		return nil
	}
	return next
}

// current is who has the server-side ownership of h now: h, or who it was passed on to.
func (h *held) current() *held {
	if h.room != nil {
		h.room.shard.mu.Lock()
		defer h.room.shard.mu.Unlock()
		if now := h.room.holder; now != nil && now.owner == h.owner {
			return now
		}
	}
	return h
}

// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// holder is somebody who got a lock: a Lock of the client, or one taken by plain FCALL.
type holder struct {
	process  *process
	who      string
	name     string
	owner    string
	fence    int64
	shared   bool // others may hold it by the same owner string
	limit    int  // of a limited holder, or oracle.Sharing
	slot     int
	began    time.Time
	entered  time.Time
	released bool
	ended    time.Time // about when its context ended without a Release
	lost     time.Time // since when audits find it alive, and the lock another's; zero: they do not
	lock     *client.Lock
	done     <-chan struct{} // of the context that Do gave
	raw      time.Time       // plain FCALL: it works until then
	grace    time.Duration
	minHold  time.Time // the server keeps the lock until then at the latest, without another call
	least    time.Time // nobody else gets it before; zero: it has no minimum
}

// alive reports whether the holder may work. It does not look at the clock on behalf of the Lock.
func (h *holder) alive() bool {
	if h.released || h.process.isDead() {
		return false
	}
	done := h.done
	switch {
	case h.lock != nil:
		done = h.lock.Context().Done()
	case done == nil:
		return time.Now().Before(h.raw)
	}
	select {
	case <-done:
		return false
	default:
		return true
	}
}

// over reports whether the context of its Lock has ended.
func (h *holder) over() bool {
	select {
	case <-h.lock.Context().Done():
		return true
	default:
		return false
	}
}

// enter notes a new holder, and looks whether it is alone. The owner of one that Do made is what the
// servers say: the client does not tell it.
func (o *observer) enter(h *holder) {
	o.mu.Lock()
	l := o.locks[h.name]
	if h.owner == "" {
		g := l.grantOf(h.fence, h.process.label)
		h.owner, h.slot = g.owner, g.slot
	}
	h.entered = time.Now()
	o.report.Entries++
	o.history.add(h.name, h.who, "enters as %s with token %d, limit %d, slot %d", h.owner, h.fence, h.limit, h.slot)
	if h.alive() {
		o.checkAlone(l, h)
		if h.done == nil {
			o.checkMinimum(l, h)
		}
	}
	l.holders = append(l.holders, h)
	o.mu.Unlock()
	o.checkDeadline(l, h)
}

func (o *observer) checkAlone(l *lock, h *holder) {
	live, inside := l.holders[:0], []*oracle.Hold{o.hold(l, h)}
	for _, other := range l.holders {
		if other.released || !other.alive() {
			continue
		}
		live = append(live, other)
		inside = append(inside, o.hold(l, other))
		if !o.hold(l, h).Excludes(o.hold(l, other)) {
			continue
		}
		invariant := 1
		if h.fence == other.fence {
			invariant = 3
		}
		o.unless(o.admits(l, h, other), l.name, invariant, "%s (%s, token %d) enters while the context of %s (%s, token %d) is alive",
			h.who, h.owner, h.fence, other.who, other.owner, other.fence)
	}
	o.report.Count(Checks, "1 entry", 1)
	if x := l.judge.Crowded(inside, stamp(time.Now())); x != nil {
		o.broken(l.name, 1, "token %d has a limit of %d, and enters beside more: %v", x.Token, x.Limit, inside)
	}
	if len(inside) > 1 && h.limit > 0 {
		o.report.Count(Checks, "1 crowd", 1)
	}
	l.holders = live
	if o.need > 0 {
		o.checkVotes(l, h, 0)
		o.checkOrder(l, h)
		return
	}
	l.token = max(l.token, h.fence) // passed on in memory
}

// checkMinimum looks whether the minimum of the one before is over, where nothing happened since. Who
// enters by an earlier token was granted the lock before that, and goes on: admits judges that.
func (o *observer) checkMinimum(l *lock, h *holder) {
	from, calm := o.calm()
	for slot, before := range l.keeps {
		if h.fence < before.fence || slot != h.slot && !o.hold(l, h).Excludes(o.hold(l, before)) {
			continue
		}
		delete(l.keeps, slot)
		if before.owner == h.owner || !calm || from.After(before.began) || o.lost(l, before) != oracle.None {
			continue
		}
		o.report.Count(Checks, "9 minimum", 1)
		if early := before.least.Sub(h.entered); early > 0 {
			o.broken(l.name, 9, "%s enters %v before the minimum of %s is over", h.who, early, before.who)
		}
	}
	if !h.least.IsZero() && l.keeps[h.slot] == nil {
		l.keeps[h.slot] = h
	}
}

// hold is a holder as the oracle knows it. A caller of FCALL counts on what one server says.
func (o *observer) hold(l *lock, h *holder) *oracle.Hold {
	level := oracle.Default
	switch {
	case o.mix.guard > 0:
		level = oracle.Guarded
	case l.level && (h.lock != nil || h.done != nil):
		level = oracle.Replicas
	}
	return &oracle.Hold{Level: level, Owner: h.owner, Token: h.fence, Shared: h.shared, Limit: h.limit, Slot: h.slot,
		Start: stamp(h.began), Enter: stamp(h.entered), Told: stamp(l.told[h.owner])}
}

// admits returns why two holders may be inside together, None if they may not.
func (o *observer) admits(l *lock, a, b *holder) oracle.Cause {
	if o.need > 0 {
		return cmp.Or(o.lostMajority(l, a), o.lostMajority(l, b))
	}
	_, why := l.judge.Meet(o.hold(l, a), o.hold(l, b), stamp(time.Now()))
	return causeOf(why)
}

// lost returns what took the lock from its holder.
func (o *observer) lost(l *lock, h *holder) oracle.Cause {
	return causeOf(l.judge.Lost(o.hold(l, h), stamp(time.Now()), oracle.Loss))
}

func causeOf(f *oracle.Fault) oracle.Cause {
	if f == nil {
		return oracle.None
	}
	return f.Cause
}

// lent notes that somebody else uses an owner string.
func (l *lock) lent(owner string) {
	l.ghosts[owner] = true
	l.lenders[labelOf(owner)] = true
}

// checkOutlived looks for contexts that are alive when their owner does not have the lock any more.
// o.mu is held.
func (o *observer) checkOutlived(l *lock, owner, what string) {
	for _, h := range l.holders {
		if h.owner != owner || h.released || !h.alive() || h.lock == nil && h.done == nil {
			continue
		}
		o.unless(o.lost(l, h), l.name, 2, "the context of %s (%s, token %d) is alive, and %s", h.who, h.owner, h.fence, what)
	}
}

// checkDeadline compares what a holder counts on with what the server keeps. It looks at the Lock
// before it looks at the server's lease, which may be prolonged meanwhile but never shortened without
// the Lock's knowledge.
func (o *observer) checkDeadline(l *lock, h *holder) {
	if h.lock == nil {
		return
	}
	var released bool
	o.locked(func() { released = h.released })
	remaining := h.lock.Remaining()
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if released || h.released || remaining == 0 || !h.alive() {
		return
	}
	if o.need > 0 {
		o.checkVotes(l, h, remaining)
		return
	}
	o.report.Count(Checks, "2 remaining", 1)
	t := l.of(h.owner)
	if t != nil && !now.Add(remaining).After(t.until) {
		return
	}
	if t == nil {
		t = &l.term
	}
	o.unless(o.lost(l, h), l.name, 2, "%s (%s, token %d) counts on %v, and the server has it as %q's for %v",
		h.who, h.owner, h.fence, remaining, t.owner, t.until.Sub(now))
}

// released notes that a holder has released: the server may keep the lock for its process for a while.
func (o *observer) released(h *holder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h.lock != nil && h.alive() {
		o.broken(h.name, 2, "the context of %s is alive after its Release", h.who)
	}
	h.released = true
	o.locks[h.name].wantedBy(h.process, time.Now().Add(h.grace))
}

// register is a resource that refuses tokens lower than it has seen.
type register struct {
	token   int64
	version int
}

// read returns the version, or false if the token is too low.
func (o *observer) read(h *holder) (version int, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &o.locks[h.name].register
	if h.fence < r.token {
		return 0, false
	}
	r.token = h.fence
	return r.version, true
}

// write changes what was read.
func (o *observer) write(h *holder, version int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.locks[h.name]
	r := &l.register
	o.report.Count(Checks, "4 write", 1)
	if h.fence < r.token {
		return // refused
	}
	if r.version != version {
		o.broken(l.name, 4, "%s (token %d) overwrites an update that it did not read", h.who, h.fence)
	}
	r.version++
}

// process of an owner string, by the label at its end.
func labelOf(owner string) string {
	parts := strings.SplitN(owner, ":", 5)
	if len(parts) < 5 {
		return ""
	}
	return parts[4]
}

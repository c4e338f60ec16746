package model

// The server's rules: what the library does to one lock in one call. They say what
// functions/holdfast.lua says, for plain locks with a single token and no bound of the wait. The
// tie test runs both side by side, so a rule that is changed here or there must be changed at both
// places.

// turn is one call under way.
type turn struct {
	cfg    *Config
	env    Env
	caller Owner
	lock   Lock
	eff    Effect
}

// Do runs a call on a lock.
func (cfg *Config) Do(lock Lock, env Env, r Request) Effect {
	t := turn{cfg: cfg, env: env, caller: r.Owner, lock: lock}
	t.eff.Reply = t.run(r)
	t.expire()
	if t.lock != lock {
		t.eff.Wrote = true
	}
	t.eff.Lock, t.eff.Now, t.eff.Last = t.lock, t.env.Now, t.env.Last
	return t.eff
}

func (t *turn) run(r Request) Reply {
	switch r.Kind {
	case Acquire, Wait:
		return t.acquire(r)
	case Renew:
		return t.renew(r)
	case Release:
		return t.release(r)
	case Leave:
		return t.leave(r)
	case Break:
		return t.smash()
	case Raise:
		return t.raise(r)
	}
	return Reply{}
}

func (t *turn) acquire(r Request) Reply {
	l := &t.lock
	if t.cfg.Flaw == Overtake && r.Kind == Acquire && l.Rem <= 0 {
		l.Owner = 0
	} else {
		t.settle()
	}
	switch {
	case l.free() && t.env.Young && t.cfg.Flaw != GuardedRepeats:
		return Reply{Refused: true, Fence: l.Fence}
	case l.free():
		t.take(r.Owner)
		l.Holds = r.Hold
		return t.yours()
	case l.heldBy(r.Owner) && r.Hold&^l.Holds != 0 && t.env.Young: // one more hold is a grant
		reply := t.busy()
		reply.Refused = true
		return reply
	case l.heldBy(r.Owner):
		l.Holds |= r.Hold
		t.prolong()
		return t.yours()
	case r.Kind == Acquire:
		return t.busy()
	}
	at := t.queue(r.Owner)
	reply := t.busy()
	reply.Fence, reply.Waiters = l.Fence, at
	return reply
}

func (t *turn) renew(r Request) Reply {
	l := &t.lock
	t.settle()
	mine := l.heldBy(r.Owner) && (r.Fence == 0 || r.Fence == l.Fence) && (r.Hold == 0 || r.Hold&l.Holds != 0)
	if t.cfg.Flaw == BlindRenew && l.Owner != 0 {
		t.prolong()
		return Reply{Yes: true, Fence: r.Fence}
	}
	if !mine {
		return t.busy()
	}
	t.prolong()
	return t.yours()
}

// raise is a renewal that makes the token a higher one.
func (t *turn) raise(r Request) Reply {
	reply := t.renew(Request{Kind: Renew, Owner: r.Owner})
	if l := &t.lock; reply.Yes {
		l.Fence = max(l.Fence, r.Raised)
		reply.Fence = l.Fence
	}
	return reply
}

func (t *turn) release(r Request) Reply {
	t.settle()
	if !t.lock.heldBy(r.Owner) && (t.cfg.Flaw != BlindRelease || t.lock.Owner == 0) {
		return t.busy()
	}
	if l := &t.lock; r.Hold != 0 {
		if had := l.Holds&r.Hold != 0; !had || l.Holds != r.Hold { // it was not there, or others are left
			l.Holds &^= r.Hold
			t.eff.Wrote = had
			return Reply{Yes: true}
		}
	}
	t.passOn()
	return Reply{Yes: true}
}

func (t *turn) leave(r Request) Reply {
	if t.lock.Owner == 0 {
		return Reply{}
	}
	left, ended := false, t.lock.Rem <= 0 && t.lock.waiters() > 0
	if i := t.lock.find(r.Owner); i >= 0 && r.Fence == 0 {
		t.lock.remove(i)
		left = true
	}
	if r.Fence != 0 {
		t.caller = 0 // its reply tells of no grant
	}
	if ended {
		t.passOn()
	}
	mine := t.lock.heldBy(r.Owner) && (r.Fence == 0 || r.Fence == t.lock.Fence)
	switch l := &t.lock; {
	case mine && l.Holds != r.Hold: // others are left, or it was not there
		left = l.Holds&r.Hold != 0
		l.Holds &^= r.Hold
	case mine:
		t.passOn()
		left = true
	}
	if !left {
		return t.busy()
	}
	return Reply{Yes: true}
}

func (t *turn) smash() Reply {
	l := t.lock
	if l.Rem <= 0 {
		t.settle()
		return t.busy()
	}
	t.passOn()
	return Reply{Yes: true, Holder: l.Owner, Fence: l.Fence}
}

// take writes the owner of a lock that is free.
func (t *turn) take(o Owner) {
	line := t.lock.Line // none, but for the flaw Overtake
	t.lock = Lock{Owner: o, Rem: t.cfg.Lease, Fence: t.token(t.lock.Fence), Line: line}
	t.eff.Lease, t.eff.Granted = t.cfg.Lease, t.lock.Fence
}

// prolong starts a whole lease.
func (t *turn) prolong() {
	t.lock.Rem, t.eff.Lease, t.eff.Wrote = t.cfg.Lease, t.cfg.Lease, true
}

// settle passes on a lease that has ended. Without a line its key is gone by then, or there for its
// token.
func (t *turn) settle() {
	if t.lock.Rem <= 0 && t.lock.waiters() > 0 {
		t.passOn()
	}
}

// passOn gives the lock to the first in line that can be reached, or frees it. A server that may
// grant nothing leaves it ended, with its line, which lives on as if the lease had ended just now.
func (t *turn) passOn() {
	l := &t.lock
	if t.env.Young && l.waiters() > 0 && t.cfg.Flaw != GuardedRepeats {
		l.Rem = 0
		return
	}
	for n := l.waiters(); n > 0; n-- {
		w := l.Line[0]
		l.remove(0)
		if t.reachable(w) {
			t.give(w.Owner)
			return
		}
	}
	t.eff.Lease, t.eff.Told = 0, 0
	if !t.ahead() || t.cfg.Flaw == ForgetAhead {
		*l = Lock{}
		return
	}
	l.Rem, l.Holds, l.Age = 0, 0, 0
}

// ahead reports whether the key must stay for its token: neither the clock nor this server's memory will
// be above it.
func (t *turn) ahead() bool { return t.lock.Fence > t.env.Now && t.lock.Fence > t.env.Last }

// give hands the lock over, provisionally.
func (t *turn) give(o Owner) {
	l := &t.lock
	l.Owner, l.Rem, l.Age, l.Holds = o, min(t.cfg.Lease, t.cfg.Provisional), 0, 0
	if t.cfg.Flaw == EndlessProvision {
		l.Rem++ // and age stops there
	}
	l.Fence = t.token(l.Fence)
	t.eff.Lease, t.eff.Granted, t.eff.Told = l.Rem, l.Fence, 0
	if o != t.caller && !t.polls(o) {
		t.eff.Told = o
	}
}

// reachable reports whether a waiter would learn that the lock is its own.
func (t *turn) reachable(w Waiter) bool {
	switch {
	case w.Owner == t.caller:
		return true
	case t.polls(w.Owner):
		return int8(w.Age) <= t.cfg.Silence
	}
	return t.env.Heard>>w.Owner.client()&1 != 0
}

func (t *turn) polls(o Owner) bool { return t.env.Pollers>>o.client()&1 != 0 }

// queue puts the caller into the line, or keeps it there, and returns its position.
func (t *turn) queue(o Owner) int {
	l := &t.lock
	if i := l.find(o); i >= 0 {
		l.Line[i].Age = 0
		t.eff.Wrote = true
		return i + 1
	}
	t.sweep()
	n := l.waiters()
	l.Line[n] = Waiter{Owner: o}
	return n + 1
}

// sweep drops those of the first three that are gone, behind a lock that has been held for long.
func (t *turn) sweep() {
	l := &t.lock
	if int8(l.Age) <= t.cfg.Silence {
		return
	}
	for i, places := 0, 0; places < 3 && i < l.waiters(); places++ {
		if w := l.Line[i]; int8(w.Age) > t.cfg.Silence && !t.reachable(w) {
			l.remove(i)
		} else {
			i++
		}
	}
}

// expire sets when the key goes.
func (t *turn) expire() {
	l := &t.lock
	switch {
	case l.Owner == 0:
		*l = Lock{}
	case t.cfg.Flaw == NoExpiry && t.eff.Granted != 0:
		l.Exp = forever
	case l.Exp == forever && t.cfg.Flaw == NoExpiry:
	case l.waiters() > 0:
		l.Exp = l.Rem + t.cfg.Line
	case l.Rem > 0:
		l.Exp = l.Rem
	default: // for its token: a tick is longer than that can be ahead
		l.Exp = 1
	}
	if l.Owner != 0 && l.Exp <= 0 {
		*l = Lock{}
	}
}

// token is the next fencing token: above all that this server remembers, and above the lock's own.
func (t *turn) token(above Token) Token {
	if !t.cfg.Coarse {
		t.env.Now++ // each grant has a microsecond of its own
	}
	if t.cfg.Flaw == NoMemory {
		return t.env.Now
	}
	t.env.Last = max(t.env.Now, t.env.Last+1)
	return max(t.env.Last, above+1) // a key moves no memory
}

func (t *turn) yours() Reply { return Reply{Yes: true, Fence: t.lock.Fence} }

func (t *turn) busy() Reply {
	l := &t.lock
	if l.Rem <= 0 {
		return Reply{Waiters: l.waiters()}
	}
	return Reply{Holder: l.Owner, Rem: l.Rem, Waiters: l.waiters(), Fence: l.Fence}
}

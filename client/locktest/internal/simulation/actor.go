// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/client"
)

// actor is a goroutine of a process that takes locks.
type actor struct {
	run  *run
	slot *slot
	who  string
	rng  *rand.Rand
	ease time.Time // from then on it works at leisure; zero: never
}

// between returns a duration from least to most, each order of magnitude as likely as the others.
// It is never round, so that few events share an instant.
func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	x := math.Exp(math.Log(float64(least)) + rng.Float64()*(math.Log(float64(most))-math.Log(float64(least))))
	return time.Duration(x)
}

func (a *actor) chance(percent int) bool { return a.rng.IntN(100) < percent }

// work takes locks until ctx ends.
func (a *actor) work(ctx context.Context) {
	for ctx.Err() == nil {
		p := a.slot.alive()
		if p == nil {
			pause(ctx, between(a.rng, 50*time.Millisecond, time.Second))
			continue
		}
		a.turn(ctx, p)
		least := 20 * time.Microsecond
		if !a.ease.IsZero() && time.Now().After(a.ease) {
			least = 300 * time.Millisecond
		}
		pause(ctx, between(a.rng, least, 3*time.Second))
	}
}

// turn is one use of the client.
func (a *actor) turn(ctx context.Context, p *process) {
	name := a.run.names[a.rng.IntN(len(a.run.names))]
	t := &turn{actor: a, process: p, name: name, ctx: ctx}
	deed := draw(a.rng, deeds, a.run.profile.deeds, false)
	if a.run.seen.locks[name].every > 0 && deed.name != "look" && deed.name != "break" {
		t.value()
		return
	}
	deed.do(t)
}

// turn is one use of one lock by an actor.
type turn struct {
	*actor
	process *process
	name    string
	ctx     context.Context
	set     set
}

var deeds = []odds[*turn]{
	{"acquire", 52, func(t *turn) { t.use(t.take(false)) }},
	{"try", 12, func(t *turn) { t.use(t.take(true)) }},
	{"do", 8, (*turn).do},
	{"share", 8, (*turn).share},
	{"all", 4, (*turn).all},
	{"stranger", 2, (*turn).stranger},
	{"plain", 4, (*turn).plain},
	{"look", 5, (*turn).look},
	{"break", 2, (*turn).breakLock},
	{"end", 1, (*turn).endOwner},
	{"outrun", 2, (*turn).outrun},
}

// call begins a call that ctx bounds.
func (t *turn) call(verb string, b *bounded) *call {
	return &call{process: t.process, who: t.who, name: t.name, verb: verb, began: time.Now(), ends: b.ends, short: t.set.short}
}

// bound is a context for a call.
func (t *turn) bound(least, most time.Duration) *bounded {
	return within(t.ctx, between(t.rng, least, most), t.chance(50))
}

// take acquires the lock with options at random.
func (t *turn) take(try bool) *holder {
	t.set = t.options(try)
	b := t.bound(5*time.Millisecond, time.Minute)
	if t.chance(3) {
		b.cancel()
		b.ends = time.Now()
	}
	return t.acquire(b, try, t.set.options...)
}

// acquire notes the call and what came of it.
func (t *turn) acquire(b *bounded, try bool, opts ...client.Option) *holder {
	c := t.call(map[bool]string{true: "try", false: "acquire"}[try], b)
	c.try = try && !t.set.joins
	c.joins = t.set.joins
	if t.set.polls {
		c.verb = "poll"
	}
	if !try {
		c.within(t.set.maxWait)
	}
	o := t.run.seen
	w := &want{process: t.process, who: t.who, line: !try && !t.set.polls, shared: t.set.owner != "", limit: t.set.limit}
	o.want(t.name, w)
	opts = append(opts, client.WithLockContext(context.Background()))
	var l *client.Lock
	var err error
	if try {
		l, err = t.process.c.TryAcquire(b, t.name, opts...)
	} else {
		l, err = t.process.c.Acquire(b, t.name, opts...)
	}
	o.done(c, err)
	var h *holder
	if err == nil {
		h = t.entered(l, c.began)
	}
	o.unwant(t.name, w)
	b.cancel()
	return h
}

func (t *turn) entered(l *client.Lock, began time.Time) *holder {
	h := &holder{process: t.process, who: t.who, name: t.name, owner: l.Owner(), fence: l.Fence(), shared: t.set.owner != "", began: began, lock: l,
		limit: t.set.limit, slot: l.Slot(), grace: t.set.grace}
	t.keeps(h)
	t.run.seen.enter(h)
	return h
}

// keeps notes for how long the server keeps the lock of a holder that enters now.
func (t *turn) keeps(h *holder) {
	if t.set.minHold > 0 {
		h.minHold, h.least = time.Now().Add(t.set.minHold), h.began.Add(t.set.minHold)
	}
}

// use works under the lock and releases it.
func (t *turn) use(h *holder) {
	if h == nil {
		return
	}
	d := between(t.rng, time.Microsecond, t.longest())
	if t.run.profile.long && t.chance(30) {
		d = between(t.rng, t.run.profile.lease/2, 2*time.Minute)
	}
	t.hold(h, d)
	if t.chance(6) && t.set.owner == "" {
		t.cross(h)
	}
	t.release(h)
}

// longest is how long a lock is held at the most.
func (t *turn) longest() time.Duration {
	switch t.rng.IntN(10) {
	case 0:
		return 2 * time.Minute
	case 1, 2:
		return 10 * time.Second
	}
	return 300 * time.Millisecond
}

// hold works for d, or until the lock's context ends.
func (t *turn) hold(h *holder, d time.Duration) {
	o, part := t.run.seen, d/2
	alone := t.set.owner == "" && t.set.limit == 0
	version, ok := 0, false
	if alone {
		version, ok = o.read(h)
	}
	t.workFor(h, part)
	if t.chance(12) {
		t.renew(h)
	}
	if t.chance(10) && t.set.owner == "" && !ok {
		t.reenter(h)
	}
	t.workFor(h, d-part)
	if alone && ok {
		o.write(h, version)
	}
	if t.chance(10) {
		o.checkDeadline(o.locks[h.name], h)
	}
}

func (t *turn) workFor(h *holder, d time.Duration) {
	ctx, cancel := context.WithCancel(h.lock.Context())
	defer context.AfterFunc(t.ctx, cancel)()
	defer cancel()
	pause(ctx, d)
}

func (t *turn) renew(h *holder) {
	b := t.bound(time.Millisecond, 10*time.Second)
	defer b.cancel()
	c := t.call("renew", b)
	c.local = true
	d := time.Duration(0)
	if t.chance(60) {
		d = t.run.covered([]time.Duration{10, 50, 300, 1000, 5000, 20000}[t.rng.IntN(6)] * time.Millisecond)
	}
	err := h.lock.RenewFor(b, d)
	t.run.seen.done(c, err)
	t.run.seen.checkDeadline(t.run.seen.locks[h.name], h)
}

// release gives the lock back, and looks at what it is told.
func (t *turn) release(h *holder) {
	o := t.run.seen
	alive := h.alive()
	over := h.over() && errors.Is(context.Cause(h.lock.Context()), client.ErrLost) // not by its caller
	if remaining := h.lock.Remaining(); over && remaining != 0 {
		o.breaks(h.name, 2, "Remaining of %s is %v, and its context has ended", h.who, remaining)
	}
	o.tell(h.name, h.who, "releases %s (alive: %v)", h.owner, alive)
	b := within(context.Background(), between(t.rng, 20*time.Millisecond, 40*time.Second), t.chance(50))
	if t.chance(5) {
		b.cancel()
		b.ends = time.Now()
	}
	defer b.cancel()
	c := t.call("release", b)
	c.local = true
	err := h.lock.Release(b)
	o.done(c, err)
	o.released(h)
	if err == nil && !h.shared {
		o.checkRelease(h, c.began)
	}
}

// owner of the caller's choice, that several processes use.
func (t *turn) owner() string { return "own-" + t.name + "-" + strconv.Itoa(t.rng.IntN(2)) }

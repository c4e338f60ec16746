// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/oracle"
	"github.com/redis/rueidis"
)

// set is the options of a turn.
type set struct {
	options []client.Option
	owner   string
	maxWait time.Duration
	minHold time.Duration
	grace   time.Duration
	short   bool // the lease is not much longer than a round trip
	polls   bool
	joins   bool
	limit   int // how many may have it beside one another, or oracle.Sharing; 0: nobody may
}

// kind is the option of a limit.
func (s set) kind() []client.Option {
	switch s.limit {
	case 0:
		return nil
	case oracle.Sharing:
		return []client.Option{client.WithShared()}
	}
	return []client.Option{client.WithLimit(s.limit)}
}

// limit chooses one, for a lock that is for crowds.
func (t *turn) limit() int {
	if !t.run.seen.locks[t.name].crowd || t.chance(20) {
		return 0
	}
	return []int{1, 2, 2, 3, oracle.Sharing, oracle.Sharing}[t.rng.IntN(6)]
}

var leases = []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, 120 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second,
	10 * time.Second, 30 * time.Second}

// options chooses them at random.
func (t *turn) options(try bool) set {
	s, lease := set{}, t.run.lasting(leases[t.rng.IntN(len(leases))])
	if t.chance(40) {
		lease = 30 * time.Second // what a local pass needs: equal terms
	}
	if l := t.run.profile.lease; l > 0 && t.chance(70) {
		lease = l
	}
	lease = t.run.covered(lease)
	s.short = lease < 100*time.Millisecond || lease < 40*t.run.latency
	s.limit = t.limit()
	s.options = append(s.kind(), client.WithLease(lease))
	s.grace = lease / 3
	if t.chance(30) {
		return s
	}
	if t.chance(8) {
		s.options = append(s.options, client.WithoutRenewal())
	}
	if t.chance(8) {
		s.grace = between(t.rng, time.Millisecond, 2*time.Second)
		s.options = append(s.options, client.WithMaxHold(between(t.rng, time.Millisecond, 5*time.Second), s.grace))
	}
	if t.chance(6) {
		s.options = append(s.options, client.WithMaxRenewals(1+t.rng.IntN(3)))
	}
	if t.chance(6) {
		s.minHold = between(t.rng, time.Millisecond, 3*time.Second)
		s.options = append(s.options, client.WithMinHold(s.minHold))
	}
	if try {
		if t.chance(30) {
			s.options = append(s.options, client.WithFreshAnswer())
		}
		return s
	}
	t.waiting(&s)
	return s
}

func (t *turn) waiting(s *set) {
	if t.chance(25) {
		s.maxWait = between(t.rng, time.Millisecond, 20*time.Second)
		s.options = append(s.options, client.WithMaxWait(s.maxWait))
		if t.chance(30) {
			s.options = append(s.options, client.WithGiveUpEarly())
		}
	}
	if t.chance(6) {
		s.polls = true
		s.options = append(s.options, client.WithPolling(1+t.rng.IntN(8), between(t.rng, 5*time.Millisecond, time.Second)))
	}
}

// do is the work in one call.
func (t *turn) do() {
	t.set = t.options(false)
	b := t.bound(20*time.Millisecond, time.Minute)
	defer b.cancel()
	o := t.run.seen
	w := &want{process: t.process, who: t.who, line: !t.set.polls, limit: t.set.limit}
	o.want(t.name, w)
	var h *holder
	began := time.Now()
	c := t.call("do", b)
	c.ends = time.Now().Add(10 * time.Minute) // its work may take longer than its context
	err := t.process.c.Do(b, t.name, func(ctx context.Context) error {
		h = &holder{process: t.process, who: t.who, name: t.name, fence: client.Fence(ctx), limit: t.set.limit, began: began, done: ctx.Done()}
		t.keeps(h)
		o.enter(h)
		o.unwant(t.name, w)
		pause(ctx, between(t.rng, time.Microsecond, t.longest()))
		return nil
	}, t.set.options...)
	o.unwant(t.name, w)
	if h != nil {
		h.grace = t.set.grace
		o.released(h)
		c.local = true
	}
	o.done(c, err)
}

// share takes or joins the lock as an owner that other processes use too.
func (t *turn) share() {
	try := t.chance(40)
	t.set.owner = t.owner()
	lease := t.run.covered(t.run.lasting(leases[2+t.rng.IntN(len(leases)-2)]))
	t.set.short = lease < 40*t.run.latency
	b := t.bound(5*time.Millisecond, 20*time.Second)
	t.use(t.acquire(b, try, client.WithOwner(t.set.owner), client.WithLease(lease)))
}

// stranger tries to join the lock of another, who took it without an owner string of its choice.
func (t *turn) stranger() {
	o := t.run.seen
	var owner string
	o.locked(func() {
		owner = o.locks[t.name].owner
		o.locks[t.name].lent(owner)
	})
	if owner == "" {
		return
	}
	t.set = set{owner: owner, joins: true}
	b := t.bound(5*time.Millisecond, 20*time.Second)
	t.use(t.acquire(b, true, client.WithOwner(owner), client.WithLease(2*time.Second)))
}

// outrun releases about when the lease ends, without renewal.
func (t *turn) outrun() {
	lease := leases[t.rng.IntN(5)]
	t.set.short, t.set.limit = true, t.limit()
	h := t.acquire(t.bound(5*time.Millisecond, 20*time.Second), t.chance(30), append(t.set.kind(), client.WithLease(lease), client.WithoutRenewal())...)
	if h == nil {
		return
	}
	end := lease - lease/100 - 2*time.Millisecond + time.Duration(t.rng.IntN(2_000_000)-1_000_000)
	time.Sleep(max(0, end-time.Since(h.began)))
	if t.chance(70) {
		t.renew(h)
		t.workFor(h, time.Duration(t.rng.IntN(30))*lease/10)
	}
	t.release(h)
}

// plain waits by FCALL, as other languages do: without a channel it polls.
func (t *turn) plain() {
	owner := fmt.Sprintf("raw-%s-%s-%d", t.process.label, t.who, t.rng.IntN(1_000_000))
	key, ttl := prefix+t.name, 500+t.rng.IntN(3000)
	h := &holder{process: t.process, who: t.who, name: t.name, owner: owner, began: time.Now(), limit: t.limit()}
	words := []string{owner, strconv.Itoa(ttl)}
	switch h.limit {
	case 0:
	case oracle.Sharing:
		words = append(words, functions.OptShared)
	default:
		words = append(words, functions.OptLimit, strconv.Itoa(h.limit))
	}
	o := t.run.seen
	for range 1 + t.rng.IntN(12) {
		sent := time.Now()
		reply, err := t.fcall(functions.Wait, key, words...)
		list, _ := reply.AsIntSlice()
		if err == nil && reply.IsInt64() {
			h.fence, _ = reply.AsInt64()
			list = []int64{1}
		} else if len(list) == 3 {
			h.fence, h.slot = list[1], int(list[2])
		}
		if len(list) > 0 && list[0] == 1 {
			h.raw = sent.Add(time.Duration(ttl)*time.Millisecond*98/100 - 3*time.Millisecond)
			if h.alive() {
				o.enter(h)
				pause(t.ctx, min(between(t.rng, time.Millisecond, time.Second), time.Until(h.raw)))
			}
			o.released(h)
			_, _ = t.fcall(functions.Release, key, owner)
			return
		}
		if !pause(t.ctx, between(t.rng, 20*time.Millisecond, 900*time.Millisecond)) {
			break
		}
	}
	_, _ = t.fcall(functions.Leave, key, owner)
}

func (t *turn) fcall(function, key string, args ...string) (rueidis.RedisMessage, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	r := t.process.c.Redis()
	return r.Do(ctx, r.B().Fcall().Function(function).Numkeys(1).Key(key).Arg(args...).Build()).ToMessage()
}

// look asks how the lock stands.
func (t *turn) look() {
	b := t.bound(time.Millisecond, 5*time.Second)
	defer b.cancel()
	c := t.call("inspect", b)
	var err error
	if t.chance(50) {
		_, err = t.process.c.Inspect(b, t.name)
	} else {
		_, err = t.process.c.InspectCached(b, t.name)
	}
	t.run.seen.done(c, err)
	if errors.Is(err, client.ErrBusy) {
		t.run.seen.breaks(t.name, 7, "Inspect says busy: %v", err)
	}
}

func (t *turn) breakLock() {
	b := t.bound(time.Millisecond, 5*time.Second)
	defer b.cancel()
	if t.run.kind != onQuorum && t.chance(50) { // of one
		_, _ = t.fcall(functions.Break, prefix+t.name, functions.OptOwner, t.run.seen.somebody(t.name))
		return
	}
	c := t.call("break", b)
	_, err := t.process.c.Break(b, t.name, "the schedule")
	t.run.seen.done(c, err)
}

// endOwner ends all holds of an owner that several processes use.
func (t *turn) endOwner() {
	b := t.bound(time.Millisecond, 5*time.Second)
	defer b.cancel()
	owner := t.owner()
	if t.run.kind == onQuorum { // it has no such owners
		return
	}
	c := t.call("release-owner", b)
	c.local = true
	err := t.process.c.ReleaseOwner(b, t.name, owner)
	t.run.seen.done(c, err)
}

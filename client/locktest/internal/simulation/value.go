// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/client"
	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// made is a value that a fn of OnceValue returned.
type made struct {
	holder *holder
	ended  time.Time // when fn returned it
	at     time.Time // when the server got it; zero: it has not
	until  time.Time // when the server does not keep it any more
	failed bool      // its OnceValue returned an error
}

const (
	leastKeep = 2 * time.Second       // so long a value is kept after its fn
	tick      = 10 * time.Millisecond // by so much may times differ that the client and the observer take
)

// good is until when a value may be given to others.
func (m *made) good(every time.Duration) time.Time {
	return latest(m.holder.entered.Add(every), m.ended.Add(leastKeep)).Add(max(0, m.at.Sub(m.ended)) + tick)
}

var errFailed = errors.New("the fn failed")

// value gets the value of a name, or makes it.
func (t *turn) value() {
	o, l := t.run.seen, t.run.seen.locks[t.name]
	t.set = t.options(true)
	b := t.bound(5*time.Millisecond, time.Minute)
	c := t.call("value", b)
	if t.chance(25) {
		t.set.maxWait = between(t.rng, time.Millisecond, 20*time.Second)
		c.within(t.set.maxWait)
	}
	opts := append(t.set.options, client.WithMaxWait(t.set.maxWait))
	d := between(t.rng, time.Microsecond, []time.Duration{t.longest(), l.every / 2, 2 * l.every, 40 * time.Second}[t.rng.IntN(4)])
	how := t.rng.IntN(20)
	deaf := how == 3 || how == 4 // it does not look at its context
	w := &want{process: t.process, who: t.who, line: true, valued: true}
	o.want(t.name, w)
	var m *made
	var value []byte
	err, own := errFailed, errFailed // of a panic, and of Goexit
	fn := func(ctx context.Context) ([]byte, error) {
		c.ends = b.ends
		h := &holder{process: t.process, who: t.who, name: t.name, fence: client.Fence(ctx), began: c.began, done: ctx.Done(), grace: t.set.grace}
		o.enter(h)
		o.unwant(t.name, w)
		m = o.makes(l, h)
		if deaf {
			has := &want{process: t.process, partly: true}
			o.want(t.name, has)
			defer o.unwant(t.name, has)
			ctx = context.WithoutCancel(ctx)
		}
		if done := pause(ctx, d); !done && how < 10 {
			own = ctx.Err()
			return nil, own
		}
		switch text := o.returns(l, m); how {
		case 0, 10:
			return text, errFailed
		case 1:
			panic(errFailed)
		case 2:
			runtime.Goexit()
			return nil, nil
		default:
			own = nil
			return text, nil
		}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		defer func() {
			if r := recover(); r != nil && r != errFailed {
				panic(r)
			}
		}()
		value, err = t.process.c.OnceValue(b, t.name, l.every, fn, opts...)
	}()
	<-over
	o.unwant(t.name, w)
	b.cancel()
	if m == nil {
		own = nil
	} else {
		o.released(m.holder)
		o.locked(func() { m.failed = err != nil })
	}
	if own != nil && !errors.Is(err, own) {
		o.breaks(t.name, 7, "the fn of %s returned %v, and OnceValue %v", t.who, own, err)
	} else if own == nil && (m == nil || !deaf) {
		o.done(c, err)
	}
	if err == nil {
		o.got(l, c, m, string(value), t.set.short)
	}
}

// makes notes that a fn begins, and looks whether the interval of the one before is over.
func (o *observer) makes(l *lock, h *holder) *made {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report.Count(Checks, "11 interval", 1)
	if g := l.good; g != nil && h.entered.Before(g.until.Add(-tick)) {
		o.unless(cmp.Or(o.lost(l, g.holder), o.lost(l, h)), l.name, 11, "%s makes a value %v before the one of %s is over", h.who,
			g.until.Sub(h.entered), g.holder.who)
	}
	return &made{holder: h}
}

// returns notes that a fn returns, and makes its value.
func (o *observer) returns(l *lock, m *made) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := fmt.Sprintf("%s %d", l.name, len(l.values))
	m.ended, l.values[text] = time.Now(), m
	return []byte(text)
}

// finished notes that the server has a value, and looks for how long it keeps that. o.mu is held.
func (o *observer) finished(l *lock, c redis.Call) {
	m, now := l.values[c.Args[1]], time.Now()
	if m != nil && o.stale[c.Node] { // a deposed primary keeps it for those who ask there
		m.at = now
	}
	if m == nil || o.stale[c.Node] || l.owner != c.Args[0] { // or it is a repeat
		return
	}
	ms, _ := strconv.Atoi(c.Args[2])
	m.at, m.until, l.good = now, o.local(c.Node, int64(ms)+c.NowUS/1000, c.NowUS), m
	o.report.Count(Checks, "11 kept", 1)
	if early := m.holder.entered.Add(l.every - tick).Sub(now.Add(time.Duration(ms) * time.Millisecond)); early > 0 {
		o.broken(l.name, 11, "the value of %s is kept until %v before its interval is over", m.holder.who, early)
	}
	if late := now.Add(time.Duration(ms) * time.Millisecond).Sub(m.good(l.every)); late > 0 {
		o.broken(l.name, 11, "the value of %s is kept for %v too long", m.holder.who, late)
	}
}

// got looks at what a call got, that made m if that is not nil.
func (o *observer) got(l *lock, c *call, m *made, value string, short bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.report.Count(Checks, "11 value", 1)
	from := l.values[value]
	if from == nil || m != nil && from != m {
		o.broken(l.name, 11, "%s gets %q, which was not made for it", c.who, value)
		return
	}
	if m != nil {
		since, calm := o.calm()
		if calm && since.Add(recovery).Before(m.holder.began) && time.Now().Before(c.ends) && !short && m.at.IsZero() {
			o.broken(l.name, 11, "the server does not have the value of %s", c.who)
		}
		return
	}
	o.report.Count(Checks, "11 another's", 1)
	if from.failed && from.at.IsZero() {
		o.broken(l.name, 11, "%s gets the value of %s, whose call failed", c.who, from.holder.who)
	}
	if late := c.began.Sub(from.good(l.every)); late > 0 {
		why := oracle.None
		if o.skewed { // a clock that was set back keeps it for longer
			why = oracle.Back
		}
		o.unless(why, l.name, 11, "%s gets the value of %s, which was over for %v", c.who, from.holder.who, late)
	}
}

// auditValue looks for those who wait although there is a value.
func (o *observer) auditValue(l *lock, now, from time.Time) {
	g := l.good
	if g == nil || !now.Before(g.until) || o.lost(l, g.holder) != oracle.None {
		return
	}
	for w := range l.wants {
		if l.believedBy(w.process) {
			w.asks = now // from now on, at the earliest
		}
		if !w.valued || w.process.isDead() {
			continue
		}
		o.report.Count(Checks, "11 waits", 1)
		if waited := now.Sub(latest(w.began, from, g.at, w.asks)); waited > waitersAsk+repeats+tick+8*o.latency {
			o.broken(l.name, 11, "%s waits, and there is a value for %v", w.who, waited)
			w.valued = false // once
		}
	}
}

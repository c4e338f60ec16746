// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/functions"
	"github.com/holdfast-go/holdfast/integration/oracle"
)

// rawWorker calls the functions as functions/README.md says, and knows nothing else.
type rawWorker struct {
	*worker
	redis rueidis.Client
	level oracle.Level
}

// startRaw connects all workers by one client.
func startRaw(j *job, workers []*worker) (func(), error) {
	o := j.option(j.Addrs...)
	o.DisableCache = true
	c, err := rueidis.NewClient(o)
	if err != nil {
		return nil, err
	}
	for i, w := range workers {
		r := &rawWorker{w, c, j.Level}
		if j.replicated(i) {
			r.level = oracle.Replicas
		}
		w.turn = r.take
	}
	return c.Close, nil
}

// answer is the reply of a function: yes or no, and the number behind it.
type answer struct {
	yes    bool
	number int64 // the token, or how long the other one's lease lasts
	hears  int64 // of a wait that was refused: how many hear its channel
	slot   int64 // of a limited or a shared lock
}

// patience is how long a raw caller waits for an answer.
const patience = time.Second

func (r *rawWorker) ask(function, key string, args ...string) (a answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	command := r.redis.B().Arbitrary("FCALL", function, "1").Keys(key).Args(args...).Build()
	if r.level == oracle.Replicas && function != functions.Release && function != functions.Leave {
		return r.replicated(ctx, command)
	}
	return read(r.redis.Do(ctx, command), function)
}

// read makes an answer of the reply of a function: a token, or a list whose first integer is 0 for a refusal
// and for nothing else.
func read(reply rueidis.RedisResult, function string) (a answer, err error) {
	m, err := reply.ToMessage()
	if err != nil {
		return a, err
	}
	list := []rueidis.RedisMessage{m, m}
	if !m.IsInt64() {
		list, err = m.ToArray()
	}
	if err == nil && len(list) < 2 {
		err = errors.New(function + " replied too little")
	}
	if err != nil {
		return a, err
	}
	first, err := list[0].AsInt64()
	if a.yes = first != 0; err == nil {
		a.number, err = list[1].AsInt64()
	}
	if err == nil && a.yes && len(list) > 2 {
		a.slot, err = list[2].AsInt64()
	}
	if err == nil && len(list) > 7 {
		a.hears, err = list[7].AsInt64()
	}
	return a, err
}

// rawOutcome is what a raw caller makes of an error: the server's words, or that there are none.
func rawOutcome(err error) string {
	refused, ok := rueidis.IsRedisErr(err)
	switch {
	case ok:
		return "refused: " + refused.Error()
	case errors.Is(err, errTooFew):
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer"
	}
	return "connection lost"
}

// rawLock is one acquisition of a raw caller.
type rawLock struct {
	*rawWorker
	name, key, owner string
	limit            int
	slot             int64
	lease            time.Duration
	token            int64
	until            stamp // by this caller's clock
}

// guarded are the arguments of a call that wants the lock: with the limit and the guard behind them, if
// there is one.
func (l *rawLock) guarded(args ...string) []string {
	switch l.limit {
	case 0:
	case oracle.Sharing:
		args = append(args, functions.OptShared)
	default:
		args = append(args, functions.OptLimit, strconv.Itoa(l.limit))
	}
	if l.Guard == 0 {
		return args
	}
	return append(args, functions.OptGuard, strconv.FormatInt(l.Guard.Milliseconds(), 10))
}

func (l *rawLock) ttl() string { return strconv.FormatInt(l.lease.Milliseconds(), 10) }

// granted counts the lease from before the call was sent, less what the clocks may differ in.
func (l *rawLock) granted(sent stamp, a answer) {
	l.token, l.slot, l.until = a.number, cmp.Or(a.slot, l.slot), sent.Add(l.lease-l.lease/100-2*time.Millisecond)
	if l.Defect == defectOverstay {
		l.until = sent.Add(3 * l.lease)
	}
}

// take wants a lock, holds it, and gives it back.
func (r *rawWorker) take(name string, got func()) {
	l := &rawLock{rawWorker: r, name: name, key: prefix + name,
		owner: fmt.Sprintf("raw-%016x%016x", r.random.Uint64(), r.random.Uint64()),
		lease: time.Second + time.Duration(r.random.IntN(2000))*time.Millisecond}
	l.limit = r.limit(name)
	verb, ask, limit := "try", l.try, 200*time.Millisecond+r.some(8*time.Second)
	if r.isCalm() {
		limit = 30 * time.Second
	}
	if r.isCalm() || r.chance(0.6) {
		verb, ask = "wait", func() string { return l.wait(limit) }
	}
	id, start := l.does(verb, ask)
	if l.token == 0 {
		r.rest(r.some(40 * time.Millisecond))
		return
	}
	l.work(id, start, got)
}

// does makes a call, which no limit is known of.
func (l *rawLock) does(verb string, f func() string) (id int64, start stamp) {
	return l.called(call{Call: verb, Lock: l.name, Level: l.level}, func() (string, int64) { return f(), l.token })
}

// try asks once, and once more with the same owner if there is no answer.
func (l *rawLock) try() string {
	var err error
	for range 2 {
		var a answer
		sent := now()
		switch a, err = l.ask(functions.Acquire, l.key, l.guarded(l.owner, l.ttl())...); {
		case err == nil && a.yes:
			l.granted(sent, a)
			return "ok"
		case err == nil:
			return "busy"
		}
	}
	l.undo(functions.Release)
	return rawOutcome(err)
}

// wait stands in line, with a subscription or without one, and leaves it when the time is over.
func (l *rawLock) wait(limit time.Duration) string {
	ctx, cancel := context.WithTimeout(l.stopping, limit)
	defer cancel()
	channel, granted, unsubscribe := l.subscribe(ctx)
	defer unsubscribe()
	for outcome := "timeout"; ; {
		sent := now()
		pause := 50 * time.Millisecond
		words := l.guarded(l.owner, l.ttl(), functions.OptMaxWait, "60000")
		if channel != "" {
			words = append(words, functions.OptChannel, channel)
		}
		a, err := l.ask(functions.Wait, l.key, words...)
		switch {
		case err != nil:
			outcome = rawOutcome(err)
		case a.yes:
			l.granted(sent, a)
			return "ok"
		default: // in line
			outcome = "timeout"
			pause = min(max(time.Duration(a.number)*time.Millisecond, 20*time.Millisecond), 1500*time.Millisecond)
			if channel == "" || a.hears == 0 {
				pause = min(pause, 20*time.Millisecond+l.some(time.Second))
			}
		}
		select {
		case <-ctx.Done():
			l.undo(functions.Leave)
			return outcome
		case <-granted: // asked for again, which confirms it
		case <-time.After(pause):
		}
	}
}

// subscribe makes a channel for a waiter, or none: then it polls. granted is told of each message.
func (l *rawLock) subscribe(ctx context.Context) (name string, granted <-chan struct{}, end func()) {
	if l.chance(0.5) {
		return "", nil, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	channel := "{" + l.key + "}:" + l.owner
	told, over := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(over)
		for ctx.Err() == nil { // subscribes again when the connection was lost
			_ = l.redis.Receive(ctx, l.redis.B().Ssubscribe().Channel(channel).Build(),
				func(m rueidis.PubSubMessage) {
					if !strings.Contains(m.Message, " "+l.owner+" ") {
						return
					}
					select {
					case told <- struct{}{}:
					default:
					}
				})
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return channel, told, func() {
		cancel()
		<-over
	}
}

// undo gives back what a call may have got whose answer is unknown. After some tries the lease ends
// it.
func (l *rawLock) undo(function string) {
	for range 3 {
		if _, err := l.ask(function, l.key, l.owner); err == nil {
			return
		}
	}
}

// work holds the lock and gives it back.
func (l *rawLock) work(id int64, start stamp, got func()) {
	view := l.view(id, start)
	if view.see() {
		got()
	}
	view.deposit(l.some(10 * time.Millisecond))
	switch x := l.random.Float64(); {
	case (l.Defect == defectOverstay || l.Defect == defectUnheard) && x < 0.5:
		view.stay(2 * l.lease)
	case x < 0.2:
		l.renew(&view)
	case x < 0.25 && !l.isCalm():
		view.stay(l.some(l.lease))
		l.renew(&view)
		view.stay(l.some(l.lease))
	case x < 0.3 && !l.isCalm(): // late: the lease has ended, and a renewal must say so
		view.stay(l.lease)
		l.rest(l.lease/20 + l.some(300*time.Millisecond))
		l.renew(&view)
		view.stay(l.some(l.lease))
	}
	view.see()
	at, done := now(), false
	l.does("release", func() string {
		defer func() { at = now() }()
		for range 3 {
			a, err := l.ask(functions.Release, l.key, l.owner)
			if err != nil {
				continue
			}
			if l.chance(0.1) { // a repeat is safe
				_, _ = l.ask(functions.Release, l.key, l.owner)
			}
			if done = a.yes; done {
				return "ok"
			}
			return "lost"
		}
		return "unreachable"
	})
	view.leave(at, "release")
	if done && l.chance(0.2) {
		l.renewAfterwards()
	}
}

// renewAfterwards renews what was given back, as a message does that the network held up. Who is
// told 'yes' has it again.
func (l *rawLock) renewAfterwards() {
	l.until = 0
	view := l.view(0, 0)
	view.over = now()
	if l.renew(&view); view.over == 0 {
		view.stay(10 * time.Millisecond)
		view.leave(now(), "renewed after its release")
	}
}

func (l *rawLock) view(id int64, start stamp) *look {
	v := l.look(id, start, l.name, l.level, l.owner, l.token, func() bool { return now() < l.until })
	v.hold.Limit, v.hold.Slot = l.limit, int(l.slot)
	return v
}

// renew starts the lease anew. A lease that this caller took for ended can still be good: then it
// is another hold, of the same acquisition.
func (l *rawLock) renew(view **look) {
	v := *view
	id, start := l.does("renew", func() string {
		sent := now()
		a, err := l.ask(functions.Renew, l.key, l.owner, l.ttl())
		switch {
		case err != nil:
			return rawOutcome(err) // the old lease counts
		case !a.yes:
			l.until = 0
			return "lost"
		}
		if v.see() && a.number != l.token {
			v.over = now()
		}
		l.granted(sent, a)
		return "ok"
	})
	if v.see() || now() >= l.until {
		return
	}
	v.leave(v.over, "renewed later")
	*view = l.view(id, start)
	(*view).see()
}

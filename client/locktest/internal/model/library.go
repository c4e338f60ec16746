// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/client/locktest/internal/redis"
	"github.com/holdfast-go/holdfast/functions"
)

// The server's side of a lock is the library itself, on the embedded Redis: each different call is made with
// it once, on a key that is made from the model's lock (concrete.go), and what it leaves is read back as one
// (image.go). A key that says the same to the model may be of any moment of a tick. So the call is made at
// the first and at the last one, and both must leave the same.

// Kind is which function is called.
type Kind uint8

// The kinds.
const (
	None Kind = iota
	Acquire
	Wait
	Renew
	Release
	Leave
	Break
)

func (k Kind) String() string {
	return [...]string{"none", "acquire", "wait", "renew", "release", "leave", "break"}[k]
}

// Request is a call of a function.
type Request struct {
	Kind  Kind
	Owner Owner
	Fence Token // of renew and leave; 0: it is not given
	Hold  uint8 // of a joinable lock, as a bit; 0: it is not given
}

// Env is what else a call depends on.
type Env struct {
	Heard   uint8 // a bit for each client whose channel has a subscriber
	Pollers uint8 // a bit for each client that waits without a channel
	Young   bool  // the memory is younger than the guard: nothing may be granted
	Now     Token // the server's time, as tokens count it
}

// Effect is what a call did.
type Effect struct {
	Lock    Lock
	Yes     bool
	Fence   Token // the caller's token; to a wait that said no, the holder's
	Told    Owner // a message of the grant went to this one's channel; 0: to nobody
	Granted Token // the token of a new holder; 0: there is none
	Now     Token
}

// edge is one call in one state.
type edge struct {
	lock                        Lock
	env                         Env
	request                     Request
	lease, provisional, silence int8 // of the Config
	guard                       int8 // 0: the lock is not guarded
}

// library is one on a server, with somebody who listens on each live channel.
type library struct {
	effects  map[edge]Effect
	world    *redis.World
	node     *redis.Node
	offset   time.Duration
	messages []string
}

// effects are those of each library that was explored, by its source.
var effects = map[string]map[edge]Effect{}

// The tokens of an edge: only their order matters.
const (
	heldToken Token = 1
	nowToken  Token = 2
)

// Do runs a call on a lock.
func (cfg *Config) Do(lock Lock, env Env, r Request) Effect {
	x := edge{lock, env, r, cfg.Lease, cfg.Provisional, cfg.Silence, 0}
	if cfg.Level == Guarded && cfg.Guard > 0 { // one that is shorter than the lease is a memory that seems older
		x.guard = max(cfg.Guard, cfg.Lease)
	}
	for i := range maxClients { // who is not there hears nothing
		if lock.find(ownerOf(i, 0)) < 0 && lock.find(ownerOf(i, 1)) < 0 && (r.Owner == 0 || r.Owner.client() != i) {
			x.env.Heard &^= 1 << i
			x.env.Pollers &^= 1 << i
		}
	}
	x.env.Now = nowToken
	if lock.Owner != 0 {
		x.lock.Fence = heldToken
	}
	if r.Fence != 0 {
		x.request.Fence = stale
		if r.Fence == lock.Fence {
			x.request.Fence = heldToken
		}
	}
	e, known := cfg.server.effects[x]
	if !known {
		e = cfg.server.run(&x)
		cfg.server.effects[x] = e
	}
	for _, t := range [...]*Token{&e.Lock.Fence, &e.Fence, &e.Granted, &e.Now} {
		switch {
		case *t == heldToken:
			*t = lock.Fence
		case *t >= nowToken:
			*t += env.Now - nowToken
		}
	}
	return e
}

// run makes a call at each moment that could make a difference.
func (l *library) run(x *edge) (e Effect) {
	for i, m := range x.moments() {
		got := l.play(x, m)
		if i > 0 && got != e {
			panic(fmt.Sprintf("model: %+v\nat one moment of a tick: %+v\nat another: %+v", *x, e, got))
		}
		e = got
	}
	return e
}

func (l *library) play(x *edge, m moment) (e Effect) {
	l.offset += 100*time.Second + 1001*time.Microsecond // all keys expire, and the time is above all tokens
	l.node.SetClock(l.offset, 0)
	c := concretize(x, l.node.Now().UnixMicro(), m)
	if x.guard > 0 {
		l.remember(c)
	}
	l.node.Do("DEL", key)
	if fields := c.key(); fields != nil {
		l.node.Do(append([]string{"HSET", key}, fields...)...)
		l.node.Do("PEXPIREAT", key, text(c.expires()))
	}
	l.messages = nil
	reply := l.node.Do(append([]string{"FCALL"}, c.arguments()...)...)
	// Who is told to look may ask, as anybody who waits may at any time.
	told := slices.DeleteFunc(slices.Clone(l.messages), func(m string) bool { return strings.Contains(m, " look ") })
	expires, _ := l.node.Do("PEXPIRETIME", key).(int64)
	e.Lock = c.lockOf(l.node.Hash(key), expires)
	e.Yes, e.Fence = c.answer(reply)
	e.Now = x.env.Now
	if n := &e.Lock; n.Rem > 0 && (n.Owner != x.lock.Owner || n.Fence != x.lock.Fence) {
		e.Granted, e.Now = n.Fence, max(e.Now, n.Fence) // each grant has a microsecond of its own
	}
	e.Told = c.told(l.node.Hash(key), told)
	return e
}

// told is who got a message: it must say what the key says.
func (c *concrete) told(fields map[string]string, messages []string) Owner {
	if len(messages) == 0 {
		return 0
	}
	name := fields["owner"]
	o := ownerOf(named(name))
	want := fmt.Sprintf("%s %s %s 1 %d %s %s", c.channel(o), fields["fence"], fields["until"], len(name), name, key)
	if len(messages) > 1 || messages[0] != want {
		c.fail("published %q, and not %q", messages, want)
	}
	return o
}

// remember gives the library a memory as old as the model says. It begins anew first, by a promotion. The
// youngest one begins with the call itself.
func (l *library) remember(c *concrete) {
	l.world.Promote(l.node)
	since := c.us - 1000*c.guardMS() // just old enough
	switch {
	case c.env.Young && !c.late:
		return
	case c.env.Young:
		since++ // a microsecond too young
	case c.late:
		since = 1
	}
	if memory, ok := l.node.Do("FCALL", functions.Memory, "0").([]any); ok {
		l.node.Do("FCALL", functions.Memory, "0", memory[0].(string), memory[1].(string), text(since))
	}
}

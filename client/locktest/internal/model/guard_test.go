package model

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/functions"
)

// The tie of guarded locks: the calls of guarded configurations, with guard_ms, by a server whose
// memory is as young or as old as the model says. A memory is told of an age by holdfast_memory.

// guardedEdges are the calls of guarded configurations. Guards are the lease or a tick longer.
var guardedEdges = recorded(configured(
	base("2 clients, guarded, promotion, clock stands still",
		clients(2), guarded(2), fails(Promotion), coarse, healthy, admit(Tokens), atMost(50_000)),
	base("2 clients, guarded, empty restart",
		clients(2), guarded(2), fails(Restart), atMost(50_000)),
	base("2 clients, guarded, promotion",
		clients(2), guarded(3), fails(Promotion), atMost(50_000)),
	base("2 clients, guarded, promotion, pollers, a break",
		clients(2), guarded(3), fails(Promotion), polling(2), breaks, healthy, atMost(50_000)),
	base("3 clients, guarded, promotion", guarded(2), fails(Promotion), healthy, atMost(50_000)),
	base("2 clients, guarded, promotion, a stray",
		clients(2), guarded(3), fails(Promotion), strays(1), healthy, atMost(50_000)),
))

// guardMS is the guard of the lock.
func (c *concrete) guardMS() int64 { return tickMS * int64(c.guard) }

// closed reports whether the call found that nobody may be granted the lock yet.
func (c *concrete) closed() bool {
	l := &c.effect.Lock
	return c.env.Young && (c.effect.Reply.Refused || l.waiters() > 0 && l.Rem <= 0)
}

// youth is for how many milliseconds the memory is too young: for as many as possible, or for one.
func (c *concrete) youth() int64 {
	if c.late {
		return 1
	}
	return c.guardMS()
}

// remember gives the library a memory as old as the model says. It begins anew first, by a
// promotion or, which takes long, now and then by a load of the library. The youngest one begins
// with the call itself.
func (s *server) remember(c *concrete) {
	if s.plays%256 == 1 {
		s.node.Do("FUNCTION", "LOAD", "REPLACE", s.source)
	} else {
		s.world.Promote(s.node)
	}
	since := c.us - 1000*c.guardMS() // just old enough
	switch {
	case c.env.Young && !c.late:
		return
	case c.env.Young:
		since++ // a microsecond too young
	case c.late:
		since = 1
	}
	if memory, ok := s.node.Do("FCALL", functions.Memory, "0").([]any); ok {
		s.node.Do("FCALL", functions.Memory, "0", memory[0].(string), memory[1].(string), text(since))
	}
}

// afterwards looks whether the call began the memory, and how long a lease of the lock may be.
func (s *server) afterwards(c *concrete) error {
	l := &c.effect.Lock
	// A call that finds the lock busy asks nothing of the memory, nor does a repeat.
	renewed := c.request.Kind == Renew && c.effect.Reply.Yes || c.request.Kind == Raise
	if c.env.Young && !c.late && (c.closed() || renewed) {
		s.node.SetClock(s.offset+time.Millisecond, 0)
		memory, _ := s.node.Do("FCALL", functions.Memory, "0").([]any)
		s.node.SetClock(s.offset, 0)
		if len(memory) != 3 || memory[2] != text(c.us) {
			return fmt.Errorf("the memory is %v, and began with the call", memory)
		}
	}
	if l.Owner == 0 || l.Rem <= 0 || !c.late { // once is enough
		return nil
	}
	// It keeps the longest lease that was asked for as its guard: nobody's call is refused for another's.
	got := s.node.Do("FCALL", functions.Renew, "1", tiedKey, ownerName(l.Owner), text(c.guardMS()+1))
	if got != any(c.token(l.Fence)) {
		return fmt.Errorf("a renewal for longer than the guard: %v", got)
	}
	if im, err := s.look(); err != nil || im.Guard != text(c.guardMS()+1) {
		return fmt.Errorf("a renewal for longer than the guard left %+v, %w", im, err)
	}
	return nil
}

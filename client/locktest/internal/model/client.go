// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/holdfast-go/holdfast/client/internal/queue"

// What is around a client's machines: its calls, its keeper, which renews and gives back, and its messages.
// What a client does is the machines' affair. It may miss an answer at any time, which stands for all lost
// messages, and nobody needs to want the lock any longer, which stands for all deadlines.

// send makes a call of the client's present acquisition.
func (cfg *Config) send(c *Client, k Kind) { c.Call = Call{Kind: k, Left: cfg.belief()} }

func (cfg *Config) belief() int8 {
	if cfg.Belief > 0 {
		return cfg.Belief
	}
	return cfg.Lease
}

// abandon stops waiting for an answer. What the server has not run yet, it may run later.
func (cfg *Config) abandon(s *State, c *Client) {
	call := c.Call
	c.Call = Call{}
	if call.Kind != None && call.Status == Pending {
		cfg.stray(s, c, Stray{Kind: call.Kind, Link: c.Link, Fence: c.argument(call.Kind)})
	}
}

func (cfg *Config) stray(s *State, c *Client, call Stray) {
	if call.Kind != None && c.Stray.Kind == None && s.Strayed < cfg.Strays {
		s.Strayed++
		c.Stray = call
	}
}

// argument is the token that a call names.
func (c *Client) argument(k Kind) Token {
	if k == Renew {
		return c.known.Has
	}
	return 0
}

// fresh gives the client's next acquisition an owner string of its own. It returns false if the model has
// no other name for one: then the last one but one must be forgotten first.
func (cfg *Config) fresh(s *State, i int) bool {
	c := &s.Clients[i]
	present, past := ownerOf(i, 0), ownerOf(i, 1)
	if cfg.Flaw == SharedOwner || !s.named(present) {
		return true
	}
	if s.named(past) {
		return false
	}
	names := identity
	names[present] = past
	s.renameOwners(&names)
	c.Stray.Past, c.Back.Past = bit8(c.Stray.Kind != None), bit8(c.Back.Kind != None)
	if c.Note.For != 0 {
		c.Note.For = 2
	}
	return true
}

var identity = func() (names [2*maxClients + 1]Owner) {
	for i := range names {
		names[i] = Owner(i)
	}
	return names
}()

// basis is what a machine may be granted by an event: the lease of it, and whether an operator broke it.
type basis struct{ Lease, Void uint8 }

// event is one for the client's queue machine, and does what that asks for. It returns false if the model
// cannot do that now.
func (cfg *Config) event(s *State, i int, e cue, heard Token, granted basis) bool {
	c := &s.Clients[i]
	acts, token := c.step(e, heard)
	for _, a := range acts {
		switch a.op {
		case queue.Acquire, queue.Wait, queue.Renew:
			if a.fresh && !cfg.fresh(s, i) {
				return false
			}
			cfg.send(c, map[queue.Op]Kind{queue.Acquire: Acquire, queue.Wait: Wait, queue.Renew: Renew}[a.op])
		case queue.Abandon:
			cfg.abandon(s, c)
		case queue.Undo:
			if !c.back(Leave, bit8(a.other), token(a.token)) {
				return false
			}
		case queue.Serve:
			c.Lease, c.Void = granted.Lease, granted.Void
		}
	}
	if !c.at().pauses {
		c.Timer = 0
	} else if c.Timer == 0 {
		c.Timer = 1
	}
	return true
}

// back gives back an owner's lock or place, in the background. What is under way of another one must be
// answered first.
func (c *Client) back(k Kind, past uint8, fence Token) bool {
	if c.Back.Kind != None && c.Back.Past != past {
		return false
	}
	c.Back = Stray{Kind: k, Past: past, Link: c.Link, Fence: fence}
	return true
}

// enter is one more that wants the lock.
func (cfg *Config) enter(s *State, i int, try, hot bool) bool {
	c := &s.Clients[i]
	if cfg.Progress {
		c.Rests = 1
	}
	return cfg.event(s, i, cue{kind: queue.Enter, try: try, hot: hot}, 0, basis{})
}

// room reports whether one more may want the lock. What was given back by a client with one goroutine must
// be answered first, or counts as a late call.
func (cfg *Config) room(s *State, c *Client) bool {
	l := c.at()
	wanted := l.waiting
	if l.state == queue.Held {
		wanted++
	}
	return c.Dead == 0 && c.Rests == 0 && wanted <= int(c.More) &&
		(c.Back.Kind == None || c.More > 0 || s.Strayed < cfg.Strays)
}

// hear takes the reply to a client's call: a renewal of what it has is the lease machine's.
func (cfg *Config) hear(s *State, i int) bool {
	c := &s.Clients[i]
	call, yes := c.Call, c.Call.Yes != 0
	c.Call = Call{}
	if cfg.Flaw == LateDeadline {
		call.Left = max(call.Left, cfg.Lease)
	}
	e := cue{kind: queue.No}
	switch {
	case c.Lease != 0 && yes:
		c.Lease, c.Void = renewed(c.Lease, call.Left), call.Void
		return true
	case c.Lease != 0:
		return cfg.lost(s, i)
	case yes:
		granted := basis{granted(cfg.belief(), call.Left), call.Void}
		e = cue{kind: queue.Yes, late: granted.Lease == 0,
			confirm: call.Kind == Wait && cfg.Level == Replicas && cfg.Flaw != NoConfirm}
		if call.Kind == Renew {
			call.Got = c.known.Has
		}
		return cfg.event(s, i, e, call.Got, granted)
	}
	return cfg.event(s, i, e, call.Got, basis{})
}

// miss is a call that has no answer, and may have been run, or be run yet.
func (cfg *Config) miss(s *State, i int) bool {
	c := &s.Clients[i]
	cfg.abandon(s, c)
	if c.Lease != 0 {
		c.Lease = failed(c.Lease)
		return true
	}
	done := cfg.event(s, i, cue{kind: queue.NoAnswer, unknown: true}, 0, basis{})
	if c.Timer == 1 && !cfg.Odd { // the pause is less than a tick
		return done && cfg.event(s, i, cue{kind: queue.Timer}, 0, basis{})
	}
	return done
}

// read takes a message of a grant.
func (cfg *Config) read(s *State, i int) bool {
	c := &s.Clients[i]
	n := c.Note
	c.Note = Note{}
	if cfg.Flaw == OldNotes && n.For == 1 && n.Fence <= c.known.Above { // it has been told otherwise
		c.known.Above, n.Void = 0, 0
	}
	granted := basis{handed(cfg.belief(), n.Left), n.Void}
	late := n.Left <= 0 || cfg.Level == Replicas && cfg.Flaw != NoConfirm
	return cfg.event(s, i, cue{kind: queue.Grant, other: n.For == 2, confirm: late}, n.Fence, granted)
}

// release gives back the lock, by a leave if nobody worked under it.
func (cfg *Config) release(s *State, i int, k Kind) bool {
	c := &s.Clients[i]
	fence := Token(0)
	if k == Leave {
		fence = c.known.Has
	}
	return c.back(k, 0, fence) && cfg.free(s, i, false)
}

// lost ends the work under a lock that is not the client's any more, and gives it back, in case that a
// server thinks otherwise.
func (cfg *Config) lost(s *State, i int) bool {
	s.Clients[i].back(Release, 0, 0)
	return cfg.free(s, i, true)
}

func (cfg *Config) free(s *State, i int, over bool) bool {
	c := &s.Clients[i]
	cfg.abandon(s, c)
	c.Lease, c.Void = 0, 0
	return cfg.event(s, i, cue{kind: queue.Release, over: over}, c.known.Has, basis{})
}

// tick lets a tick pass for a client.
func (cfg *Config) tick(s *State, i int) bool {
	c := &s.Clients[i]
	c.Call.Left, c.Note.Left = max(0, c.Call.Left-1), max(0, c.Note.Left-1)
	if c.Rests = 0; c.Timer == 1 {
		c.Timer = 2
	}
	if c.Lease == 0 {
		return true
	}
	if c.Lease = later(c.Lease); c.Lease == 0 { // its own deadline: the work ends
		return cfg.lost(s, i)
	}
	return true
}

// crash ends a client. Its connection stays open until the server notices.
func (cfg *Config) crash(s *State, c *Client) {
	cfg.abandon(s, c)
	cfg.stray(s, c, c.Back)
	*c = Client{Dead: 1, Deaf: c.Deaf, Polls: c.Polls, Link: c.Link, Stray: c.Stray}
}

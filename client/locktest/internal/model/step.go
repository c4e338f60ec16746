// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/holdfast-go/holdfast/client/internal/queue"

// may reports whether a move is possible, as far as that shows without making it.
func (cfg *Config) may(s *State, a Action) bool {
	c := &s.Clients[a.Client]
	calls := c.Call.Kind != None
	state := c.at().state
	switch a.Move {
	case Run:
		return calls && c.Call.Status == Pending
	case RunBack, RunBackLost:
		return c.Back.Kind != None
	case RunStray, LoseStray:
		return c.Stray.Kind != None
	case Hear:
		return calls && c.Call.Status == Answered
	case Missed:
		return c.Call.Status == Gone
	case Again:
		return calls && c.Call.Status != Gone && !cfg.Sure
	case Read, LoseNote:
		return c.Note.For != 0
	case Ask:
		return c.Timer == 2
	case Resub:
		return c.Deaf == 1 && c.Polls == 0 && c.Dead == 0
	case Unsub:
		return cfg.Drops && c.Deaf == 0 && c.Polls == 0 && state == queue.Standing
	case Notice:
		return c.Dead == 1 && c.Deaf == 0 && c.Polls == 0
	case Learn:
		return c.Link == 1 && c.Dead == 0
	case GiveBack:
		return c.Lease != 0
	case Keep:
		return c.Lease != 0 && !calls
	case Enter:
		return !cfg.Joint && cfg.room(s, c)
	case Line:
		return cfg.Odd && cfg.room(s, c) && state == queue.Absent
	case Stop:
		return c.at().waiting > 0
	case StopNext:
		return c.at().waiting > 1
	case Try:
		return (cfg.Odd || cfg.Joint) && cfg.room(s, c)
	case Decline:
		return cfg.Odd && c.Lease != 0
	case Deny:
		return cfg.Odd && calls && c.Call.Status == Pending && c.Lease == 0
	case Close:
		return cfg.Odd && state != queue.Absent
	case Change:
		return cfg.Odd && c.Dead == 0
	case Crash:
		return c.Dead == 0 && s.Crashed < cfg.Crashes
	case Smash:
		return s.Broken < cfg.Breaks && s.Main.Lock.Owner != 0
	case Fail:
		return cfg.Failover != Never && s.Failed == 0
	}
	return true
}

// apply makes a move. It returns false if the move is not possible, and else the invariants that
// the move itself broke, as bits.
func (cfg *Config) apply(s *State, a Action) (possible bool, bad uint8) {
	if !cfg.may(s, a) {
		return false, 0
	}
	switch i := int(a.Client); a.Move {
	case Run:
		return cfg.run(s, i)
	case RunBack, RunBackLost, RunStray:
		return cfg.runLate(s, i, a.Move)
	case Smash:
		return cfg.smash(s)
	}
	return cfg.happen(s, int(a.Client), a.Move), 0
}

// happen makes a move in which no server runs a call.
func (cfg *Config) happen(s *State, i int, m Move) bool {
	c := &s.Clients[i]
	switch m {
	case Hear:
		return cfg.hear(s, i)
	case Read:
		return cfg.read(s, i)
	case Missed, Again:
		return cfg.miss(s, i)
	case Ask:
		c.Timer = 0
		return cfg.event(s, i, cue{kind: queue.Timer}, 0, basis{})
	case Change:
		return cfg.event(s, i, cue{kind: queue.Timer}, 0, basis{})
	case Resub: // then it asks
		c.Deaf = 0
		return cfg.event(s, i, cue{kind: queue.Timer}, 0, basis{})
	case GiveBack:
		return cfg.release(s, i, Release)
	case Decline:
		return cfg.release(s, i, Leave)
	case Enter, Line:
		return cfg.enter(s, i, false, m == Line)
	case Try:
		return cfg.enter(s, i, true, false)
	case Stop, StopNext:
		return cfg.event(s, i, cue{kind: queue.End, place: uint8(m - Stop)}, 0, basis{})
	case Deny:
		c.Call = Call{}
		return cfg.event(s, i, cue{kind: queue.Denied}, 0, basis{})
	case Close: // what it holds is not given back
		if c.Lease != 0 {
			cfg.abandon(s, c)
		}
		c.Lease = 0
		return cfg.event(s, i, cue{kind: queue.Close}, 0, basis{})
	case Learn:
		return cfg.learn(s, i)
	case Keep:
		next, due := renews(c.Lease)
		c.Lease = next
		cfg.send(c, Renew)
		return due
	case Sync:
		return cfg.sync(s)
	case Fail:
		return cfg.fail(s)
	case Tick:
		return cfg.pass(s)
	case Notice, Unsub:
		c.Deaf = 1
	case LoseStray:
		c.Stray = Stray{}
	case LoseNote:
		c.Note = Note{}
	case Crash:
		s.Crashed++
		cfg.crash(s, c)
	}
	return true
}

// serve runs a request at a server. It returns false if the server serves nobody.
func (cfg *Config) serve(s *State, link uint8, r Request) (served bool, e Effect, bad uint8) {
	if link == 1 && s.Linger <= 0 {
		return false, e, 0
	}
	server := s.server(link)
	if cfg.Contact > 0 && server.Quiet > cfg.Contact {
		return false, e, 0
	}
	env := Env{Young: cfg.Level == Guarded && server.Age < cfg.Guard, Now: s.Now}
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		if c.Polls == 1 {
			env.Pollers |= 1 << i
		} else if c.Deaf == 0 && c.Link == link {
			env.Heard |= 1 << i
		}
	}
	before := server.Lock
	e = cfg.Do(before, env, r)
	bad = cfg.judge(&before, env, r, &e)
	server.Lock, s.Now = e.Lock, e.Now
	if e.Told != 0 {
		if c := &s.Clients[e.Told.client()]; c.Dead == 0 {
			c.Note = Note{For: 1 + e.Told.past(), Left: min(e.Lock.Rem, cfg.Lease), Fence: e.Lock.Fence}
		}
	}
	return true, e, bad
}

// request is a call for an owner. Of a joinable lock that is a hold.
func (cfg *Config) request(k Kind, o Owner, fence Token) Request {
	r := Request{Kind: k, Owner: o, Fence: fence}
	if cfg.Joint && o.client() < 2 {
		r.Owner = ownerOf(0, 0)
		if k != Renew || cfg.Flaw != Unnamed {
			r.Hold = o.hold()
		}
	}
	return r
}

// run runs a client's call.
func (cfg *Config) run(s *State, i int) (bool, uint8) {
	c := &s.Clients[i]
	k := c.Call.Kind
	served, e, bad := cfg.serve(s, c.Link, cfg.request(k, ownerOf(i, 0), c.argument(k)))
	c.Call.Status, c.Call.Yes = Answered, bit8(e.Yes)
	if k == Wait || k == Acquire && e.Yes {
		c.Call.Got = e.Fence
	}
	waits := k == Acquire || k == Renew // for replicas
	if e.Yes && waits && cfg.Level == Replicas && cfg.replicated() && cfg.Flaw != UnseenAcks &&
		(s.Failed == 0 || c.Link == 1) {
		c.Call.Status = Unacked
	}
	return served, bad
}

// runLate runs a call that gives back, or a late one. The answer to the former may be lost.
func (cfg *Config) runLate(s *State, i int, m Move) (bool, uint8) {
	c := &s.Clients[i]
	from := &c.Back
	if m == RunStray {
		from = &c.Stray
	}
	call := *from
	served, _, bad := cfg.serve(s, call.Link, cfg.request(call.Kind, ownerOf(i, call.Past), call.Fence))
	if m != RunBackLost {
		*from = Stray{}
	}
	return served, bad
}

// SPDX-License-Identifier: Apache-2.0

package model

// What happens around the clients: time, replication, failovers, operators.

// replicated reports whether there is a replica.
func (cfg *Config) replicated() bool { return cfg.Failover == Promotion || cfg.Failover == Split }

// sync lets the replica catch up. It may do so at any time, or not, so that a failover finds it at
// any of the primary's former states.
func (cfg *Config) sync(s *State) bool {
	if !cfg.replicated() || s.Failed > 0 {
		return false
	}
	news := s.Replica != s.Main.Lock || s.Main.Quiet > 0
	s.Replica, s.Main.Quiet = s.Main.Lock, 0
	for i := range s.Clients {
		if call := &s.Clients[i].Call; call.Status == Unacked {
			call.Status, news = Answered, true
		}
	}
	return news
}

// pass lets a tick pass. At its end leases and deadlines end together: that is the latest that a
// deadline may be.
func (cfg *Config) pass(s *State) bool {
	for _, l := range s.locks() {
		cfg.age(l)
	}
	for i := range s.Clients[:cfg.Clients] {
		if s.Clients[i].Dead == 0 && !cfg.tick(s, i) {
			return false
		}
	}
	s.Main.Age = min(s.Main.Age+1, cfg.Guard)
	if cfg.Contact > 0 && s.Failed == 0 {
		s.Main.Quiet = min(s.Main.Quiet+1, cfg.Contact+1)
	}
	if s.Linger > 0 {
		s.Old.Age = min(s.Old.Age+1, cfg.Guard)
		if cfg.Contact > 0 {
			s.Old.Quiet = min(s.Old.Quiet+1, cfg.Contact+1)
		}
		if s.Linger--; s.Linger == 0 {
			cfg.leaveOld(s)
		}
	}
	return true
}

func (cfg *Config) age(l *Lock) {
	if l.Owner == 0 {
		return
	}
	if l.Rem != forever {
		l.Rem--
	}
	if l.Exp != forever {
		l.Exp--
	} else if l.Rem < -line {
		l.Rem = -line
	}
	if l.Exp <= 0 {
		*l = Lock{}
		return
	}
	if !cfg.Ages {
		return
	}
	most := uint8(cfg.Silence + 1)
	l.Age = min(l.Age+1, most)
	for i := range l.Line {
		if l.Line[i].Owner != 0 {
			l.Line[i].Age = min(l.Line[i].Age+1, most)
		}
	}
}

// fail breaks the server's memory.
func (cfg *Config) fail(s *State) bool {
	if cfg.Patient && s.Main.Quiet <= cfg.Contact {
		return false
	}
	s.Failed = 1
	switch cfg.Failover {
	case Split:
		s.Old, s.Linger = s.Main, cfg.Linger
	case Restart:
		s.Replica = Lock{}
	}
	s.Main = Server{Lock: s.Replica}
	s.Replica = Lock{}
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		if cfg.Failover == Split {
			c.Link, c.Stray.Link, c.Back.Link = 1, bit8(c.Stray.Kind != None), bit8(c.Back.Kind != None)
			continue
		}
		reconnect(c)
	}
	return true
}

// reconnect is what a client does whose server is gone. Calls that no server has run are sent
// again.
func reconnect(c *Client) {
	c.Link, c.Back.Link = 0, 0
	if c.Call.Status == Unacked {
		c.Call.Status = Gone
	}
	if c.Polls == 0 {
		c.Deaf = 1
	}
}

// leaveOld ends the old primary.
func (cfg *Config) leaveOld(s *State) {
	s.Old = Server{}
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		if c.Link == 1 {
			reconnect(c)
		}
		if c.Stray.Link == 1 {
			c.Stray = Stray{}
		}
	}
}

// learn moves a client from the old primary to the new one. A call under way has no answer then.
func (cfg *Config) learn(s *State, i int) bool {
	c := &s.Clients[i]
	done := c.Call.Kind == None || cfg.miss(s, i)
	reconnect(c)
	return done
}

// smash breaks the lock. What its holder counts on, or is about to, is void from then on: it holds
// the lock by its own view until it is told, which is admitted.
func (cfg *Config) smash(s *State) (bool, uint8) {
	l := s.Main.Lock
	s.Broken++
	if c := &s.Clients[l.Owner.client()]; l.Rem > 0 && l.Owner.past() == 0 {
		if c.Believes() && c.known.Has == l.Fence {
			c.Void = 1
		}
		if c.Call.Yes != 0 && (c.Call.Got == l.Fence || c.Call.Kind == Renew && c.known.Has == l.Fence) {
			c.Call.Void = 1
		}
		if c.Note.For == 1 && c.Note.Fence == l.Fence {
			c.Note.Void = 1
		}
	}
	served, _, bad := cfg.serve(s, 0, Request{Kind: Break})
	return served, bad
}

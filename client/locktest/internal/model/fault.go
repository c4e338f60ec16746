package model

// What happens around the clients: time, replication, failovers, operators.

// instant lets a microsecond pass, if tokens are ahead of the clock.
func instant(s *State) bool {
	if ahead(s) <= 0 && s.Now > s.Main.Last {
		return false
	}
	s.Now++
	return true
}

// replicated reports whether there is a replica.
func (cfg *Config) replicated() bool { return cfg.Failover == Promotion || cfg.Failover == Split }

// sync lets the replica catch up. It may do so at any time, or not, so that a failover finds it at
// any of the primary's former states.
func (cfg *Config) sync(s *State) bool {
	if !cfg.replicated() || s.Failed > 0 {
		return false
	}
	news := s.Replica != s.Main.Locks || s.Main.Quiet > 0
	s.Replica, s.Main.Quiet = s.Main.Locks, 0
	for i := range s.Clients {
		if call := &s.Clients[i].Call; call.Status == Unacked {
			call.Status, news = Answered, true
		}
	}
	return news
}

// pass lets a tick pass. At its end leases and deadlines end together: that is the latest that a
// deadline may be.
func (cfg *Config) pass(s *State) {
	for k := range maxLocks {
		cfg.age(&s.Main.Locks[k])
		cfg.age(&s.Old.Locks[k])
		cfg.age(&s.Replica[k])
	}
	for i := range s.Clients[:cfg.Clients] {
		if c := &s.Clients[i]; c.Phase != Dead {
			cfg.tick(s, c)
		}
	}
	s.Main.Age = min(s.Main.Age+1, cfg.Guard)
	if cfg.Contact > 0 && s.Failed == 0 {
		s.Main.Quiet = min(s.Main.Quiet+1, cfg.Contact+1)
	}
	if cfg.Coarse {
		s.Now += Token(max(ahead(s), 0)) + 1
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
}

func (cfg *Config) age(l *Lock) {
	if l.Owner == 0 || cfg.Flaw == EndlessProvision && l.Rem == cfg.Provisional+1 {
		return
	}
	l.Rem--
	if l.Exp != forever {
		l.Exp--
	} else if l.Rem < -cfg.Line {
		l.Rem = -cfg.Line
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
		s.Replica = [maxLocks]Lock{}
	}
	s.Main = Server{Locks: s.Replica}
	s.Replica = [maxLocks]Lock{}
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		if cfg.Failover == Split {
			c.Link = 1
			if c.Stray.Kind != None {
				c.Stray.Link = 1
			}
			continue
		}
		reconnect(c)
	}
	return true
}

// reconnect is what a client does whose server is gone. Calls that no server has run are sent
// again.
func reconnect(c *Client) {
	c.Link = 0
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

// learn moves a client from the old primary to the new one. It sends its call again there.
func (cfg *Config) learn(s *State, c *Client) {
	call := c.Call
	cfg.abandon(s, c)
	reconnect(c)
	if call.Kind != None {
		cfg.send(c, call.Kind)
	}
}

// resub subscribes a client again. Then it asks.
func resub(c *Client) {
	c.Deaf = 0
	if c.Phase == Standing {
		c.Due = 1
	}
}

// smash breaks lock 0. What its holder counts on, or is about to, is void from then on: it holds
// the lock by its own view until it is told, which is admitted.
func (cfg *Config) smash(s *State, saw Witness) (bool, uint8) {
	l := s.Main.Locks[0]
	s.Broken++
	if c := &s.Clients[l.Owner.client()]; l.Rem > 0 && l.Owner.past() == 0 && c.Lock == 0 {
		if c.Believes() && c.Fence == l.Fence {
			c.Void = 1
		}
		if c.Call.Yes != 0 && (c.Call.Got == l.Fence || c.Call.Kind == Renew && c.Fence == l.Fence) {
			c.Call.Void = 1
		}
		if c.Note.For == 1 && c.Note.Fence == l.Fence {
			c.Note.Void = 1
		}
	}
	served, _, bad := cfg.serve(s, 0, 0, Request{Kind: Break}, saw)
	return served, bad
}

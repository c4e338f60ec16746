package model

// apply makes a move. It returns false if the move is not possible, and else the invariants that
// the move itself broke, as bits.
func (cfg *Config) apply(s *State, a Action, saw Witness) (possible bool, bad uint8) {
	i := int(a.Client)
	c := &s.Clients[i]
	if c.Phase == Dead && a.Move != RunStray && a.Move != LoseStray && a.Move != Notice && !a.Move.alone() {
		return false, 0
	}
	switch a.Move {
	case Run:
		return cfg.run(s, i, false, saw)
	case RunLost:
		return cfg.run(s, i, true, saw)
	case RunStray:
		return cfg.runStray(s, i, saw)
	case Hear:
		if c.Call.Kind == None || c.Call.Status != Answered {
			return false, 0
		}
		cfg.hear(c, true)
		return true, 0
	case Turn:
		if c.Phase != Asking || c.Call.Status != Answered || c.Call.Yes != 0 {
			return false, 0
		}
		cfg.hear(c, false)
		return true, 0
	case Read:
		return cfg.read(s, c), 0
	case Ask:
		if c.Phase != Standing || c.Call.Kind != None || c.Due == 0 {
			return false, 0
		}
		c.Due = 0
		cfg.send(c, Wait)
		return true, 0
	case Resub:
		return cfg.resub(c), 0
	case Learn:
		return cfg.learn(s, c), 0
	case GiveBack:
		return cfg.release(s, c), 0
	case Missed:
		return c.Call.Status == Gone && cfg.repeat(s, c), 0
	case Begin0, Begin1:
		k := uint8(a.Move - Begin0)
		return int(k) < cfg.Locks && cfg.start(s, i, Acquire, k), 0
	case Line0, Line1:
		k := uint8(a.Move - Line0)
		return int(k) < cfg.Locks && cfg.start(s, i, Wait, k), 0
	case Notice:
		if c.Phase != Dead || c.Deaf == 1 || c.Polls == 1 {
			return false, 0
		}
		c.Deaf = 1
		return true, 0
	case Again:
		return cfg.repeat(s, c), 0
	case Stop:
		return cfg.stop(s, c), 0
	case Keep:
		if c.Phase != Held || c.Call.Kind != None {
			return false, 0
		}
		cfg.send(c, Renew)
		return true, 0
	case LoseStray:
		if c.Stray.Kind == None {
			return false, 0
		}
		c.Stray = Stray{}
		return true, 0
	case LoseNote:
		if c.Note.For == 0 {
			return false, 0
		}
		c.Note = Note{}
		return true, 0
	case Unsub:
		if !cfg.Drops || c.Polls == 1 || c.Deaf == 1 || c.Phase != Standing {
			return false, 0
		}
		c.Deaf = 1
		return true, 0
	case Crash:
		if s.Crashed >= cfg.Crashes {
			return false, 0
		}
		s.Crashed++
		cfg.crash(s, c)
		return true, 0
	}
	return cfg.happen(s, a.Move, saw)
}

// Witness sees each run of a function.
type Witness func(lock Lock, env Env, r Request, e Effect)

// serve runs a request at a server. It returns false if the server serves nobody.
func (cfg *Config) serve(s *State, link, k uint8, r Request, saw Witness) (served bool, e Effect, bad uint8) {
	if link == 1 && s.Linger <= 0 {
		return false, e, 0
	}
	server := s.server(link)
	if cfg.Contact > 0 && server.Quiet > cfg.Contact || cfg.Coarse && ahead(s) > 2 {
		return false, e, 0
	}
	env := Env{Young: cfg.Level == Guarded && server.Age < cfg.Guard, Now: s.Now, Last: server.Last}
	for i := range s.Clients[:cfg.Clients] {
		c := &s.Clients[i]
		if c.Polls == 1 {
			env.Pollers |= 1 << i
		} else if c.Deaf == 0 && c.Link == link {
			env.Heard |= 1 << i
		}
	}
	before := server.Locks[k]
	e = cfg.Do(before, env, r)
	if saw != nil {
		saw(before, env, r, e)
	}
	bad = cfg.judge(s, k, &before, env, r, &e)
	server.Locks[k], server.Last, s.Now = e.Lock, e.Last, e.Now
	if e.Told != 0 {
		if c := &s.Clients[e.Told.client()]; c.Phase != Dead {
			c.Note = Note{For: 1 + e.Told.past(), Lock: k, Left: e.Lock.Rem, Fence: e.Lock.Fence}
			c.Call.Newer = 0
		}
	}
	return true, e, bad
}

// ahead is how far the greatest token is ahead of the clock.
func ahead(s *State) int {
	most := Token(0)
	look := func(t *Token) { most = max(most, *t) }
	eachFence(s, look)
	eachMemory(s, look)
	return int(most) - int(s.Now)
}

// run runs a client's call. lost says that the reply is lost on its way, and that the client
// repeats the call.
func (cfg *Config) run(s *State, i int, lost bool, saw Witness) (bool, uint8) {
	c := &s.Clients[i]
	if c.Call.Kind == None || c.Call.Status != Pending {
		return false, 0
	}
	k := c.Call.Kind
	r := Request{Kind: k, Owner: ownerOf(i, 0), Fence: c.argument(k)}
	note := c.Note
	served, e, bad := cfg.serve(s, c.Link, c.Lock, r, saw)
	switch {
	case !served:
		return false, 0
	case e.Reply.Followed:
		c.Call.Kind = Delete
	case lost:
		cfg.send(c, k)
	case k == Release || k == Leave || k == Delete: // whatever the reply, that was it
		cfg.finish(c)
	default:
		cfg.answer(s, c, &e, note)
	}
	return true, bad
}

// answer sends a reply. note is what was on its way to the client before.
func (cfg *Config) answer(s *State, c *Client, e *Effect, note Note) {
	c.Call.Status = Answered
	if !e.Reply.Yes {
		if note.For == 1 && note == c.Note && (note.Fence == stale || note.Fence <= e.Reply.Fence) {
			c.Call.Newer = 1
		}
		return
	}
	c.Call.Yes = 1
	if c.Call.Kind != Renew {
		c.Call.Got = e.Reply.Fence
	}
	waits := c.Call.Kind == Acquire || c.Call.Kind == Renew // for replicas
	if waits && e.Wrote && cfg.Level == Replicas && cfg.replicated() && cfg.Flaw != UnseenAcks &&
		(s.Failed == 0 || c.Link == 1) {
		c.Call.Status = Unacked
	}
}

func (cfg *Config) runStray(s *State, i int, saw Witness) (bool, uint8) {
	c := &s.Clients[i]
	if c.Stray.Kind == None {
		return false, 0
	}
	r := Request{Kind: c.Stray.Kind, Owner: ownerOf(i, c.Stray.Past), Fence: c.Stray.Fence}
	link, k := c.Stray.Link, c.Stray.Lock
	c.Stray = Stray{}
	served, e, bad := cfg.serve(s, link, k, r, saw)
	if e.Reply.Followed {
		c.Stray = Stray{Kind: Delete, Past: r.Owner.past(), Lock: k, Link: link}
	}
	return served, bad
}
